r"""Cell weights: one mechanism, several partitions.

A partition cuts the space of rows into cells. A row of cell C gets the weight
:math:`|C \cap U| / |C \cap S|`, the inverse of the cell's estimated probability of selection
:math:`\hat q(C)` (the paper's section on cluster-based estimation). Partitions differ only in how
they cut, so a cell weighter says just that: which encoder, which partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from unskew._compat import StrOptions
from unskew.errors import InputError, OverlapError
from unskew.numerics.nearest_points import NearestPoints
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.encode import ColumnCodes, FeatureSpace
from unskew.population.population import Population
from unskew.population.pushdown import CodeTests
from unskew.population.summaries import CellCounts, Encoder, Summaries
from unskew.weighters.base import InductiveWeighter, Sample, canonical_order

__all__ = ["CellWeighter", "Cells", "Counted", "Partition"]

Empty = Literal["merge", "drop", "raise"]


class Partition(Protocol):
    """Cuts the space of encoded rows into cells."""

    n_cells: int

    def cells(self, values: FloatArray) -> IntArray:
        """Return each row's cell, or -1 where it lies in none."""

    # One whose cells can be counted within an engine has ``keys`` and ``cells_of_keys`` too.


class Cells(NamedTuple):
    """A partition, the encoder that it understands, and the sample rows that it counts."""

    encoder: Encoder
    partition: Partition
    counted: IntArray
    """The sample rows to count: all, unless some were used up in making the partition."""


class Counted(NamedTuple):
    """A partition whose cells have been counted in sample and population."""

    locator: CellLocator
    answer: CellCounts
    rows: Sample

    def weights(self) -> FloatArray:
        """Return each sample row's |C ∩ U| / |C ∩ S|; zero in no cell, or in an empty one."""
        cells, _ = self.locator.locate(self.rows.rows.batch, side="sample")
        counts = self.locator.sample_counts
        ratio = np.divide(self.answer.counts, counts, out=np.zeros_like(counts), where=counts > 0)
        return np.append(ratio, 0.0)[cells]


class CellWeighter(InductiveWeighter, ABC):
    """Weighs by the counts of sample and population in the cells of a partition."""

    empty: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **InductiveWeighter._parameter_constraints,
        "empty": [StrOptions({"merge", "drop", "raise"})],
    }

    @property
    def _counts_one_half(self) -> bool:
        """Whether the cells were made from one random half of the sample and count the other."""
        return False

    def _partition_assumption(self) -> str:
        """Return what a certificate has to assume of how the cells were made."""
        return (
            "the cells were fixed without looking at who was selected: strictly true only of "
            "borders or clusters that were given, not of those found in the sample"
        )

    @abstractmethod
    def _cells(self, sample: Sample) -> Cells:
        """Return the partition, made from the sample."""

    def _partitions(self, sample: Sample) -> list[Cells]:
        """Return the partitions among which the counts decide; one, unless a weighter has more."""
        return [self._cells(sample)]

    def _choose(self, counted: Sequence[Counted]) -> int:  # noqa: ARG002
        """Return which of the partitions to use, now that their counts are known."""
        return 0

    def _fit(self, sample: Sample, population: Population) -> FloatArray:
        ordered = sample.take(canonical_order(sample))
        partitions = self._partitions(ordered)
        locators = [CellLocator(cells, ordered, self.empty) for cells in partitions]
        if sample.everyone is not None:
            _count_everyone(locators, partitions, ordered, sample.everyone)
        answers: list[CellCounts] = population.reduce(
            Summaries([CellCounts(locator) for locator in locators])
        ).parts
        chosen = self._choose(
            [Counted(*pair, sample) for pair in zip(locators, answers, strict=True)]
        )
        self.locator_, answer = locators[chosen], answers[chosen]
        self.uncovered_: float = answer.uncovered / answer.mass
        if self.empty == "raise" and self.uncovered_ > 0:
            raise OverlapError(f'{self._found_uncovered()} (empty="raise").', self.uncovered_)
        self.population_counts_: FloatArray = answer.counts
        self.sample_counts_: FloatArray = self.locator_.sample_counts
        # Weight |C ∩ U| / |C ∩ S|; a cell with no sample rows has no row to carry one.
        self.cell_weights_ = np.divide(
            self.population_counts_,
            self.sample_counts_,
            out=np.zeros_like(self.sample_counts_),
            where=self.sample_counts_ > 0,
        )
        self.cells_, _ = self.locator_.locate(sample.rows.batch, side="sample")
        return sample.design * self._rule().weights(sample.rows.batch, side="sample")

    def _weigh(self, sample: Sample) -> FloatArray:
        return self._rule()(sample.rows.batch)

    def _rule(self) -> _CellRule:
        return _CellRule(self.locator_, self.cell_weights_)

    def _found_uncovered(self) -> str:
        return (
            f"{self.uncovered_:.1%} of the population lies in cells without sample rows, or holds "
            "values that no sample row has"
        )

    def _told_uncovered(self) -> str:
        done = {
            "merge": 'It was counted in the cell of the nearest sample row (empty="merge")',
            "drop": 'It was left out (empty="drop")',
        }[self.empty]
        return (
            f"{self._found_uncovered()}. {done}; the weights cannot make the sample stand for it."
        )


