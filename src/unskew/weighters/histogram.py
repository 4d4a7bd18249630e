"""Weights by a grid: each column has buckets or values, and a cell is one of each.

:class:`FrequencyWeights` has a cell for each distinct row, :class:`HistogramWeights` cuts numbers
into buckets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from unskew.errors import InputError, ParameterError, which_there_are
from unskew.numerics.row_keys import DistinctRows
from unskew.numerics.typing import FloatArray, IntArray
from unskew.rows.design import lookup
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind
from unskew.rows.sample import Sample
from unskew.weighters.cells import FEWEST_ROWS_A_CELL, Cells, CellWeighter, CountedCells
from unskew.weighters.next_step import NextStep
from unskew.weighters.parameters import OneOrMore

FEW_BORDERS = 64
"""So many comparisons with whole columns take less time than a search for each value."""


def pieces(column: FloatArray, borders: FloatArray, *, by_value: bool) -> IntArray:
    """Return the piece of each value, or -1 where it is in none; missing values have their own.

    A piece is one of the distinct values in ``borders``; or it lies between two of them, where a
    border belongs to the piece above it, and the outer pieces are open.

    Examples
    --------
    >>> pieces(np.array([3.0, 2.0, np.nan]), np.array([1.0, 3.0]), by_value=True)
    array([ 1, -1,  3])
    >>> pieces(np.array([-5.0, 0.0, 99.0]), np.array([0.0, 10.0]), by_value=False)
    array([0, 1, 2])
    """
    if by_value:
        found = lookup(borders, np.arange(len(borders)), column)
    elif len(borders) > FEW_BORDERS:
        found = np.searchsorted(borders, column, side="right")
    else:
        reached = np.zeros(len(column), dtype=np.uint8)
        for border in borders:
            reached += column >= border
        found = reached.astype(np.int64)
    found[np.isnan(column)] = len(borders) + 1
    return found


class GridPartition:
    """The cells that hold sample rows; any other row lies in none of them.

    Parameters
    ----------
    borders : sequence of ndarray
        The distinct values of each column, or the borders of its buckets.
    by_value : sequence of bool
        Which of the two they are.
    values : ndarray of shape (n_rows, n_columns)
        The sample.
    """

    def __init__(
        self, borders: Sequence[FloatArray], by_value: Sequence[bool], values: FloatArray
    ) -> None:
        self._borders, self._by_value = borders, by_value
        self._distinct = DistinctRows(self.codes(values))
        self.n_cells = self._distinct.size

    def cells(self, values: FloatArray) -> IntArray:
        """Return each row's cell, or -1 where no sample row shares it."""
        return self._distinct.find(self.codes(values))

    def codes(self, values: FloatArray) -> IntArray:
        """Return the piece of each column in which a row is."""
        columns = zip(np.ascontiguousarray(values.T), self._borders, self._by_value, strict=True)
        return np.array([pieces(*each[:2], by_value=each[2]) for each in columns]).T


def _present(column: FloatArray) -> FloatArray:
    """Return the distinct values of a column, without the missing one."""
    return np.unique(column[~np.isnan(column)])


