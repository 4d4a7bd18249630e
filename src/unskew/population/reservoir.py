"""A uniform random sample of the population's rows, the same for every engine and thread count."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unskew.numerics.row_keys import lowest_keys, row_keys
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.summaries import Summary, SummaryType
from unskew.rows.kinds import in_common_form
from unskew.rows.tables import RowBlock

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
    rows : pyarrow.RecordBatch
        The rows kept, in population order; None if there were none.
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
        self._ceiling = [_HIGHEST_KEY]  # no row above it can stay; parts share it
        self._pieces: list[_Drawn] = []
        self._waiting = 0  # rows that have come since the others were last brought to their size

    @property
    def rows(self) -> Any:
        """The rows kept, in population order."""
        return self._settled().rows

    @property
    def weight(self) -> FloatArray:
        """Their design weights."""
        return self._settled().weight

    @property
    def selected(self) -> BoolArray | None:
        """Which of them are marked."""
        return self._settled().selected

    @property
    def numbers(self) -> IntArray:
        """Their numbers within the population."""
        return self._settled().numbers

    def __getstate__(self) -> dict[str, Any]:
        self._settled()  # so that no more than these travel
        return self.__dict__

    def update(self, rows: RowBlock) -> None:
        """Let the rows of a block compete for a place."""
        # Most rows of a long population fail here; those without weight count for nothing.
        kept, keys = lowest_keys(self.seed, rows.start, len(rows), self._ceiling[0])
        if not rows.unweighted:
            heavy = rows.weight[kept] > 0
            kept, keys = kept[heavy], keys[heavy]
        if len(kept) > self.size:
            lowest = np.sort(np.argpartition(keys, self.size)[: self.size])
            kept, keys = kept[lowest], keys[lowest]
        if len(kept):
            selected = None if rows.selected is None else rows.selected[kept]
            taken = _take(rows.batch, kept)
            self._add(_Drawn(taken, rows.weight[kept], selected, rows.start + kept, keys))

    def merge(self, other: Reservoir) -> None:
        """Let the other's rows compete for a place."""
        for piece in other._pieces:
            self._add(piece)

    def draw(
        self,
        n_rows: int,
        weight: FloatArray | None,
        selected: BoolArray | None,
        take: Callable[[IntArray], Any],
    ) -> None:
        """Draw from rows that can be taken by their numbers, without looking at any other."""
        numbers = np.arange(n_rows) if weight is None else np.flatnonzero(weight > 0)
        keys = row_keys(self.seed, 0, n_rows)
        if len(numbers) > self.size:
            numbers = np.sort(numbers[np.argpartition(keys[numbers], self.size)[: self.size]])
        if len(numbers):
            weights = np.ones(len(numbers)) if weight is None else weight[numbers]
            marks = None if selected is None else selected[numbers]
            self._add(_Drawn(_decoded(take(numbers)), weights, marks, numbers, keys[numbers]))

    def first(self, size: int) -> IntArray:
        """Return the positions of the rows that a smaller reservoir would keep."""
        return np.sort(np.argsort(self._settled().keys, kind="stable")[:size])

    def whole(self, n_rows: int) -> bool:
        """Whether these are all rows of a population of this size."""
        return len(self.weight) == n_rows

    def answer(self, question: SummaryType) -> SummaryType:
        """Answer a question from the rows kept, as if they were the population."""
        if self.rows is not None:
            question.update(RowBlock(self.rows, self.weight, self.selected))
        question.finish()
        return question

    def count(self, times: IntArray) -> None:
        """Let each of the rows kept count so many times."""
        drawn = self._settled()
        self._pieces = [drawn._replace(weight=drawn.weight * times)]

    def _add(self, piece: _Drawn) -> None:
        """Take rows in; those above the ceiling leave again when many have come."""
        self._pieces.append(piece)
        self._waiting += len(piece.keys)
        if 2 * self._waiting >= self.size:
            self._settled()

    def _settled(self) -> _Drawn:
        """Return the rows that stay, as one piece."""
        if not self._pieces:
            return _NOTHING
        if len(self._pieces) > 1 or len(self._pieces[0].keys) > self.size:
            self._pieces = [_together(self._pieces).lowest(self.size)]
        self._waiting = 0
        drawn = self._pieces[0]
        if len(drawn.keys) == self.size:
            self._ceiling[0] = min(self._ceiling[0], drawn.keys.max(initial=0))
        return drawn


