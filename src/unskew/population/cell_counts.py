"""How much of the population is in each cell of a partition.

What is true of one row is true of all that equal it. Whole numbers in a narrow range, booleans and
texts in a dictionary have codes at hand, so that a block whose columns all have them is a small
number of combinations, each of which is looked at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.summaries import Summary
from unskew.rows.kinds import is_text
from unskew.rows.tables import RowBlock

ROWS_A_COMBINATION = 8
"""A block has at least so many rows for each combination that its columns allow for; with fewer,
there is little to gain."""

_UNKNOWN = -2


@dataclass(frozen=True)
class Combinations:
    """The combination of values in each row of a block.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    codes : ndarray of int
        The number of each row's combination.
    size : int
        How many the columns allow for.
    meaning : tuple
        Where it is equal, equal numbers mean equal rows.

    Examples
    --------
    >>> batch = pa.record_batch({"rooms": [3, 4] * 20, "garden": [True] * 40})
    >>> few = Combinations.from_batch(batch)
    >>> few.codes[:4], few.size
    (array([0, 1, 0, 1]), 2)
    >>> Combinations.from_batch(pa.record_batch({"income": [1.5] * 40})) is None
    True
    """

    batch: pa.RecordBatch
    codes: IntArray
    size: int
    meaning: tuple[Any, ...]

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> Combinations | None:
        """Return the combinations of a block, or None where there may be many."""
        most = batch.num_rows // ROWS_A_COMBINATION
        if not (batch.num_columns and most and all(map(_has_codes, batch.schema.types))):
            return None
        found = []
        for column in batch.columns:
            own = _column_codes(column, most)
            if own is None:
                return None
            most //= own[1]
            found.append(own)
        codes: IntArray = np.zeros(batch.num_rows, dtype=np.int64)
        for column, (first, size, _) in zip(batch.columns, found, strict=True):
            codes *= size
            codes += _numbered(column, first, size)
        size = math.prod(size for _, size, _ in found)
        return cls(batch, codes, size, tuple(meaning for _, _, meaning in found))

    def sums(self, weight: FloatArray) -> FloatArray:
        """Return the total weight of each combination."""
        sums: FloatArray = np.bincount(self.codes, weights=weight, minlength=self.size)  # type: ignore[assignment]
        return sums

    def counts(self) -> IntArray:
        """Return how many rows there are of each combination."""
        return np.bincount(self.codes, minlength=self.size)

    def rows(self, combinations: IntArray) -> pa.RecordBatch:
        """Return a row of each of these combinations."""
        last = np.empty(self.size, dtype=np.int64)
        last[self.codes] = np.arange(len(self.codes))
        return self.batch.take(pa.array(last[combinations]))


def _column_codes(column: pa.Array, most: int) -> tuple[int, int, Any] | None:
    """Return the first value of a column, how many there may be, and what they mean.

    None where there may be more than ``most``. The last one stands for missing values.
    """
    if types.is_dictionary(column.type):
        size = len(column.dictionary) + 1
        return None if size > most else (0, size, column.dictionary)
    kind = column.type
    low, high = (
        pc.min_max(column.cast(pa.int8()) if types.is_boolean(kind) else column).as_py().values()
    )
    if low is None or high >= 2**63 - 1:
        return None
    size = high - low + 1 + bool(column.null_count)
    return None if size > most else (low, size, (str(kind), low, size))


def _numbered(column: pa.Array, first: int, size: int) -> IntArray:
    """Return the values of a column as numbers from zero."""
    column = column.indices if types.is_dictionary(column.type) else column
    column = column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(first + size - 1)
    return np.asarray(column.to_numpy(zero_copy_only=False) - first)


def _has_codes(kind: pa.DataType) -> bool:
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(types.is_integer(kind) or types.is_boolean(kind))


class Locator(Protocol):
    """Finds the cell of each row: all that cell counts need to know of a partition."""

    n_cells: int

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
    """

    shared = frozenset({"locator", "_known"})
    added = ("covered", "merged", "uncovered", "mass")

    def __init__(self, locator: Locator) -> None:
        self.locator = locator
        self._known: list[Any] = [None, np.empty(0, dtype=np.int64)]  # copies share it
        self.covered = np.zeros(locator.n_cells)
        self.merged = np.zeros(1)
        self.uncovered = 0.0
        self.mass = 0.0

    @property
    def counts(self) -> FloatArray:
        """The weight in each cell."""
        return (
            self.covered + self.locator.spread(self.merged) if self.merged.any() else self.covered
        )

    def update(self, rows: RowBlock) -> None:
        """Count the rows of a block; of equal rows one, where they are few."""
        self.mass += rows.mass
        few = Combinations.from_batch(rows.batch)
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
            cells = self._locate(few, present)
            if len(lost := np.flatnonzero(cells < 0)):
                self._add_uncovered(few.rows(present[lost]), weight[lost])
                weight, cells = weight[cells >= 0], cells[cells >= 0]
        self.covered += np.bincount(cells, weights=weight, minlength=len(self.covered))

    def _locate(self, few: Combinations, present: IntArray) -> IntArray:
        """Return the cells of combinations; of those that were located before, as they were."""
        if self._known[0] != few.meaning:
            self._known[:] = few.meaning, np.full(few.size, _UNKNOWN)
        known = self._known[1]
        cells: IntArray = known[present]
        new = np.flatnonzero(cells == _UNKNOWN)
        if len(new):
            cells[new] = self.locator.locate(few.rows(present[new]))[0]
            known[present[new]] = cells[new]
        return cells

    def _add_uncovered(self, rest: pa.RecordBatch, weight: FloatArray) -> None:
        """Count rows that are in no cell with sample rows."""
        self.uncovered += float(weight.sum())
        masses = self.locator.group_masses(rest, weight)
        self.merged = self.merged if masses is None else self.merged + masses
