r"""Cell weights: one mechanism, several partitions.

A partition cuts the space of rows into cells. A row of cell C gets the weight
:math:`|C \cap U| / |C \cap S|`, the inverse of the cell's estimated probability of selection
:math:`\hat q(C)` (the paper's section on cluster-based estimation). Partitions differ only in how
they cut, so that is all a cell weighter writes: which encoder, which partition.

Population rows that lie in no cell with sample rows count with the nearest group of sample rows
(:class:`NearestGroups`). Comparing each with every sample row would cost the product of their
numbers, which no large population allows. So the sample's distinct points form at most
``MOST_GROUPS`` groups, and an uncovered row is compared with one point of each. Up to that number
of distinct points each is a group of its own, and the nearest group is the nearest sample row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from unskew.errors import OverlapError
from unskew.numerics.cell_routing import NearestCentre
from unskew.numerics.row_keys import hash_rows
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.within_cell_test import InCells
from unskew.population.cell_counts import CellCounts
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import About, Question, Summaries, Summary
from unskew.rows.design import Design, point_design
from unskew.rows.encode import ColumnCodes
from unskew.rows.sample import Rule, Sample
from unskew.weighters.inductive import InductiveWeighter, check_numbers
from unskew.weighters.linearisation import CalibratedWeights, Linearisation

MOST_GROUPS = 1024
"""As many as a pass can compare each of its rows with, and more than a sample of usual size has
distinct points of categories. Measured on one core: 100,000 rows of 20 columns in 0.2 s."""

_BLOCK_VALUES = 1 << 22
_REMEDY = ', or leave uncovered rows out: empty="drop"'


Empty = Literal["merge", "drop", "raise"]

EXAMINED_ROWS = 10_000
"""Population rows that are kept for a test of the cells, if a certificate asks for one."""
FEWEST_ROWS_A_CELL = 5
"""With fewer sample rows per cell on average, cells of the population are empty by chance."""


class CountedCells(NamedTuple):
    """A partition whose cells have been counted in sample and population."""

    cells: Cells
    sample_counts: FloatArray
    population_counts: FloatArray
    uncovered: float

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
        space; where the sample has more than 1,024 distinct rows, in the cells of a group of rows
        around the nearest of 1,024), leave them out, or refuse. The first two warn if it is more
        than 1 % of the population.
    """

    empty: Empty = "merge"

    _cautions: ClassVar[tuple[str, ...]] = ()
    """What a variance with these cells as given leaves out."""

    traits = replace(
        InductiveWeighter.traits,
        assumes="within a cell, every row is equally likely to be selected",
        uncovered_means=(
            "the share of the population in cells without sample rows, or with values that no "
            "sample row has"
        ),
    )

    @property
    def counts_one_half(self) -> bool:
        """Whether the cells were made from one random half of the sample and count the other."""
        return False

    @property
    def partition_assumption(self) -> str:
        """What a certificate has to assume of how the cells were made."""
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

    def _question(self, sample: Sample, about: About) -> Summary:
        partitions = self._cells(sample.ordered)
        asked: list[Summary] = [Summaries([CellCounts(one) for one in partitions])]
        if self.overlap != "ignore" and about.margins is None:
            asked.append(Reservoir(EXAMINED_ROWS))  # is selection even within cells?
        return Question(Summaries(asked), partitions)

    def _solve(self, sample: Sample, answer: Question[Summaries]) -> FloatArray:
        counts, *drawn = answer.summary.parts
        chosen = self._choose(sample, _count(sample, answer.learned, counts.parts))
        self.locator_ = chosen.cells
        self.uncovered_ = chosen.uncovered
        if self.empty == "drop" and not chosen.population_counts.any():
            raise OverlapError(
                "No population row lies in a cell with sample rows, and what lies elsewhere is "
                'left out (empty="drop"), so that every sample row would get weight zero. Use '
                'empty="merge", or weigh by fewer or coarser columns.',
                1.0,
            )
        self.population_counts_: FloatArray = chosen.population_counts
        self.sample_counts_: FloatArray = chosen.sample_counts
        if self.empty == "raise" and self.uncovered_ > 0:
            raise OverlapError(self._describe_uncovered(), self.uncovered_)
        self.cell_weights_ = chosen.ratios
        self.cells_, uncovered = self.locator_.locate(sample.batch, side="sample")
        self._examinable = (sample, drawn[0], counts.parts[0].mass) if drawn else None
        located = self.cells_, uncovered
        return sample.design * self.locator_.row_weights(
            sample.batch, self.cell_weights_, side="sample", located=located
        )

    def linearisation(self, sample: Sample) -> Linearisation | None:
        """Return how the weights follow the rows, with the cells as they are."""
        if self.counts_one_half:
            return None
        counted = (self.cells_ >= 0) & (sample.design > 0)
        alone = int((np.bincount(self.cells_[counted], minlength=1) == 1).sum())
        cautions = self._cautions
        if alone:
            cautions += (
                f"{alone} sample rows are alone in their cell and have no residual: with "
                'variance="hc3" they count with their deviation from the mean, otherwise not at '
                "all, and the variance is too small.",
            )
        locator, targets = self.locator_, self.population_counts_

        def predict(batch: pa.RecordBatch, _: FloatArray, effects: FloatArray) -> FloatArray:
            return np.column_stack([locator.row_weights(batch, one) for one in effects[:-1].T])

        return CalibratedWeights(
            sample.design * np.append(self.cell_weights_, 0.0)[self.cells_],
            np.empty((len(sample), 0)),
            predict,
            sample.design,
            levels=(self.cells_, targets / targets.sum()),
            cautions=cautions,
        )

    @property
    def rows_in_cells(self) -> tuple[InCells, InCells, float] | None:
        """Rows of sample and population in their cells, and how many rows these stand for.

        By them a certificate tests whether selection is even within the cells. None if they are
        elsewhere, or have design weights.
        """
        examinable = getattr(self, "_examinable", None)
        if examinable is None:
            return None
        sample, drawn, n_rows = examinable
        weighted = (sample.design != 1).any() or (drawn.weight != 1).any()
        if weighted or not sample.in_memory or drawn.rows is None:
            return None
        values = sample.codes.transform(drawn.rows, side="population").values
        population = InCells(values, self.locator_.locate(drawn.rows)[0])
        return InCells(sample.values, self.cells_), population, n_rows

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the rows that were examined: a file holds no population rows."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_examinable"}

    def _weigh(self, sample: Sample) -> FloatArray:
        return self._rule()(sample.batch)

    def locate(self, X: Any) -> IntArray:
        """Return the cell of each new row in memory; -1 where none with sample rows holds it."""
        new = Sample.from_data(X)
        self._match(new)
        return self.locator_.locate(new.batch, side="new rows")[0]

    def _check_state(self) -> None:
        super()._check_state()
        n_cells = int(self.locator_.n_cells)
        check_numbers("cell_weights_", self.cell_weights_, (n_cells,))
        for name in ("sample_counts_", "population_counts_"):  # differences may be -1e-16
            check_numbers(name, getattr(self, name), (n_cells,), least=-1e-6)

    def _rule(self) -> Rule:
        return partial(self.locator_.row_weights, cell_weights=self.cell_weights_, side="new rows")

    def _codes(self) -> ColumnCodes:
        return self.locator_.codes

    def _describe_unseen(self) -> str:
        if self.empty == "drop":
            return 'empty="drop" gives them none'
        return 'they are those of the nearest sample rows (empty="merge")'

    def _describe_uncovered(self) -> str:
        done = {
            "merge": 'It was counted in the cells of the nearest sample rows (empty="merge")',
            "drop": 'It was left out (empty="drop")',
            "raise": 'It is refused (empty="raise")',
        }[self.empty]
        text = (
            f"{self.uncovered_:.1%} of the population lies in cells without sample rows, or holds "
            f"values that no sample row has. {done}; the weights cannot make the sample represent "
            "it."
        )
        step = self.coverage_advice()
        return text if step is None else f"{text} {step.sentence()}"


