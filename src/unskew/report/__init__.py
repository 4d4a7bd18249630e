"""A diagnosis as something to read: a page, Markdown, the output of a notebook's cell.

:mod:`~unskew.report.sections` turns the diagnosis into plain content, which each form renders.
vl-convert and Jinja are imported when the first page is made.
"""

from __future__ import annotations

from unskew.diagnostics.diagnosis import Diagnosis

__all__ = ["to_html", "to_markdown", "to_notebook_html"]


def to_html(diagnosis: Diagnosis, *, static: bool = False) -> str:
    """Return the report as one self-contained page; ``static`` leaves JavaScript out."""
    from unskew.report import page, sections

    return page.to_html(sections.build_report(diagnosis), static=static)


def to_notebook_html(diagnosis: Diagnosis) -> str:
    """Return the report for the output of a notebook's cell."""
    from unskew.report import page, sections

    return page.to_notebook_html(sections.build_report(diagnosis))


def to_markdown(diagnosis: Diagnosis) -> str:
    """Return the report as Markdown."""
    from unskew.report import markdown, sections

    return markdown.to_markdown(sections.build_report(diagnosis))
