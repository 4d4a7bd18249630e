"""What the site needs beside Sphinx's own extensions; this package is itself one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive, what changes pages as they are read, and what they leave out."""
    from docs.building.sources import change
    from docs.building.weighter_facts import WeighterFacts

    app.add_directive("weighter-facts", WeighterFacts)
    app.connect("source-read", change)
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-skip-member", _is_scikit_learns)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _is_scikit_learns(
    _app: Sphinx, _what: str, _name: str, member: object, *_: object
) -> bool | None:
    """Leave out what a class inherits from scikit-learn, whose pages are not ours."""
    home = getattr(member, "__module__", None) or ""
    return True if home.startswith("sklearn") else None