class FrequencyWeights(CellWeighter):
    r"""Weights :math:`n_x / m_x`: how often a point occurs in the population and in the sample.

    The paper's estimate :math:`m_x / n_x` of :math:`\Pr[s = 1 \mid x]` for points of a discrete
    set. Use it for a few columns with few values each; other data need cells that are larger than
    a point.

    Parameters
    ----------
    <CellWeighter parameters>
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
    uncovered_ : float
        The share of the population at points that no sample row has.
    cells_ : ndarray of shape (n_samples,)
        The number of each row's point.
    sample_counts_, population_counts_ : ndarray of shape (n_cells,)
        How often each point occurs.

    Examples
    --------
    >>> from unskew import FrequencyWeights
    >>> sample = [["north"], ["north"], ["south"]]
    >>> population = [["north"]] * 50 + [["south"]] * 50
    >>> FrequencyWeights().fit(sample, population=population).weights_
    array([0.75, 0.75, 1.5 ])
    """

    traits = replace(
        CellWeighter.traits,
        assumes="rows with equal values are equally likely to be selected",
        uncovered_means="the share of the population at points that no sample row has",
    )

    @property
    def partition_assumption(self) -> str:
        """What a certificate has to assume of how the cells were made."""
        return "cells are points, and the points that no sample row has are allowed for"

    def coverage_advice(self) -> NextStep | None:
        """Return how to leave less of the population uncovered."""
        points, rows = len(self.sample_counts_), self.sample_counts_.sum()
        if points * FEWEST_ROWS_A_CELL <= rows:
            return None
        return NextStep(
            f"{rows:,.0f} sample rows are {points:,} distinct points, and a point represents only "
            "population rows that equal it",
            weighters=("TreeWeights", "HistogramWeights"),
            fewer_columns=True,
        )

    def _cells(self, sample: Sample) -> list[Cells]:
        values = sample.values
        points = [_present(column) for column in values.T]
        partition = GridPartition(points, [True] * len(points), values)
        return [Cells(sample, sample.codes, partition, values, self.empty)]


DEFAULT_BUCKETS = 5


