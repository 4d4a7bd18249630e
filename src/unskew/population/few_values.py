"""Rows with few different values: what is true of one row is true of all that equal it.

Whole numbers in a narrow range, booleans and texts in a dictionary have codes at hand. A block of
rows whose columns all have them is a small number of combinations, each of which is looked at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.kinds import is_text

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
    >>> few = Combinations.of(batch)
    >>> few.codes[:4], few.size
    (array([0, 1, 0, 1]), 2)
    >>> Combinations.of(pa.record_batch({"income": [1.5] * 40})) is None
    True
    """

    batch: pa.RecordBatch
    codes: IntArray
    size: int
    meaning: tuple[Any, ...]

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Combinations | None:
        """Return the combinations of a block, or None where there may be many."""
        most = batch.num_rows // ROWS_A_COMBINATION
        if not (batch.num_columns and most and all(map(_has_codes, batch.schema.types))):
            return None
        found = []
        for column in batch.columns:
            own = _ColumnCodes.of(column, most)
            if own is None:
                return None
            most //= own.size
            found.append(own)
        codes = found[0].codes()
        for own in found[1:]:
            codes = codes * own.size  # the codes may be the column itself
            codes += own.codes()
        size = math.prod(own.size for own in found)
        return cls(batch, codes, size, tuple(own.meaning for own in found))

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


class KnownCells:
    """The cells of combinations that were located before; the copies of a summary share them."""

    def __init__(self) -> None:
        self._known: tuple[Any, IntArray] = None, np.empty(0, dtype=np.int64)

    def of(
        self,
        few: Combinations,
        present: IntArray,
        locate: Callable[[pa.RecordBatch], tuple[IntArray, Any]],
    ) -> IntArray:
        """Return the cells of combinations that are present in a block."""
        meaning, known = self._known
        if meaning != few.meaning:
            known = np.full(few.size, _UNKNOWN)
            self._known = few.meaning, known
        cells: IntArray = known[present]
        new = np.flatnonzero(cells == _UNKNOWN)
        if len(new):
            cells[new] = locate(few.rows(present[new]))[0]
            known[present[new]] = cells[new]
        return cells


@dataclass(frozen=True)
class _ColumnCodes:
    """Codes of one column, from zero; the last one stands for missing values."""

    column: pa.Array
    first: int
    size: int
    meaning: Any

    @classmethod
    def of(cls, column: pa.Array, most: int) -> _ColumnCodes | None:
        if types.is_dictionary(column.type):
            size = len(column.dictionary) + 1
            return None if size > most else cls(column.indices, 0, size, column.dictionary)
        kind = column.type
        if types.is_boolean(kind):
            column = column.cast(pa.int8())
        low, high = pc.min_max(column).as_py().values()
        if low is None or high >= 2**63 - 1:
            return None
        size = high - low + 1 + bool(column.null_count)
        return None if size > most else cls(column, low, size, (str(kind), low, size))

    def codes(self) -> IntArray:
        column = self.column
        if column.null_count:
            column = column.cast(pa.int64()).fill_null(self.first + self.size - 1)
        codes: IntArray = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        return codes - self.first if self.first else codes


def _has_codes(kind: pa.DataType) -> bool:
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(types.is_integer(kind) or types.is_boolean(kind))