class KeptReservoirs:
    """The reservoirs that the passes over a population have filled.

    A reservoir contains every smaller one of its seed, so the largest answers them all: those of
    one pass, and those of later passes over the same columns.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, Reservoir] = {}

    def answer(self, question: Summary, columns: Hashable, n_rows: int) -> bool:
        """Fill a reservoir from one that is kept, if possible; return whether it was."""
        if type(question) is not Reservoir:
            return False
        kept = self._kept.get((question.seed, columns))
        if kept is None or (question.size > kept.size and not kept.whole(n_rows)):
            return False
        question.merge(kept)
        return True

    def keep(self, questions: Sequence[Summary], columns: Hashable) -> None:
        """Keep the reservoirs among the answers of a pass over these columns."""
        for question in questions:
            if type(question) is Reservoir:
                self._kept[question.seed, columns] = question

    @staticmethod
    def largest(questions: Sequence[Summary]) -> list[Summary]:
        """Return the questions without those reservoirs that a larger one of the seed answers."""
        reservoirs = [question for question in questions if type(question) is Reservoir]
        reservoirs.sort(key=lambda reservoir: reservoir.size)
        largest = {reservoir.seed: reservoir for reservoir in reservoirs}
        return [q for q in questions if type(q) is not Reservoir or largest[q.seed] is q]


class _Drawn(NamedTuple):
    """Rows that compete for a place."""

    rows: pa.RecordBatch | None
    weight: FloatArray
    selected: BoolArray | None
    numbers: IntArray
    keys: NDArray[np.uint64]

    def lowest(self, size: int) -> _Drawn:
        """Return the rows with the smallest keys, in population order."""
        kept = np.arange(len(self.keys))
        if len(kept) > size:
            kept = np.argpartition(self.keys, size)[:size]
        kept = kept[np.argsort(self.numbers[kept], kind="stable")]  # mostly in order already
        marks = None if self.selected is None else self.selected[kept]
        rows = _take(self.rows, kept)
        return _Drawn(rows, self.weight[kept], marks, self.numbers[kept], self.keys[kept])


_NOTHING = _Drawn(
    None, np.empty(0), None, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
)


def _together(pieces: Sequence[_Drawn]) -> _Drawn:
    rows, weights, marks, numbers, keys = zip(*pieces, strict=True)
    return _Drawn(
        _concatenated(rows),
        np.concatenate(weights),
        None if marks[0] is None else np.concatenate(marks),
        np.concatenate(numbers),
        np.concatenate(keys),
    )


def _take(rows: pa.RecordBatch, positions: IntArray) -> pa.RecordBatch:
    if len(positions) < rows.num_rows or (np.diff(positions) != 1).any():
        rows = rows.take(pa.array(positions))
    return _decoded(rows)


def _decoded(rows: pa.RecordBatch) -> pa.RecordBatch:
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in rows]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _concatenated(pieces: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches as one; columns that differ in type are brought to a common one."""
    kinds = zip(*(piece.schema.types for piece in pieces), strict=True)
    differs = [len(set(one)) > 1 for one in kinds]
    if any(differs):
        pieces = [
            pa.RecordBatch.from_arrays(
                [
                    in_common_form(c) if d else c
                    for c, d in zip(piece.columns, differs, strict=True)
                ],
                names=piece.schema.names,
            )
            for piece in pieces
        ]
    tables = [pa.Table.from_batches([piece]) for piece in pieces]
    whole = pa.concat_tables(tables, promote_options="permissive")
    return whole.combine_chunks().to_batches()[0]
