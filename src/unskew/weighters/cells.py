r"""Cell weights: one mechanism, several partitions.

A partition cuts the space of rows into cells. A row of cell C gets the weight
:math:`|C \cap U| / |C \cap S|`, the inverse of the cell's estimated probability of selection
:math:`\hat q(C)` (the paper's section on cluster-based estimation). Partitions differ only in how
they cut, so that is all a cell weighter writes: which encoder, which partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from unskew._compat import StrOptions
from unskew.errors import InputError, OverlapError
from unskew.numerics.nearest_points import NearestPoints
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.about import About
from unskew.population.feature_space import FeatureSpace
from unskew.population.sample import Sample
from unskew.population.summaries import CellCounts, Encoder, Question, Summaries, Summary
from unskew.weighters.base import InductiveWeighter
from unskew.weighters.saved_state import check_numbers

Empty = Literal["merge", "drop", "raise"]


class Partition(Protocol):
    """Cuts the space of encoded rows into cells."""

    n_cells: int

    def cells(self, values: FloatArray) -> IntArray:
        """Return each row's cell, or -1 where it lies in none."""


class Cells(NamedTuple):
    """A partition that was learned from the sample."""

    encoder: Encoder
    partition: Partition
    values: FloatArray
    """The sample rows, encoded."""
    counted: IntArray
    """The sample rows to count: all, unless some were used up to learn the partition."""
    learned: Any = None
    """What the weighter keeps of it once it is fitted: a tree, a clusterer."""


class CountedCells(NamedTuple):
    """A partition whose cells have been counted in sample and population.

    ``locator`` is its :class:`CellLocator`.
    """

    locator: Any
    sample_counts: FloatArray
    population_counts: FloatArray
    uncovered: float
    learned: Any

    @property
    def ratios(self) -> FloatArray:
        """The weight |C ∩ U| / |C ∩ S| of each cell; zero where no sample row could carry it."""
        counts = self.sample_counts
        return np.divide(
            self.population_counts, counts, out=np.zeros_like(counts), where=counts > 0
        )


class CellWeighter(InductiveWeighter, ABC):
    """Weighs by the counts of sample and population in the cells of a partition.

    Parameters
    ----------
    empty : {"merge", "drop", "raise"}, default="merge"
        What to do with population rows in cells without sample rows, or with values that no sample
        row has: count them in the cell of the nearest sample row (in the standardised feature
        space), leave them out, or refuse. The first two warn if it is more than 1 % of the
        population.
    """

    empty: Empty = "merge"

    assumes: ClassVar[str] = "within a cell, every row is equally likely to be selected"
    uncovered_means: ClassVar[str] = (
        "the share of the population in cells without sample rows, or with values that no sample "
        "row has"
    )
    _saved_types: ClassVar[tuple[str, ...]] = (
        "unskew.numerics.nearest_points.NearestPoints",
        "unskew.weighters.cells.CellLocator",
        "unskew.weighters.cells._Neighbours",
    )
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
    def _cells(self, sample: Sample) -> list[Cells]:
        """Return the partition, or several among which the counts decide.

        The sample's rows come in an order that does not depend on how they were shuffled.
        """

    def _choose(self, sample: Sample, counted: Sequence[CountedCells]) -> CountedCells:  # noqa: ARG002
        """Return the partition to use, now that the counts are known; set what was learned."""
        return counted[0]

    def _question(self, sample: Sample, about: About) -> Summary:  # noqa: ARG002
        ordered = sample.ordered
        partitions = self._cells(ordered)
        locators = [CellLocator(cells, ordered, self.empty) for cells in partitions]
        return Question(Summaries([CellCounts(locator) for locator in locators]), partitions)

    def _solve(self, sample: Sample, answer: Question[Summaries]) -> FloatArray:
        chosen = self._choose(sample, _count(sample, answer))
        self.locator_ = chosen.locator
        self.uncovered_ = chosen.uncovered
        if self.empty == "raise" and self.uncovered_ > 0:
            raise OverlapError(self._describe_uncovered(), self.uncovered_)
        self.population_counts_: FloatArray = chosen.population_counts
        self.sample_counts_: FloatArray = chosen.sample_counts
        self.cell_weights_ = chosen.ratios
        self.cells_, uncovered = self.locator_.locate(sample.batch, side="sample")
        rule = self._rule()
        return sample.design * rule.weights(sample.batch, self.cells_, uncovered, side="sample")

    def _weigh(self, sample: Sample) -> FloatArray:
        return self._rule()(sample.batch)

    def _check_state(self) -> None:
        super()._check_state()
        n_cells = int(self.locator_.n_cells)
        check_numbers("cell_weights_", self.cell_weights_, (n_cells,))
        for name in ("sample_counts_", "population_counts_"):  # differences may be -1e-16
            check_numbers(name, getattr(self, name), (n_cells,), least=-1e-6)

    def _rule(self) -> _CellRule:
        return _CellRule(self.locator_, self.cell_weights_)

    def _describe_uncovered(self) -> str:
        done = {
            "merge": 'It was counted in the cells of the nearest sample rows (empty="merge")',
            "drop": 'It was left out (empty="drop")',
            "raise": 'It is refused (empty="raise")',
        }[self.empty]
        return (
            f"{self.uncovered_:.1%} of the population lies in cells without sample rows, or holds "
            f"values that no sample row has. {done}; the weights cannot make the sample represent "
            "it."
        )