def _count(
    sample: Sample, partitions: Sequence[Cells], found: Sequence[CellCounts]
) -> list[CountedCells]:
    """Count the sample's rows, all of them also where only some are in memory."""
    if sample.in_memory:
        design = sample.design[sample.order]  # a replicate's, not that of the question
        in_sample = [cells.sample_counts(design[cells.counted]) for cells in partitions]
    else:
        in_sample = _counts_elsewhere(sample, partitions)
    counted = []
    for cells, part, counts in zip(partitions, found, in_sample, strict=True):
        # A replicate may leave a cell without rows: its population is then uncovered too.
        population = np.where(counts > 0, part.counts, 0.0)
        lost = float((part.counts - population).sum())
        share = (part.uncovered + lost) / part.mass
        counted.append(CountedCells(cells, counts, population, share))
    return counted


def _counts_elsewhere(sample: Sample, partitions: Sequence[Cells]) -> list[FloatArray]:
    """Count all rows of a sample of which only some are in memory.

    The others may hold values that these lack, and are merged as the population's are.
    """
    found = sample.reduce(Summaries([CellCounts(cells) for cells in partitions])).parts
    counts = [part.counts for part in found]
    for place, cells in enumerate(partitions):
        # An honest partition does not count the rows from which it was learned.
        used_up = np.setdiff1d(np.arange(len(sample)), cells.counted)
        if len(used_up):
            rows = sample.ordered.take(used_up)
            counts[place] = counts[place] - rows.reduce(CellCounts(cells)).counts
    return counts


