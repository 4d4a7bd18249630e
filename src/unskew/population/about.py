"""What a population, or its margins, can state without reading a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unskew.population.margin_levels import MarginLevels


@dataclass(frozen=True)
class About:
    """What is known before the pass.

    Attributes
    ----------
    columns : tuple of str
        The columns that describe a row, under the sample's names.
    n_rows : int or None
        The number of rows, where it is known without reading them.
    weighted : bool
        Whether rows have design weights.
    selected : bool
        Whether rows are marked as being in the sample.
    margins : tuple or None
        Which margins are known, where there are no rows at all; None for a population of rows.
    levels : tuple of MarginLevels
        Those of them that count levels, matched with the sample.
    """

    columns: tuple[str, ...]
    n_rows: int | None
    weighted: bool = False
    selected: bool = False
    margins: tuple[str | tuple[str, ...], ...] | None = None
    levels: tuple[MarginLevels, ...] = ()
