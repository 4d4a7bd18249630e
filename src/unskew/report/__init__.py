"""A diagnosis as something to read: a page, Markdown, the output of a notebook's cell.

What draws and fills in (Altair, vl-convert, Jinja) is imported when the first page is made.
"""

from __future__ import annotations

from unskew.files import write_whole

__all__ = ["write_whole"]