class Cells:
    """A partition that was learned from the sample.

    It finds the cell of a row, and where a row counts that is in no cell with sample rows.

    Parameters
    ----------
    sample : Sample
    encoder : ColumnCodes | Design
        Of rows, for the partition.
    partition : object
        With the number of its cells, ``n_cells``, and ``cells(values)``, which returns the cell of
        each encoded row, or -1 where it lies in none.
    values : ndarray of shape (n_rows, n_columns)
        The sample's rows, encoded.
    empty : {"merge", "drop", "raise"}
    counted : ndarray of int, optional
        The sample rows to count: all, unless some were used up to learn the partition.
    learned : object, optional
        What the weighter keeps of it once it is fitted: a tree, a clusterer.
    """

    def __init__(
        self,
        sample: Sample,
        encoder: ColumnCodes | Design,
        partition: Any,
        values: FloatArray,
        empty: Empty,
        *,
        counted: IntArray | None = None,
        learned: Any = None,
    ) -> None:
        self._encoder, self._partition, self.empty = encoder, partition, empty
        self.n_cells: int = partition.n_cells
        self.learned = learned
        self.counted = np.arange(len(sample)) if counted is None else counted
        self._sample = sample.take(self.counted)
        self._sample_cells = partition.cells(values[self.counted])
        # One entry more, so that cell -1 reads as one without sample rows.
        self._occupied = np.append(self.sample_counts(self._sample.design) > 0, False)

    @property
    def codes(self) -> ColumnCodes:
        """The codes of the columns."""
        return self._encoder.codes if isinstance(self._encoder, Design) else self._encoder

    def sample_counts(self, design: FloatArray) -> FloatArray:
        """Return the total design weight in each cell; ``design`` is that of the counted rows."""
        inside = self._sample_cells >= 0  # a clusterer may see noise
        cells, weight = self._sample_cells[inside], design[inside]
        return np.bincount(cells, weights=weight, minlength=self.n_cells).astype(np.float64)

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

    def row_weights(
        self,
        batch: pa.RecordBatch,
        cell_weights: FloatArray,
        *,
        side: str = "population",
        located: tuple[IntArray, BoolArray | None] | None = None,
    ) -> FloatArray:
        """Return the weight of each row: its cell's, or that of the nearest sample rows."""
        cells, uncovered = located or self.locate(batch, side=side)
        weights: FloatArray = np.append(cell_weights, 0.0)[cells]  # cell -1 takes the zero
        if uncovered is None:
            return weights
        if self.empty == "raise":
            raise OverlapError(
                f"{int(uncovered.sum())} of {len(weights)} rows lie in cells without sample rows "
                '(empty="raise").',
                float(uncovered.mean()),
            )
        if self.empty == "merge":
            rest = batch.filter(pa.array(uncovered))
            weights[uncovered] = self.groups.weights(rest, cell_weights, side=side)
        return weights

    def group_masses(self, batch: pa.RecordBatch, weight: FloatArray) -> FloatArray | None:
        """Return the weight of uncovered rows that each group of sample rows takes, if any does."""
        return self.groups.masses(batch, weight) if self.empty == "merge" else None

    def spread(self, masses: FloatArray) -> FloatArray:
        """Return what the weight that groups of sample rows took adds to each cell."""
        return self.groups.spread(masses)

    @cached_property
    def groups(self) -> NearestGroups:
        """The groups of sample rows with which uncovered rows count."""
        occupied = self._occupied[self._sample_cells] & (self._sample.design > 0)
        covered = np.flatnonzero(occupied)
        return NearestGroups(self._sample.take(covered), self._sample_cells[covered], self.n_cells)

    def __getstate__(self) -> dict[str, Any]:
        """Return what locating rows needs, which does not include the sample."""
        state = self.__dict__.copy()
        if self.empty == "merge":
            state["groups"] = self.groups
        for name in ("_sample", "_sample_cells", "counted", "learned"):
            state.pop(name, None)
        return state


