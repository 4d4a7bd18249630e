"""A uniform random sample of the population's rows, the same for every engine and thread count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unskew.numerics.row_keys import row_keys
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.kinds import in_common_form
from unskew.population.summaries import RowBlock, Summary, SummaryType

_HIGHEST_KEY = np.uint64(2**64 - 1)


class Reservoir(Summary):
    """A uniform random sample of rows without replacement.

    Each row's random key is a function of its number in the population and the seed; the rows with
    the smallest keys stay. So a smaller reservoir of the same seed is contained in a larger one.
    Once the reservoir is full, its largest key is a ceiling that all parts of a pass share: rows
    above it are not even copied.

    Parameters
    ----------
    size : int
        How many rows to keep; all of them where the population has fewer.
    seed : int

    Attributes
    ----------
    rows : pyarrow.RecordBatch or ndarray
        The rows kept, in population order, in the form in which the blocks came; None if there were
        none.
    weight : ndarray
        Their design weights: rows with weight are drawn uniformly, not in proportion to it.
    selected : ndarray of bool, or None
        Which of them are marked as being in the sample.
    numbers : ndarray of int
        Their numbers within the population.
    """

    shared = frozenset({"_ceiling"})
    grows = True

    def __init__(self, size: int, *, seed: int = 0) -> None:
        self.size = size
        self.seed = seed
        self.rows: Any = None
        self._ceiling = [_HIGHEST_KEY]  # no row above it can stay; parts share it
        self.weight = np.empty(0)
        self.selected: BoolArray | None = None
        self.numbers = np.empty(0, dtype=np.int64)
        self._keys = np.empty(0, dtype=np.uint64)

    def stand_alone(self) -> None:
        """Use a separate ceiling: one set by rows that are left out later would be too low."""
        self._ceiling = [_HIGHEST_KEY]

    def update(self, rows: RowBlock) -> None:
        """Let the rows of a block compete for a place."""
        keys = row_keys(self.seed, rows.start, len(rows))
        # Most rows of a long population fail here; those without weight count for nothing.
        kept = np.flatnonzero(keys <= self._ceiling[0])
        kept = kept[rows.weight[kept] > 0]
        if len(kept) > self.size:
            kept = np.sort(kept[np.argpartition(keys[kept], self.size)[: self.size]])
        if len(kept):
            selected = None if rows.selected is None else rows.selected[kept]
            taken = _take(rows.batch, kept)
            self._add(taken, rows.weight[kept], selected, rows.start + kept, keys[kept])

    def merge(self, other: Reservoir) -> None:
        """Let the other's rows compete for a place."""
        if other.rows is not None:
            self._add(other.rows, other.weight, other.selected, other.numbers, other._keys)

    def whole(self, n_rows: int) -> bool:
        """Whether these are all rows of a population of this size."""
        return len(self.weight) == n_rows

    def answer(self, question: SummaryType) -> SummaryType:
        """Answer a question from the rows kept, as if they were the population."""
        if self.rows is not None:
            question.update(RowBlock(self.rows, self.weight, self.selected))
        question.finish()
        return question

    def _add(
        self,
        rows: Any,
        weight: FloatArray,
        selected: BoolArray | None,
        numbers: IntArray,
        keys: NDArray[np.uint64],
    ) -> None:
        all_rows = rows if self.rows is None else _concatenate(self.rows, rows)
        all_keys = np.concatenate([self._keys, keys])
        kept = np.arange(len(all_keys))
        if len(kept) > self.size:
            kept = np.argpartition(all_keys, self.size)[: self.size]
        all_numbers = np.concatenate([self.numbers, numbers])
        kept = kept[np.argsort(all_numbers[kept], kind="stable")]  # mostly in order already
        self.rows = _take(all_rows, kept)
        self.weight = np.concatenate([self.weight, weight])[kept]
        if selected is not None:
            marks = selected if self.selected is None else np.append(self.selected, selected)
            self.selected = marks[kept]
        self.numbers = all_numbers[kept]
        self._keys = all_keys[kept]
        if len(self._keys) == self.size:
            self._ceiling[0] = min(self._ceiling[0], self._keys.max(initial=0))


def _take(rows: Any, positions: IntArray) -> Any:
    if not isinstance(rows, pa.RecordBatch):
        return rows[positions]
    taken = rows.take(pa.array(positions))
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in taken]
    return pa.RecordBatch.from_arrays(columns, names=taken.schema.names)


def _concatenate(first: Any, second: Any) -> Any:
    if not isinstance(first, pa.RecordBatch):
        return np.concatenate([first, second])
    kinds = zip(first.schema.types, second.schema.types, strict=True)
    if any(pa.types.is_decimal(one) != pa.types.is_decimal(other) for one, other in kinds):
        # Arrow would not round to the nearest doubles.
        first, second = _reconciled(first, second)
    try:
        return _promoted(first, second)
    except pa.ArrowException:  # Arrow cannot promote them, but they can be compared
        return _promoted(*_reconciled(first, second))


def _promoted(first: pa.RecordBatch, second: pa.RecordBatch) -> pa.RecordBatch:
    tables = [pa.Table.from_batches([rows]) for rows in (first, second)]
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks().to_batches()[0]


def _reconciled(*batches: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Return batches with the columns that differ in type brought to a common one."""
    kinds = zip(*(batch.schema.types for batch in batches), strict=True)
    differs = [len(set(one)) > 1 for one in kinds]
    return [
        pa.RecordBatch.from_arrays(
            [in_common_form(c) if d else c for c, d in zip(batch.columns, differs, strict=True)],
            names=batch.schema.names,
        )
        for batch in batches
    ]
