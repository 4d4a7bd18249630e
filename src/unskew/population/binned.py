"""A histogram of one number per row, with the mean in each bin."""

from __future__ import annotations

import numpy as np

from unskew.numerics.typing import FloatArray
from unskew.population.summaries import RowBlock, Summary


class Binned(Summary):
    """The weight in each of many equal bins from 0 to 1, and where in it the rows are on average.

    Parameters
    ----------
    columns : sequence of int
        The columns of an encoded block whose entries are counted, all in one histogram.
    n_bins : int

    Examples
    --------
    >>> binned = Binned([0], n_bins=2)
    >>> binned.update(RowBlock(np.array([[0.1], [0.2], [0.9]]), np.ones(3)))
    >>> binned.weight, binned.points
    (array([2., 1.]), array([0.15, 0.9 ]))
    """

    shared = frozenset({"columns", "n_bins"})
    added = ("mass", "sums")

    def __init__(self, columns: list[int], *, n_bins: int = 20_000) -> None:
        self.columns = columns
        self.n_bins = n_bins
        self.mass: FloatArray = np.zeros(n_bins)
        self.sums: FloatArray = np.zeros(n_bins)

    def update(self, rows: RowBlock) -> None:
        """Count the rows of a block."""
        for column in self.columns:
            values = rows.batch[:, column]
            bins = np.minimum((values * self.n_bins).astype(np.int64), self.n_bins - 1)
            self.mass += np.bincount(bins, rows.weight, self.n_bins)
            self.sums += np.bincount(bins, rows.weight * values, self.n_bins)

    @property
    def weight(self) -> FloatArray:
        """The weight in each bin that has any."""
        return self.mass[self.mass > 0]

    @property
    def points(self) -> FloatArray:
        """The mean of the rows in each of these bins."""
        return self.sums[self.mass > 0] / self.weight