class NearestGroups:
    """Groups of sample rows, and how many of each group's rows are in which cell.

    Each group is made of the sample rows that are nearest to one of ``MOST_GROUPS`` points, in the
    standardised feature space. The points are those of the sample with the smallest hash of their
    values: a random choice, which does not depend on the order of the rows.

    Parameters
    ----------
    sample : Sample
        The rows that count, all of them in some cell.
    cells : ndarray of shape (n_rows,)
        The cell of each.
    n_cells : int
    """

    def __init__(self, sample: Sample, cells: IntArray, n_cells: int) -> None:
        values = sample.values
        self._space = point_design(sample.codes, values)
        first, place = _distinct(self._space, values)
        points = self._points(values[first[:MOST_GROUPS]], side="sample")
        self._nearest = NearestCentre(points)
        groups = np.arange(len(first))
        for part in self._parts(len(first)) if len(first) > len(points) else ():
            groups[part] = self._nearest.cells(self._points(values[first[part]], side="sample"))
        pairs, counts = np.unique(groups[place] * n_cells + cells, return_counts=True)
        self._n_cells = n_cells
        self._group, self._cell = np.divmod(pairs, n_cells)
        self._sizes = np.bincount(self._group, weights=counts)
        self._share = counts / self._sizes[self._group]

    def masses(self, batch: pa.RecordBatch, weight: FloatArray) -> FloatArray:
        """Return the weight of the rows of a population that are nearest to each group."""
        codes, _ = self._space.codes.transform(batch, side="population")
        first, place = _distinct(self._space, codes)
        mass = np.bincount(place, weights=weight)
        masses = np.zeros(len(self._sizes))
        for part, row, group, share in self._nearest_groups(codes[first], side="population"):
            taken = share * mass[part][row]
            masses += np.bincount(group, weights=taken, minlength=len(masses))
        return masses

    def spread(self, masses: FloatArray) -> FloatArray:
        """Return what the masses of the groups add to each cell: its share of a group's rows."""
        taken = self._share * masses[self._group]
        return np.bincount(self._cell, taken, self._n_cells).astype(np.float64)

    def weights(self, batch: pa.RecordBatch, cell_weights: FloatArray, *, side: str) -> FloatArray:
        """Return for each row the mean weight of the sample rows of its nearest groups."""
        codes, _ = self._space.codes.transform(batch, side=side)
        first, place = _distinct(self._space, codes)
        means = np.bincount(self._group, weights=self._share * cell_weights[self._cell])
        weights = np.empty(len(first))
        for part, row, group, share in self._nearest_groups(codes[first], side=side):
            weights[part] = np.bincount(row, weights=share * means[group])
        return weights[place]

    def _nearest_groups(
        self, codes: FloatArray, *, side: str
    ) -> Iterator[tuple[slice, IntArray, IntArray, FloatArray]]:
        """Yield, for a part of the rows, pairs of a row and a nearest group, and its share.

        Groups that are as near share a row as they have sample rows.
        """
        for part in self._parts(len(codes)):
            row, group = self._nearest.all_nearest(self._points(codes[part], side=side))
            sizes = self._sizes[group]
            yield part, row, group, sizes / np.bincount(row, weights=sizes)[row]

    def _points(self, codes: FloatArray, *, side: str) -> FloatArray:
        points = self._space.of_codes(codes)
        self._space.check_distances(points, side=side, remedy=_REMEDY)
        return points

    def _parts(self, n_rows: int) -> Iterator[slice]:
        """Yield slices of rows whose points fit in memory, also where many columns are one-hot."""
        step = max(1024, _BLOCK_VALUES // len(self._space))
        return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def _distinct(space: Design, codes: FloatArray) -> tuple[IntArray, IntArray]:
    """Return one row of each distinct point, in the order of their hashes, and each row's place.

    Uncovered rows are often many and alike. The hash is of values, not of points, whose last digits
    may differ between machines.
    """
    keys = hash_rows(space.distinguish(codes))
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return first, place.reshape(-1)
