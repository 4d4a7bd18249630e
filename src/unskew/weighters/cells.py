r"""Cell weights: one mechanism, several partitions.

A partition cuts the space of rows into cells. A row of cell C gets the weight
:math:`|C \cap U| / |C \cap S|`, the inverse of the cell's estimated probability of selection
:math:`\hat q(C)` (the paper's section on cluster-based estimation). Partitions differ only in how
they cut, so that is all a cell weighter writes: which encoder, which partition.
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
from unskew.errors import OverlapError
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.within_cell_test import InCells
from unskew.population.about import About
from unskew.population.cell_counts import CellCounts
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import Encoder, Question, Summaries, Summary
from unskew.rows.encode import ColumnCodes
from unskew.rows.sample import Sample
from unskew.weighters.base import WARN_ABOVE
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.linearisation import CellShares, Linearisation
from unskew.weighters.merging import NearestGroups
from unskew.weighters.saved_state import check_numbers

Empty = Literal["merge", "drop", "raise"]

EXAMINED_ROWS = 10_000
"""Population rows that are kept for a test of the cells, if a certificate asks for one."""
FEWEST_ROWS_A_CELL = 5
"""With fewer sample rows per cell on average, cells of the population are empty by chance."""


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


class Examined(NamedTuple):
    """Rows in their cells, by which a certificate tests whether selection is even within them."""

    sample: InCells
    drawn: InCells
    n_rows: float


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

    traits = replace(
        InductiveWeighter.traits,
        assumes="within a cell, every row is equally likely to be selected",
        uncovered_means=(
            "the share of the population in cells without sample rows, or with values that no "
            "sample row has"
        ),
        saved_types=(
            "unskew.numerics.cell_routing.NearestCentre",
            "unskew.weighters.cells.CellLocator",
            "unskew.weighters.merging.NearestGroups",
        ),
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **InductiveWeighter._parameter_constraints,
        "empty": [StrOptions({"merge", "drop", "raise"})],
    }

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
        ordered = sample.ordered
        partitions = self._cells(ordered)
        # Of several partitions, one that is refused may not be the one that is chosen.
        limit = self._refused_mass(about) if len(partitions) == 1 else np.inf
        locators = [CellLocator(cells, ordered, self.empty) for cells in partitions]
        asked: list[Summary] = [Summaries([CellCounts(one, limit=limit) for one in locators])]
        if self.overlap != "ignore" and about.margins is None:
            asked.append(Reservoir(EXAMINED_ROWS))  # is selection even within cells?
        return Question(Summaries(asked), partitions)

    def _refused_mass(self, about: About) -> float:
        """Return the uncovered mass above which ``fit`` will refuse; infinite if not known."""
        if self.overlap in ("warn", "ignore") or about.n_rows is None or about.weighted:
            return np.inf
        share = WARN_ABOVE if isinstance(self.overlap, str) else self.overlap
        return share * about.n_rows

    def _solve(self, sample: Sample, answer: Question[Summaries]) -> FloatArray:
        counts, *drawn = answer.summary.parts
        chosen = self._choose(sample, _count(sample, answer.learned, counts.parts))
        self.locator_ = chosen.locator
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
        rule = self._rule()
        return sample.design * rule.weights(sample.batch, self.cells_, uncovered, side="sample")

    def linearisation(self, sample: Sample) -> Linearisation | None:
        """Return how the weights follow the rows, with the cells as they are."""
        if self.counts_one_half:
            return None
        rule, locator = self._rule(), self.locator_
        weights = sample.design * np.append(self.cell_weights_, 0.0)[self.cells_]

        def of_batch(batch: pa.RecordBatch, values: FloatArray) -> FloatArray:
            return rule._replace(cell_weights=values).weights(
                batch, *locator.locate(batch), side="population"
            )

        return CellShares(
            weights,
            sample.design,
            self.cells_,
            self.population_counts_,
            of_batch,
            self._linearisation_cautions(),
        )

    def _linearisation_cautions(self) -> tuple[str, ...]:
        """Return what a variance with these cells as given leaves out."""
        return ()

    @property
    def rows_in_cells(self) -> Examined | None:
        """Rows in their cells; None if they are elsewhere, or have design weights."""
        examinable = getattr(self, "_examinable", None)
        if examinable is None:
            return None
        sample, drawn, n_rows = examinable
        weighted = (sample.design != 1).any() or (drawn.weight != 1).any()
        if weighted or not sample.in_memory or drawn.rows is None:
            return None
        values = sample.codes.transform(drawn.rows, side="population").values
        theirs = InCells(values, self.locator_.locate(drawn.rows)[0])
        return Examined(InCells(sample.values, self.cells_), theirs, n_rows)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the rows that were examined: a file holds no population rows."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_examinable"}

    def _weigh(self, sample: Sample) -> FloatArray:
        return self._rule()(sample.batch)

    def _locate(self, X: Any) -> IntArray:
        """Return the cell of each new row in memory; -1 where none with sample rows holds it."""
        new = Sample.of(X)
        self._match(new)
        return self.locator_.locate(new.batch, side="new rows")[0]

    def _check_state(self) -> None:
        super()._check_state()
        n_cells = int(self.locator_.n_cells)
        check_numbers("cell_weights_", self.cell_weights_, (n_cells,))
        for name in ("sample_counts_", "population_counts_"):  # differences may be -1e-16
            check_numbers(name, getattr(self, name), (n_cells,), least=-1e-6)

    def _rule(self) -> _CellRule:
        return _CellRule(self.locator_, self.cell_weights_)

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
            weights[uncovered] = self.locator.groups.weights(rest, self.cell_weights, side=side)
        return weights


class CellLocator:
    """Finds the cell of a row, and where a row counts that is in no cell with sample rows."""

    def __init__(self, cells: Cells, sample: Sample, empty: Empty) -> None:
        self._encoder, self._partition = cells.encoder, cells.partition
        self.n_cells = self._partition.n_cells
        self.empty = empty
        self.light = isinstance(cells.encoder, ColumnCodes)
        self._counted = sample.take(cells.counted)
        self._counted_cells = self._partition.cells(cells.values[cells.counted])
        # One entry more, so that cell -1 reads as one without sample rows.
        self._occupied = np.append(self.sample_counts(self._counted.design) > 0, False)

    @property
    def codes(self) -> ColumnCodes:
        """The codes of the columns."""
        codes: ColumnCodes = getattr(self._encoder, "codes", self._encoder)  # type: ignore[arg-type]
        return codes

    def sample_counts(self, design: FloatArray) -> FloatArray:
        """Return the total design weight in each cell; ``design`` is that of the counted rows."""
        inside = self._counted_cells >= 0  # a clusterer may see noise
        cells, weight = self._counted_cells[inside], design[inside]
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

    def group_masses(self, batch: pa.RecordBatch, weight: FloatArray) -> FloatArray | None:
        """Return the weight of uncovered rows that each group of sample rows takes, if any does."""
        return self.groups.masses(batch, weight) if self.empty == "merge" else None

    def spread(self, masses: FloatArray) -> FloatArray:
        """Return what the weight that groups of sample rows took adds to each cell."""
        return self.groups.spread(masses)

    @cached_property
    def groups(self) -> NearestGroups:
        """The groups of sample rows with which uncovered rows count."""
        occupied = self._occupied[self._counted_cells] & (self._counted.design > 0)
        covered = np.flatnonzero(occupied)
        return NearestGroups(
            self._counted.take(covered), self._counted_cells[covered], self.n_cells
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what locating rows needs, which does not include the sample."""
        state = self.__dict__.copy()
        if self.empty == "merge":
            state["groups"] = self.groups
        for name in ("_counted", "_counted_cells"):
            state.pop(name, None)
        return state