def _count_everyone(
    locators: Sequence[CellLocator],
    partitions: Sequence[Cells],
    kept: Sample,
    everyone: Population,
) -> None:
    """Count a sample of which only some rows were kept, in one pass over all of it."""
    answers: list[CellCounts] = everyone.reduce(
        Summaries([CellCounts(locator) for locator in locators])
    ).parts
    for locator, cells, answer in zip(locators, partitions, answers, strict=True):
        # An honest partition does not count the rows on which it was made.
        used = CellCounts(locator)
        made_on = kept.take(np.setdiff1d(np.arange(len(kept)), cells.counted))
        used.update(made_on.rows.batch, made_on.design)
        locator.sample_counts = answer.counts - used.counts


class _CellRule(NamedTuple):
    """The weight of a row is its cell's."""

    locator: CellLocator
    cell_weights: FloatArray

    def __call__(self, batch: pa.RecordBatch) -> FloatArray:
        return self.weights(batch, side="new rows")

    def weights(self, batch: pa.RecordBatch, *, side: str) -> FloatArray:
        cells, uncovered = self.locator.locate(batch, side=side)
        weights: FloatArray = np.append(self.cell_weights, 0.0)[cells]  # cell -1 takes the zero
        if uncovered is None:
            return weights
        if self.locator.empty == "raise":
            raise OverlapError(
                f"{int(uncovered.sum())} of {len(weights)} rows lie in cells without sample rows "
                '(empty="raise").',
                float(uncovered.mean()),
            )
        if self.locator.empty == "merge":
            rest = batch.filter(pa.array(uncovered))
            place, point, cell, share = self.locator.nearest_cells(rest, side=side)
            weights[uncovered] = np.bincount(point, weights=share * self.cell_weights[cell])[place]
        return weights


