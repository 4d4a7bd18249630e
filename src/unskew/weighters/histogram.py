"""Weights by the buckets of a histogram."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from unskew._compat import Interval, StrOptions
from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.rows.column_names import which_there_are
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind
from unskew.rows.sample import Sample
from unskew.weighters.cells import FEWEST_ROWS_A_CELL, Cells, CellWeighter, CountedCells
from unskew.weighters.frequency import FrequencyWeights
from unskew.weighters.grid import Buckets, ColumnGrid, GridPartition, Values
from unskew.weighters.next_step import NextStep

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

    buckets: int | Mapping[Any, int | Sequence[Any]] = DEFAULT_BUCKETS
    strategy: Literal["quantile", "width"] = "quantile"

    traits = replace(
        CellWeighter.traits,
        uncovered_means="the share of the population in cells that hold no sample row",
        smoothed_by=("fewer buckets",),
        sharpened_by=("more buckets",),
        saved_types=(*FrequencyWeights.traits.saved_types, "unskew.weighters.grid.Buckets"),
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CellWeighter._parameter_constraints,
        "buckets": [Interval(Integral, 1, None, closed="left"), Mapping],
        "strategy": [StrOptions({"quantile", "width"})],
    }

    def _cells(self, sample: Sample) -> list[Cells]:
        encoder, values = sample.codes, sample.values
        asked = self._buckets_by_column(encoder.names, named=sample.rows.named)
        grids = [
            self._grid(encoder, position, values[:, position], asked.get(name), sample.design)
            for position, name in enumerate(encoder.names)
        ]
        codes = [grid.codes(column) for grid, column in zip(grids, values.T, strict=True)]
        pieces = [len(np.unique(code[sample.design > 0])) for code in codes]
        learned = [
            [n for n, grid in zip(pieces, grids, strict=True) if isinstance(grid, kind)]
            for kind in (Buckets, Values)
        ]
        partition = GridPartition(grids, values)
        return [Cells(encoder, partition, values, np.arange(len(sample)), learned)]

    def _choose(self, sample: Sample, counted: Sequence[CountedCells]) -> CountedCells:
        self._pieces = counted[0].learned
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

    def _grid(
        self,
        encoder: ColumnCodes,
        position: int,
        column: FloatArray,
        asked: Any,
        design: FloatArray,
    ) -> ColumnGrid:
        name, kind = encoder.names[position], encoder.kinds[position]
        if kind == Kind.CATEGORY:
            if isinstance(self.buckets, Mapping) and asked is not None:
                raise ParameterError(f"buckets names '{name}', whose categories are its buckets.")
            return Values.of(column)
        number = DEFAULT_BUCKETS if asked is None else asked
        if isinstance(number, Integral):
            if number < 1:
                raise ParameterError(
                    f"buckets of column '{name}' must be at least 1; got {number}."
                )
            return Buckets(_borders(column, design, int(number), self.strategy))
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
        return Buckets(np.unique(borders))


def _borders(column: FloatArray, design: FloatArray, buckets: int, strategy: str) -> FloatArray:
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
