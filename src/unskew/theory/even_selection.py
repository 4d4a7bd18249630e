"""Whether the counts of a fitted weighter's cells mean what the bounds take them for."""

from __future__ import annotations

from typing import Any

from unskew.numerics.even_within_cells import even_within_cells
from unskew.numerics.typing import IntArray
from unskew.theory.assumption_test import LEVEL, AssumptionTest


class EvenSelection(AssumptionTest):
    """The test of selection that is even within cells."""

    assumed = "selection is even within cells"
    supposed = "selection were even within cells"

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
