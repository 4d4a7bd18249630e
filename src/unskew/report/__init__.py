"""A diagnosis as something to read: a page, Markdown, the output of a notebook's cell.

:mod:`~unskew.report.sections` turns the diagnosis into plain content, which each form renders. A
diagnosis imports this package, and with it vl-convert and Jinja, when it is first shown.
"""

from unskew.report.markdown import to_markdown
from unskew.report.page import to_html, to_notebook_html
from unskew.report.sensitivity import sensitivity_blocks, sensitivity_html, sensitivity_svg

__all__ = [
    "sensitivity_blocks",
    "sensitivity_html",
    "sensitivity_svg",
    "to_html",
    "to_markdown",
    "to_notebook_html",
]