class HistogramWeights(CellWeighter):
    """Weights by counts in the cells of a histogram over all columns.

    Each column of numbers or times is cut into buckets; categories are buckets already, and missing
    values have one of their own. With k buckets in each of d columns there are up to k to the d
    cells, so this is for few columns.

    Parameters
    ----------
    buckets : int or mapping from column to int or list of borders, default=5
        The number of buckets of a column, or their borders in the column's own values (dates for a
        column of dates). Columns that a mapping leaves out get 5; columns without names are given
        by position.
    strategy : {"quantile", "width"}, default="quantile"
        Whether buckets hold about the same number of sample rows, or have the same width on the
        sample's range. The outermost buckets are unbounded.
    <CellWeighter parameters>
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
    uncovered_ : float
        The share of the population in cells that hold no sample row.
    cells_ : ndarray of shape (n_samples,)
        The number of each row's cell.
    sample_counts_, population_counts_ : ndarray of shape (n_cells,)
        How many rows are in each cell.

    Examples
    --------
    >>> from unskew import HistogramWeights
    >>> sample = [[1.0], [2.0], [3.0], [30.0]]
    >>> population = [[float(value)] for value in range(40)]
    >>> HistogramWeights(buckets={0: [20.0]}).fit(sample, population=population).weights_
    array([0.66666667, 0.66666667, 0.66666667, 2.        ])
    """

    buckets: OneOrMore | Mapping[Any, int | Sequence[Any]] = DEFAULT_BUCKETS
    strategy: Literal["quantile", "width"] = "quantile"

    traits = replace(
        CellWeighter.traits,
        uncovered_means="the share of the population in cells that hold no sample row",
        smoothed_by=("fewer buckets",),
        sharpened_by=("more buckets",),
    )

    def _cells(self, sample: Sample) -> list[Cells]:
        encoder, values = sample.codes, sample.values
        asked = self._buckets_by_column(encoder.names, named=sample.rows.named)
        by_value = [kind == Kind.CATEGORY for kind in encoder.kinds]
        borders = [
            self._borders(encoder, position, values[:, position], asked.get(name), sample.design)
            for position, name in enumerate(encoder.names)
        ]
        partition = GridPartition(borders, by_value, values)
        codes = partition.codes(values)[sample.design > 0]
        counts = [(len(np.unique(code)), own) for code, own in zip(codes.T, by_value, strict=True)]
        learned = [[n for n, own in counts if own == kind] for kind in (False, True)]
        return [Cells(sample, encoder, partition, values, self.empty, learned=learned)]

    def _choose(self, sample: Sample, counted: Sequence[CountedCells]) -> CountedCells:
        self._pieces = counted[0].cells.learned
        return super()._choose(sample, counted)

    def coverage_advice(self) -> NextStep | None:
        """Return how to leave less of the population uncovered: fewer buckets, fewer columns."""
        cut, uncut = self._pieces  # the numbers of buckets, of categories
        rows, cells = self.sample_counts_.sum(), math.prod(cut) * math.prod(uncut)
        most = rows / FEWEST_ROWS_A_CELL
        if cells <= most:
            return None
        settings: tuple[str, ...] = ("fewer buckets",)
        if not isinstance(self.buckets, Mapping):
            few = math.prod(uncut)
            enough = [
                k for k in range(2, self.buckets) if few * math.prod(min(n, k) for n in cut) <= most
            ]
            settings = tuple(f"buckets={k}" for k in enough[-1:])
        return NextStep(
            f"the columns make {cells:,} cells, of which the {rows:,.0f} sample rows occupy only "
            f"{len(self.sample_counts_):,}",
            settings=settings,
            weighters=("TreeWeights",),
            fewer_columns=True,
        )

    def _buckets_by_column(self, names: Sequence[str], *, named: bool) -> dict[str, Any]:
        if not isinstance(self.buckets, Mapping):
            return dict.fromkeys(names, self.buckets)
        asked = {
            column if named or isinstance(column, str) else f"x{column}": number
            for column, number in self.buckets.items()
        }
        for name in asked:
            if name not in names:
                raise ParameterError(
                    f"buckets names '{name}', which is not among the columns to weigh by."
                    f"{which_there_are(str(name), names)} Remove it from buckets, or weigh by it "
                    "too (columns=)."
                )
        return asked

    def _borders(
        self,
        encoder: ColumnCodes,
        position: int,
        column: FloatArray,
        asked: Any,
        design: FloatArray,
    ) -> FloatArray:
        """Return the borders of a column's buckets; the categories, if it holds such."""
        name, kind = encoder.names[position], encoder.kinds[position]
        if kind == Kind.CATEGORY:
            if isinstance(self.buckets, Mapping) and asked is not None:
                raise ParameterError(f"buckets names '{name}', whose categories are its buckets.")
            return _present(column)
        number = DEFAULT_BUCKETS if asked is None else asked
        if isinstance(number, Integral):
            if number < 1:
                raise ParameterError(
                    f"buckets of column '{name}' must be at least 1; got {number}."
                )
            return bucket_borders(column, design, int(number), self.strategy)
        try:
            # Borders are values of the column: numbers, or moments where it holds moments.
            borders, _ = encoder.columns[position].encode(pa.array(list(asked)))
        except (TypeError, ValueError, pa.ArrowException, InputError) as error:
            raise ParameterError(
                f"buckets of column '{name}' must be a number of buckets or a list of borders that "
                f"are values of the column; got {number!r} ({error})."
            ) from error
        if not np.isfinite(borders).all():
            raise ParameterError(f"buckets of column '{name}' must be finite; got {number!r}.")
        return np.unique(borders)


def bucket_borders(
    column: FloatArray, design: FloatArray, buckets: int, strategy: str
) -> FloatArray:
    """Return where the buckets of a column meet: halfway between neighbouring sample values."""
    present = ~np.isnan(column) & (design > 0)
    values, place = np.unique(column[present], return_inverse=True)
    if len(values) < 2:
        return np.empty(0)
    halves = values / 2  # of which no difference overflows
    if strategy == "width":
        return np.linspace(halves[0], halves[-1], buckets + 1)[1:-1] * 2
    halfway = (halves[:-1] + np.diff(halves) / 2) * 2
    if len(values) <= buckets:
        return halfway
    reached = np.cumsum(np.bincount(place, weights=design[present]))
    cuts = np.searchsorted(reached, reached[-1] * np.arange(1, buckets) / buckets)
    # A value that holds more rows than a bucket should is a bucket by itself.
    return halfway[np.unique(np.minimum(cuts, len(halfway) - 1))]
