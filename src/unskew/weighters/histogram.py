"""Weights by the buckets of a histogram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from unskew._compat import Interval, StrOptions
from unskew.errors import ParameterError
from unskew.numerics.typing import FloatArray
from unskew.population.encode import ColumnCodes
from unskew.population.kinds import Kind
from unskew.weighters.base import Sample
from unskew.weighters.cells import Cells, CellWeighter, Empty
from unskew.weighters.grid import Buckets, ColumnGrid, GridPartition, Values
from unskew.weighters.typing import Total


class HistogramWeights(CellWeighter):
    """Weights by counts in the cells of a histogram over all columns.

    Each column of numbers or times is cut into buckets; categories are buckets already, and missing
    values have one of their own. With k buckets in each of d columns there are up to k to the d
    cells, so this is for few columns.

    Parameters
    ----------
    buckets : int or mapping from column to int or list of borders, default=5
        How many buckets a column has, or where they meet. Columns that a mapping leaves out get 5;
        columns without names go by position.
    strategy : {"quantile", "width"}, default="quantile"
        Whether buckets hold the same number of sample rows or are of the same width on the sample's
        range. The outermost buckets reach as far as the data do.
    empty : {"merge", "drop", "raise"}, default="merge"
        What becomes of population rows in cells that hold no sample row: they are counted with the
        nearest sample row's (in the standardised feature space), left out, or refused. The first
        two warn when it is more than 1 % of the population.
    total : {"sample", "population"}, default="sample"
        What the weights sum to: the number of sample rows, or the population's size.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CellWeighter._parameter_constraints,
        "buckets": [Interval(Integral, 1, None, closed="left"), dict],
        "strategy": [StrOptions({"quantile", "width"})],
    }

    def __init__(
        self,
        *,
        buckets: int | Mapping[Any, int | Sequence[float]] = 5,
        strategy: Literal["quantile", "width"] = "quantile",
        empty: Empty = "merge",
        total: Total = "sample",
    ) -> None:
        self.buckets = buckets
        self.strategy = strategy
        self.empty = empty
        self.total = total

    def _cells(self, sample: Sample) -> Cells:
        encoder = ColumnCodes().fit(sample.rows.batch)
        values = encoder.transform(sample.rows.batch, side="sample").values
        asked = self._buckets_by_column(encoder.names, named=sample.rows.named)
        grids: list[ColumnGrid] = [
            Values.of(column)
            if kind == Kind.CATEGORY
            else Buckets(_borders(column, asked[name], self.strategy, name))
            for name, kind, column in zip(encoder.names, encoder.kinds, values.T, strict=True)
        ]
        return Cells(encoder, GridPartition(grids, values), np.arange(len(sample)))

    def _buckets_by_column(
        self, names: Sequence[str], *, named: bool
    ) -> dict[str, int | Sequence[float]]:
        if not isinstance(self.buckets, Mapping):
            return dict.fromkeys(names, self.buckets)
        asked: dict[str, int | Sequence[float]] = dict.fromkeys(names, 5)
        for column, number in self.buckets.items():
            name = column if named or isinstance(column, str) else f"x{column}"
            if name not in asked:
                raise ParameterError(f"buckets names '{column}', which is not a column of X.")
            asked[name] = number
        return asked


def _borders(
    column: FloatArray, asked: int | Sequence[float], strategy: str, name: str
) -> FloatArray:
    """Return where the buckets of a column meet."""
    if not isinstance(asked, Integral):
        borders = np.unique(np.asarray(asked, dtype=np.float64))
        if not np.isfinite(borders).all():
            raise ParameterError(f"buckets of column '{name}' must be finite; got {asked}.")
        return borders
    if asked < 1:
        raise ParameterError(f"buckets of column '{name}' must be at least 1; got {asked}.")
    present = column[~np.isnan(column)]
    if not len(present):
        return np.empty(0)
    if strategy == "quantile":
        return np.unique(np.quantile(present, np.linspace(0, 1, int(asked) + 1)[1:-1]))
    return np.unique(np.linspace(present.min(), present.max(), int(asked) + 1)[1:-1])