def _count(sample: Sample, answer: Question[Summaries]) -> list[CountedCells]:
    """Count the sample's rows, all of them also where only some are in memory."""
    partitions: list[Cells] = answer.learned
    found: list[CellCounts] = answer.summary.parts
    locators: list[Any] = [part.locator for part in found]
    if sample.in_memory:
        design = sample.design[sample.order]  # a replicate's, not that of the question
        pairs = zip(partitions, locators, strict=True)
        in_sample = [locator.sample_counts(design[cells.counted]) for cells, locator in pairs]
    else:
        in_sample = _counts_elsewhere(sample, partitions, locators)
    counted = []
    for cells, part, locator, counts in zip(partitions, found, locators, in_sample, strict=True):
        # A replicate may leave a cell without rows: its population is then uncovered too.
        population = np.where(counts > 0, part.counts, 0.0)
        lost = float((part.counts - population).sum())
        share = (part.uncovered + lost) / part.mass
        counted.append(CountedCells(locator, counts, population, share, cells.learned))
    return counted


def _counts_elsewhere(
    sample: Sample, partitions: Sequence[Cells], locators: Sequence[Any]
) -> list[FloatArray]:
    """Count all rows of a sample of which only some are in memory.

    The others may hold values that these lack, and are merged as the population's are.
    """
    found = sample.reduce(Summaries([CellCounts(locator) for locator in locators])).parts
    counts = [part.counts for part in found]
    for place, (cells, locator) in enumerate(zip(partitions, locators, strict=True)):
        # An honest partition does not count the rows from which it was learned.
        used_up = np.setdiff1d(np.arange(len(sample)), cells.counted)
        if len(used_up):
            rows = sample.ordered.take(used_up)
            counts[place] = counts[place] - rows.reduce(CellCounts(locator)).counts
    return counts


class _CellRule(NamedTuple):
    """The weight of a row is its cell's."""

    locator: CellLocator
    cell_weights: FloatArray

    def __call__(self, batch: pa.RecordBatch) -> FloatArray:
        return self.weights(batch, *self.locator.locate(batch, side="new rows"), side="new rows")

    def weights(
        self, batch: pa.RecordBatch, cells: IntArray, uncovered: BoolArray | None, *, side: str
    ) -> FloatArray:
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
    """Finds the cell of a row, and the nearest cells of a row that is in none with sample rows."""

    def __init__(self, cells: Cells, sample: Sample, empty: Empty) -> None:
        self._encoder, self._partition = cells.encoder, cells.partition
        self.n_cells = self._partition.n_cells
        self.empty = empty
        self._counted = sample.take(cells.counted)
        self._counted_cells = self._partition.cells(cells.values[cells.counted])
        # One entry more, so that cell -1 reads as one without sample rows.
        self._occupied = np.append(self.sample_counts(self._counted.design) > 0, False)

    def sample_counts(self, design: FloatArray) -> FloatArray:
        """Return the total design weight in each cell; ``design`` is that of the counted rows."""
        inside = self._counted_cells >= 0  # a clusterer may see noise
        counts: FloatArray = np.bincount(
            self._counted_cells[inside], weights=design[inside], minlength=self.n_cells
        ).astype(np.float64)
        return counts

    def locate(
        self, batch: pa.RecordBatch, *, side: str = "population"
    ) -> tuple[IntArray, BoolArray | None]:
        """Return each row's cell and which rows are uncovered; see ``summaries.Locator``."""
        values, unseen = self._encoder.transform(batch, side=side)
        cells = self._partition.cells(values)
        uncovered = ~self._occupied[cells]
        if unseen is not None:
            uncovered |= unseen
        if not uncovered.any():
            return cells, None
        return np.where(uncovered, -1, cells), uncovered

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
        share of it: uncovered rows are often many and alike. Sample rows that are equally near
        share a row equally; a row with an unseen category, say, is equally far from all the
        categories that the sample has.
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
        """Return what locating rows needs, which does not include the sample."""
        state = self.__dict__.copy()
        if self.empty == "merge":
            state["_neighbours"] = self._neighbours
        for name in ("_counted", "_counted_cells"):
            state.pop(name, None)
        return state

    @cached_property
    def _neighbours(self) -> _Neighbours:
        occupied = np.flatnonzero(self._occupied[self._counted_cells])
        space, points = self._counted.take(occupied).points("standard")
        distinct, place = np.unique(points, axis=0, return_inverse=True)
        pairs = np.column_stack([place.reshape(-1), self._counted_cells[occupied]])
        pairs, counts = np.unique(pairs, axis=0, return_counts=True)
        first = np.searchsorted(pairs[:, 0], np.arange(len(distinct) + 1))
        largest = float(np.abs(distinct).max(initial=0.0))
        return _Neighbours(space, NearestPoints(distinct), largest, first, pairs[:, 1], counts)


class _Neighbours(NamedTuple):
    """The distinct sample points, and the number of sample rows of each cell at each of them."""

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
