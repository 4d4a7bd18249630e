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
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from unskew._compat import StrOptions
from unskew.errors import InputError, OverlapError
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
        locators = [CellLocator(cells, ordered, self.empty) for cells in self._partitions(ordered)]
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
        return sample.design * self._weights_of(sample, side="sample")

    def _weigh(self, sample: Sample) -> FloatArray:
        return self._weights_of(sample, side="new rows")

    def _weights_of(self, sample: Sample, *, side: str) -> FloatArray:
        cells, uncovered = self.locator_.locate(sample.rows.batch, side=side)
        weights: FloatArray = np.append(self.cell_weights_, 0.0)[cells]  # cell -1 takes the zero
        if uncovered is None:
            return weights
        if self.empty == "raise":
            raise OverlapError(
                f"{int(uncovered.sum())} of {len(sample)} rows lie in cells without sample rows "
                '(empty="raise").',
                float(uncovered.mean()),
            )
        if self.empty == "merge":
            rest = sample.rows.batch.filter(pa.array(uncovered))
            weights[uncovered] = self.locator_.nearest_cells(rest, side=side) @ self.cell_weights_
        return weights

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

    def __getstate__(self) -> dict[str, Any]:
        # The tree of neighbours is made anew from the rows when it is needed.
        return {name: value for name, value in vars(self).items() if name != "_neighbours"}

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
        return np.asarray(self.nearest_cells(batch, side="population").T @ weight)

    def nearest_cells(self, batch: pa.RecordBatch, *, side: str) -> csr_array:
        """Return, for each row, the cells of its nearest sample rows, with shares that sum to one.

        Sample rows that are equally near share a row evenly; a row with a novel category, say, is
        equally far from all the categories that the sample has.
        """
        points = _finite(self._neighbours.space.transform(batch, side=side).values)
        distinct, place = np.unique(points, axis=0, return_inverse=True)
        distances, _ = self._neighbours.tree.query(distinct)
        near: Any = self._neighbours.tree.query_ball_point(distinct, distances * (1 + 1e-9))
        lengths = np.array([len(found) for found in near])
        indices = np.concatenate([np.asarray(found, dtype=np.int64) for found in near])
        shape = len(distinct), self._neighbours.tree.n
        chosen = csr_array((np.ones(len(indices)), indices, np.append(0, lengths.cumsum())), shape)
        rows_per_cell = csr_array(chosen @ self._neighbours.rows_per_cell)
        shares = csr_array(rows_per_cell / rows_per_cell.sum(axis=1)[:, None])
        return csr_array(shares[place.reshape(-1)])

    @cached_property
    def _neighbours(self) -> _Neighbours:
        occupied = self._occupied[self._counted_cells]
        batch = self._counted.rows.batch.filter(pa.array(occupied))
        space = FeatureSpace(scaling="standard").fit(batch)
        points = _finite(space.transform(batch, side="sample").values)
        distinct, place = np.unique(points, axis=0, return_inverse=True)
        cells = self._counted_cells[occupied]
        shape = len(distinct), self.n_cells
        rows_per_cell = csr_array((np.ones(len(cells)), (place.reshape(-1), cells)), shape)
        return _Neighbours(space, cKDTree(distinct), rows_per_cell)


class _Neighbours(NamedTuple):
    """The distinct sample points, and how many sample rows of each cell are at each of them."""

    space: FeatureSpace
    tree: cKDTree
    rows_per_cell: csr_array


def _finite(points: FloatArray) -> FloatArray:
    if not (np.abs(points) < 1e150).all():  # beyond, squares overflow; NaN is not below either
        raise InputError(
            "Some values are too large to take distances between rows, which merging uncovered "
            'rows needs. Rescale the columns, or use empty="drop".'
        )
    return points
