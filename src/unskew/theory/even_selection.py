"""Whether the counts of a fitted weighter's cells mean what the bounds take them for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unskew.numerics.even_within_cells import even_within_cells
from unskew.numerics.typing import IntArray

LEVEL = 0.05
"""The level of the test: the share of samples with even selection whose headline is qualified all
the same."""


@dataclass(frozen=True)
class EvenSelection:
    """The test of selection that is even within cells.

    Attributes
    ----------
    p_value : float or None
        None where it could not be made.
    """

    p_value: float | None

    @property
    def rejected(self) -> bool:
        """Whether selection differs within cells."""
        return self.p_value is not None and self.p_value < LEVEL

    def headline(self, likely: str) -> str:
        """Return the beginning of a statement, qualified unless the test lets it stand."""
        if self.p_value is None:
            return f"If selection is even within cells, which was not tested, {_lower(likely)}"
        if self.rejected:
            return (
                f"Only if selection were even within cells, which a test rejects (p = "
                f"{self.p_value:.2g}), {_lower(likely)}"
            )
        return likely

    @property
    def remark(self) -> str:
        """What the test says, in a sentence."""
        if self.p_value is None:
            return (
                "Whether selection is even within cells was not tested: the rows that the test "
                'needs are kept only in memory after fit (not with overlap="ignore"), without '
                "weights, and cells must hold "
                "some of them."
            )
        if self.rejected:
            return (
                f"Selection differs within cells (p = {self.p_value:.2g}), so the counts do not "
                "bound the error of the weights. Use smaller cells, or cells in the columns by "
                "which selection differs."
            )
        return (
            "A test of whether selection is even within cells finds no difference (p = "
            f"{self.p_value:.2g}, level {LEVEL:g}); it can miss small ones."
        )


def even_selection(weighter: Any, merged: IntArray | None = None) -> EvenSelection:
    """Test whether every row of a cell was equally likely to be selected.

    Parameters
    ----------
    weighter : CellWeighter
        Fitted.
    merged : ndarray of int, optional
        The coarser cell of each cell.
    """
    examined = getattr(weighter, "_examined", None)
    if examined is None:
        return EvenSelection(None)
    sample, drawn = examined.sample, examined.drawn
    if merged is not None:
        sample, drawn = (
            side.take(side.cells >= 0)._replace(cells=merged[side.cells[side.cells >= 0]])
            for side in (sample, drawn)
        )
    return EvenSelection(even_within_cells(sample, drawn, examined.n_rows))


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
