"""A diagnosis as something to read: a page, Markdown, the output of a notebook's cell.

What draws and fills in (Altair, vl-convert, Jinja) is imported when the first page is made.
"""

from __future__ import annotations

from unskew.diagnostics.diagnosis import Diagnosis
from unskew.files import write_whole

__all__ = ["to_html", "to_markdown", "to_notebook_html", "write_whole"]


def to_html(diagnosis: Diagnosis, *, static: bool = False) -> str:
    """Return the report as one self-contained page; ``static`` leaves JavaScript out."""
    from unskew.report import page

    return page.to_html(diagnosis, static=static)


def to_notebook_html(diagnosis: Diagnosis) -> str:
    """Return the report for the output of a notebook's cell."""
    from unskew.report import page

    return page.to_notebook_html(diagnosis)


def to_markdown(diagnosis: Diagnosis) -> str:
    """Return the report as Markdown."""
    from unskew.report import markdown

    return markdown.to_markdown(diagnosis)
