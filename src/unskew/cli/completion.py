"""Shell completion of column names, from the file that was named before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer


def complete_columns(position: int) -> Callable[[typer.Context, str], list[str]]:
    """Return a function that completes the names of columns in the file at a position."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        *before, last = incomplete.split(",")  # --columns takes a list
        prefix = "".join(f"{name}," for name in before)
        # An option that still lacks its value leaves the arguments before it unassigned.
        source = next(iter(ctx.args[position:]), None)
        return [prefix + name for name in _names(source) if name.startswith(last)]

    return complete


def _names(source: Any) -> list[str]:
    from unskew import Population, UnskewError

    if not source or source == "-":
        return []
    try:
        return Population(source).columns  # reads only the beginnings of the files
    except UnskewError:  # no messages while somebody types
        return []
