r"""Each column by itself: shares of its categories, and shares below its quantiles.

A classifier or a distance over all columns passes over one category that is three times too
frequent. Here every share is compared by itself: with the masses a and b of each row in the sample
and in the population, a cell C has the difference :math:`t_C = \sum_{i \in C} (a_i - b_i)`, and the
statistic is the largest :math:`|t_C| / s_C`, where s is the standard deviation of t in draws from
the null distribution. Its p-value is from the largest of all cells in these same draws, which
corrects for the number of cells and of columns, however they depend on each other (Westfall and
Young, Resampling-Based Multiple Testing, 1993).
"""

from __future__ import annotations

import numpy as np

from unskew.diagnostics.diagnosis import Comparison
from unskew.diagnostics.sides import DrawnSides, Sides
from unskew.numerics.typing import FloatArray, IntArray

MAX_ROWS = 5000
"""Of each side, drawn uniformly at random."""
MAX_VALUES = 10**6
"""Rows times columns at most: of many columns, fewer rows are compared."""
N_CUTS = 5
"""Into so many parts quantiles cut a column of numbers: the other tests look at these closely."""
FEW = 3
"""A cell counts from so many rows on that the smaller side is expected to have in it, and out."""


def test_columns(sides: Sides, drawn: DrawnSides, null: FloatArray) -> tuple[Comparison, str, int]:
    """Return the largest difference of a share, where it is, and of how many.

    Parameters
    ----------
    sides : Sides
    drawn : DrawnSides
        The rows to compare.
    null : ndarray of shape (n_draws, n)
        Their mass in the sample less that in the population, in draws from the null distribution.
    """
    masses = np.vstack([drawn.sample, drawn.population, null])
    sizes = 1 / np.square(drawn.sample).sum(), 1 / np.square(drawn.population).sum()
    variance = float(np.square(drawn.sample - drawn.population).sum())
    largest, by_chance, where, n_cells = 0.0, np.zeros(len(null)), "", 0
    for column in range(len(sides.codes.names)):
        labels, shares = _shares(sides, column, drawn.rows, masses)
        sample, population, draws = shares[:, 0], shares[:, 1], shares[:, 2:]
        # The deviation of rows of one distribution, too: where signs are flipped, a cell without
        # sample rows would have next to none. Cells of few rows are too skewed for either.
        common = np.average([sample, population], axis=0, weights=sizes)
        own = np.sqrt(np.maximum(common * (1 - common), 0.0) * variance)
        spread = draws.std(axis=1)
        enough = np.minimum(common, 1 - common) * min(sizes) >= FEW
        told = np.flatnonzero((spread > 1e-12) & enough)
        if not len(told):
            continue
        z = np.abs(sample - population)[told] / np.maximum(spread, own)[told]
        by_chance = np.maximum(by_chance, (np.abs(draws[told]) / spread[told, None]).max(axis=0))
        n_cells += len(told)
        if z.max() > largest:
            largest, where = float(z.max()), labels[told[int(z.argmax())]]
    p_value = (1 + int((by_chance >= largest - 1e-9).sum())) / (1 + len(null))
    return Comparison(largest, None, None, p_value), where, n_cells


def _shares(
    sides: Sides, column: int, rows: IntArray, masses: FloatArray
) -> tuple[list[str], FloatArray]:
    """Return the share of each of a column's cells, one row a cell, in each of the masses."""
    from scipy import sparse

    name, values = sides.codes.names[column], sides.values[rows, column]
    present = ~np.isnan(values)
    known, form = values[present], sides.codes.format_value
    cell = np.zeros(len(values), dtype=np.int64)  # the first is that of missing values
    labels = [f"{name} is missing"]
    if sides.is_category[column]:
        levels, cell[present] = np.unique(known, return_inverse=True)
        labels += [f"{name} = {form(column, float(level))}" for level in levels]
    elif len(known):
        levels = np.unique(np.quantile(known, np.arange(1, N_CUTS) / N_CUTS, method="lower"))
        cell[present] = np.searchsorted(levels, known)
        labels += [f"{name} ≤ {form(column, float(level))}" for level in levels]
        labels += [f"{name} > {form(column, float(levels[-1]))}"]
    cell[present] += 1
    one_each = (np.ones(len(cell)), (cell, np.arange(len(cell))))
    shares: FloatArray = sparse.csr_matrix(one_each, shape=(len(labels), len(cell))) @ masses.T
    if not sides.is_category[column]:
        shares[1:] = shares[1:].cumsum(axis=0)
    return labels, shares
