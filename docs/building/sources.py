"""What is changed in a page's text when Sphinx reads it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]
HAVE_TREES = ("index", "guide", "more", "methods/index")
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")
TREE = re.compile(r"```{toctree}\n(.*?)```", re.DOTALL)


def change(app: Sphinx, name: str, source: list[str]) -> None:  # noqa: ARG001
    """Name files outside of the site instead of linking them; put new pages into the guide."""
    if "/" not in name:
        source[0] = OUTSIDE.sub(r"\1 (`\2`)", source[0])
    if name == "guide":
        pages = "\n".join(unlisted())
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n" if pages else ""


def unlisted() -> list[str]:
    """Return the pages that no table of contents lists."""
    trees = [(DOCS / f"{page}.md").read_text(encoding="utf-8") for page in HAVE_TREES]
    lines = [line for text in trees for tree in TREE.findall(text) for line in tree.splitlines()]
    listed = {re.sub(r".*<(.*)>|^\.\./", r"\1", line.strip()) for line in lines} | {"index"}
    return [page.stem for page in sorted(DOCS.glob("*.md")) if page.stem not in listed]
