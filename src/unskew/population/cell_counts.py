"""How much of the population is in each cell of a partition."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.few_values import Combinations, KnownCells
from unskew.population.summaries import RowBlock, Summary


class Locator(Protocol):
    """Finds the cell of each row: all that cell counts need to know of a partition."""

    n_cells: int
    light: bool
    """Whether a row takes little memory while it is located."""

    def locate(self, batch: pa.RecordBatch) -> tuple[IntArray, BoolArray | None]:
        """Return each row's cell and which rows are uncovered; an uncovered row's cell is -1.

        The second is None where every row is covered.
        """

    def group_masses(self, batch: pa.RecordBatch, weight: FloatArray) -> FloatArray | None:
        """Return the weight of uncovered rows that each group of sample rows takes, if any does."""

    def spread(self, masses: FloatArray) -> FloatArray:
        """Return what the weight that groups of sample rows took adds to each cell."""


class CellCounts(Summary):
    """The total weight of the rows in each cell.

    Attributes
    ----------
    counts : ndarray of shape (n_cells,)
        With what uncovered rows add to it.
    covered : ndarray of shape (n_cells,)
        The weight of the covered rows, exact in any order as long as weights are whole numbers.
    merged : ndarray of shape (n_groups,)
        The weight of uncovered rows that each group of sample rows takes. It is spread over cells
        only when all rows are counted, and so is as exact. One zero as long as there are none.
    uncovered : float
        The weight of the rows that no sample row can represent.

    Parameters
    ----------
    locator : Locator
    limit : float
        The weight of uncovered rows above which the answer will be refused, so that finding out
        where they count is of no use.
    """

    shared = frozenset({"locator", "limit", "_known"})
    added = ("covered", "merged", "uncovered", "mass")

    def __init__(self, locator: Locator, *, limit: float = np.inf) -> None:
        self.locator = locator
        self.limit = limit
        self._known = KnownCells()
        self.covered = np.zeros(locator.n_cells)
        self.merged = np.zeros(1)
        self.uncovered = 0.0
        self.mass = 0.0

    def is_light(self) -> bool:
        """Whether the locator is."""
        return self.locator.light

    @property
    def counts(self) -> FloatArray:
        """The weight in each cell."""
        return (
            self.covered + self.locator.spread(self.merged) if self.merged.any() else self.covered
        )

    def update(self, rows: RowBlock) -> None:
        """Count the rows of a block; of equal rows one, where they are few."""
        self.mass += rows.mass
        few = Combinations.of(rows.batch)
        if few is None:
            cells, uncovered = self.locator.locate(rows.batch)
            if uncovered is not None:
                rest = rows.batch.filter(pa.array(uncovered))
                self._add_uncovered(rest, rows.weight[uncovered])
                cells = cells[~uncovered]
            weight = rows.weight if uncovered is None else rows.weight[~uncovered]
        else:
            counts = few.counts()
            sums = counts.astype(np.float64) if rows.unweighted else few.sums(rows.weight)
            present = np.flatnonzero(counts)
            weight = sums[present]
            cells = self._known.of(few, present, self.locator.locate)
            if len(lost := np.flatnonzero(cells < 0)):
                self._add_uncovered(few.rows(present[lost]), weight[lost])
                weight, cells = weight[cells >= 0], cells[cells >= 0]
        self.covered += np.bincount(cells, weights=weight, minlength=len(self.covered))

    def _add_uncovered(self, rest: pa.RecordBatch, weight: FloatArray) -> None:
        """Count rows that are in no cell with sample rows."""
        self.uncovered += float(weight.sum())
        if self.uncovered <= self.limit:
            masses = self.locator.group_masses(rest, weight)
            self.merged = self.merged if masses is None else self.merged + masses