class CellLocator:
    """Says in which cell a row lies, and what becomes of a row that no sample row can stand for."""

    def __init__(self, cells: Cells, sample: Sample, empty: Empty) -> None:
        self._encoder, self._partition, counted = cells
        self.n_cells = self._partition.n_cells
        self.empty = empty
        self._counted = replace(sample.take(counted), labels=None)
        values = self._encoder.transform(self._counted.rows.batch, side="sample").values
        self._counted_cells = self._partition.cells(values)
        inside = self._counted_cells >= 0  # a clusterer may leave rows out as noise
        counts = np.bincount(
            self._counted_cells[inside],
            weights=self._counted.design[inside],
            minlength=self.n_cells,
        )
        self.sample_counts = counts.astype(np.float64)
        # One entry more, so that cell -1 reads as one without sample rows.
        self._occupied = np.append(self.sample_counts > 0, False)

    def locate(
        self, batch: pa.RecordBatch, *, side: str = "population"
    ) -> tuple[IntArray, BoolArray | None]:
        """Return each row's cell and which rows are uncovered; see ``summaries.Locator``."""
        values, novel = self._encoder.transform(batch, side=side)
        cells = self._partition.cells(values)
        uncovered = ~self._occupied[cells]
        if novel is not None:
            uncovered |= novel
        if not uncovered.any():
            return cells, None
        cells = np.where(uncovered, -1, cells)
        return cells, uncovered

    @property
    def encoder(self) -> Encoder:
        """The encoder whose numbers the partition understands."""
        return self._encoder

    @property
    def is_countable(self) -> bool:
        """Whether cells can be written as expressions; see ``population.pushdown``."""
        return isinstance(self._encoder, ColumnCodes) and hasattr(self._partition, "keys")

    def keys(self, tests: CodeTests) -> list[Any]:
        """Return expressions that together say in which cell a row lies."""
        return self._partition.keys(tests)  # type: ignore[attr-defined]

    def cells_of_keys(self, keys: IntArray) -> tuple[IntArray, BoolArray]:
        """Return the cell of each combination of keys, and which of them hold no sample row."""
        cells = self._partition.cells_of_keys(keys)  # type: ignore[attr-defined]
        return cells, ~self._occupied[cells]

    def merged_counts(self, batch: pa.RecordBatch, weight: FloatArray) -> FloatArray:
        """Return what uncovered population rows add to the counts of the cells."""
        if self.empty != "merge":
            return np.zeros(self.n_cells)
        place, point, cell, share = self.nearest_cells(batch, side="population")
        mass = np.bincount(place, weights=weight)
        added: FloatArray = np.bincount(
            cell, weights=share * mass[point], minlength=self.n_cells
        ).astype(np.float64)
        return added

    def nearest_cells(
        self, batch: pa.RecordBatch, *, side: str
    ) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return each row's distinct point, and of distinct points the nearest cells.

        These are triples of a distinct point, a cell of its nearest sample rows, and the cell's
        share of it: rows out of reach are often many and alike. Sample rows that are equally near
        share a row evenly; a row with a novel category, say, is equally far from all the categories
        that the sample has.
        """
        space, nearest, largest, first, cells, counts = self._neighbours
        points = space.transform(batch, side=side).values
        _check_distances(max(largest, float(np.abs(points).max(initial=0.0))))
        distinct, place = np.unique(points, axis=0, return_inverse=True)
        point, near = nearest.find(distinct)
        point, entry = _expand(point, first[near], first[near + 1])
        share = counts[entry] / np.bincount(point, weights=counts[entry])[point]
        return place.reshape(-1), point, cells[entry], share

    def __getstate__(self) -> dict[str, Any]:
        """Return what locating rows needs, which is not the sample itself."""
        state = self.__dict__.copy()
        if self.empty == "merge":
            state["_neighbours"] = self._neighbours
        for name in ("_counted", "_counted_cells"):
            state.pop(name, None)
        return state

    @cached_property
    def _neighbours(self) -> _Neighbours:
        occupied = self._occupied[self._counted_cells]
        batch = self._counted.rows.batch.filter(pa.array(occupied))
        space = FeatureSpace(scaling="standard").fit(batch)
        points = space.transform(batch, side="sample").values
        distinct, place = np.unique(points, axis=0, return_inverse=True)
        pairs = np.column_stack([place.reshape(-1), self._counted_cells[occupied]])
        pairs, counts = np.unique(pairs, axis=0, return_counts=True)
        first = np.searchsorted(pairs[:, 0], np.arange(len(distinct) + 1))
        largest = float(np.abs(distinct).max(initial=0.0))
        return _Neighbours(space, NearestPoints(distinct), largest, first, pairs[:, 1], counts)


class _Neighbours(NamedTuple):
    """The distinct sample points, and how many sample rows of each cell are at each of them."""

    space: FeatureSpace
    nearest: NearestPoints
    largest: float
    """The largest coordinate of the points."""
    first: IntArray
    """Where in ``cells`` and ``counts`` the entries of each distinct point begin, and the end."""
    cells: IntArray
    counts: IntArray


def _expand(row: IntArray, begin: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
    """Return each row once for every entry from ``begin`` to ``end``, and these entries."""
    lengths = end - begin
    total = np.cumsum(lengths)
    within = np.arange(total[-1] if len(total) else 0) - np.repeat(total - lengths, lengths)
    return np.repeat(row, lengths), np.repeat(begin, lengths) + within


def _check_distances(largest: float) -> None:
    if not largest < 1e150:  # beyond, squares overflow; NaN is not below either
        raise InputError(
            "Some values are too large to take distances between rows, which merging uncovered "
            'rows needs. Rescale the columns, or use empty="drop".'
        )
