r"""Tests of what certificates assume: selection that is even, and weights of the right form.

Certificates of cells assume that **selection is even within cells**
(:mod:`unskew.numerics.within_cell_test`). Certificates of weights with parameters assume that
**weights of the fitted form suffice**: then the weighted sample's mean of any function equals the
population's, up to noise. That test compares

- the square of each column, which is where an effect on selection bends;
- whether it is above the population's median, which is where an effect jumps;
- products of two columns, as many as there is room for.

Columns are standardised and kept within ±2: otherwise few rows with large squares and large weights
decide both the difference and its estimated variance, and the test rejects twice as often as its
level says. Each difference is divided by its standard error, from the rows' influence, through the
weights and directly, with residuals over one minus their leverage; the largest decides, by
Student's distribution with as many rows as the weights are worth and Bonferroni's inequality. One
statistic of all functions together would have less power where few columns matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.stats import t as student

from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.within_cell_test import even_within_cells
from unskew.rows.sample import Sample
from unskew.weighters.linearisation import Influence, Linearisation

LEVEL = 0.05
"""The level of the tests: the share of samples for which an assumption holds and is rejected all
the same."""


class AssumptionWords(NamedTuple):
    """What is said of a tested assumption; ``{p}`` is the p-value."""

    assumed: str
    """The assumption, in the indicative: "selection is even"."""
    supposed: str
    """The same where it is rejected: "selection were even"."""
    untested: str
    differs: str
    alike: str
    """What is said where the test was not made, rejects, and does not."""


EVEN = AssumptionWords(
    assumed="selection is even within cells",
    supposed="selection were even within cells",
    untested="Whether selection is even within cells was not tested: the rows that the test needs "
    'are kept only in memory after fit (not with overlap="ignore"), without weights, and cells '
    "must hold some of them.",
    differs="Selection differs within cells ({p}), so the counts do not bound the error of the "
    "weights. Use smaller cells, or cells in the columns by which selection differs.",
    alike="A test of whether selection is even within cells finds no difference ({p}); it can miss "
    "small ones.",
)
FORM = AssumptionWords(
    assumed="the weights have the right form",
    supposed="the weights had the right form",
    untested="Whether the weights have the right form was not tested: that needs rows of the "
    "population, and columns with squares, halves or products that are not matched.",
    differs="Squares, halves or products of the columns differ between the weighted sample and the "
    "population ({p}), so the covariance does not bound the error of the weights. Match more "
    "features.",
    alike="A test of squares, halves and products of the columns finds no difference between the "
    "weighted sample and the population ({p}); it can miss small ones.",
)


@dataclass(frozen=True)
class AssumptionTest:
    """The result of a test of an assumption.

    Attributes
    ----------
    p_value : float or None
        None where it could not be made.
    words : AssumptionWords
    """

    p_value: float | None
    words: AssumptionWords

    @property
    def rejected(self) -> bool:
        """Whether the assumption does not hold."""
        return self.p_value is not None and self.p_value < LEVEL

    def headline(self, likely: str) -> str:
        """Return the beginning of a statement, qualified unless the test lets it stand."""
        if self.p_value is not None and not self.rejected:
            return likely[:1].upper() + likely[1:]
        likely = likely[:1].lower() + likely[1:]
        if self.p_value is None:
            return f"If {self.words.assumed}, which was not tested, {likely}"
        supposed = f"{self.words.supposed}, which a test rejects (p = {self.p_value:.2g})"
        return f"Only if {supposed}, {likely}"

    @property
    def remark(self) -> str:
        """What the test says, in a sentence."""
        if self.p_value is None:
            return self.words.untested
        if self.rejected:
            return self.words.differs.format(p=f"p = {self.p_value:.2g}")
        return self.words.alike.format(p=f"p = {self.p_value:.2g}, level {LEVEL:g}")


MOST_FUNCTIONS = 30
"""Products fill up to this number of functions. Not tuned."""

MEDIAN_ROWS = 1_000
"""Rows of the population from which medians are taken. Any number near them would do."""

BLOCK = 2_048
"""Rows of the population at once: few enough to stay in the cache."""

LIMIT = 2.0
"""Standard deviations at which columns are cut before they are squared. Of 1.5, 2 and 2.5, the one
with the most power in the design of the benchmark whose level is right."""


class DrawnPopulation(NamedTuple):
    """Rows of the population."""

    batch: pa.RecordBatch
    shares: FloatArray
    """Of their design weights."""
    n_rows: int
    """How many the population has."""

    def variance(
        self, parts: FloatArray, n_fitted: int | None = None, centred: bool = True
    ) -> FloatArray:
        """Return the covariance of the mean of the rows' parts, over all rows or those fitted."""
        if centred:
            parts = parts - self.shares @ parts
        return sum_of_squares(self.shares[:, None] * parts, False) * self.share_of(n_fitted)

    def share_of(self, n_fitted: int | None) -> float:
        """Return these rows' number over that of all rows, or of those fitted."""
        return len(self.shares) / min(n_fitted or self.n_rows, self.n_rows)


def sum_of_squares(terms: FloatArray, centred: bool) -> FloatArray:
    """Return the sum of the outer products of rows, about their mean or about zero."""
    if centred:
        terms = terms - terms.mean(axis=0)
    return np.asarray(terms.T @ terms)


def check_form(
    line: Linearisation, sample: Sample, shares: FloatArray, population: DrawnPopulation
) -> AssumptionTest:
    """Test whether weights of the fitted form make sample and population alike."""
    # 1) The functions of the sample's rows, about their weighted means.
    space, points = sample.points("standard")
    functions = _Functions(
        lambda batch: space.transform(batch, side="population").values, population
    )
    values = functions.of(points)
    of_sample = values @ shares
    unit = np.maximum(values.var(axis=1), 1e-24)
    values -= of_sample[:, None]
    # 2) The influence of every row on the difference, through the weights and directly.
    influence = line.influence(values.T, "hc3")
    means, variance = functions.in_population(influence)
    variance += _squares(influence.sample, influence.centred)
    # 3) What is matched exactly has no variance, and differs by rounding alone.
    relative = variance / unit
    kept = relative > 1e-8 * max(float(relative.max(initial=0.0)), 1 / len(points))
    # 4) The largest of the differences in standard errors, with Bonferroni's inequality.
    worth = 1 / float(shares @ shares)
    if not kept.any() or worth <= 2:
        return AssumptionTest(None, FORM)
    largest = float((np.abs(of_sample - means)[kept] / np.sqrt(variance[kept])).max())
    p_value = min(1.0, 2 * int(kept.sum()) * float(student.sf(largest, worth - 1)))
    return AssumptionTest(p_value, FORM)


class _Functions:
    """The functions that are compared, and what the population's rows say of them.

    Parameters
    ----------
    points_of : callable
        Returns the points of rows of the population.
    population : DrawnPopulation
    """

    def __init__(
        self, points_of: Callable[[pa.RecordBatch], FloatArray], population: DrawnPopulation
    ) -> None:
        self.points_of, self.population = points_of, population
        n_rows = population.batch.num_rows
        some = population.batch.take(pa.array(np.arange(0, n_rows, -(-n_rows // MEDIAN_ROWS))))
        self.middle = np.median(np.nan_to_num(points_of(some)), axis=0)

    def of(self, points: FloatArray) -> FloatArray:
        """Return squares, halves, and products of neighbours up to a limit; a row for each."""
        columns = np.ascontiguousarray(points.T)
        above = columns > self.middle[:, None]
        np.clip(columns, -LIMIT, LIMIT, out=columns)
        # Products of neighbours first, then of columns two apart, and so on, up to the limit.
        d = len(columns)
        pairs = [(i, i + step) for step in range(1, d) for i in range(d - step)]
        pairs = pairs[: max(MOST_FUNCTIONS - 2 * d, 0)]
        found = np.empty((2 * d + len(pairs), columns.shape[1]))
        np.square(columns, out=found[:d])
        found[d : 2 * d] = above
        for row, (i, j) in zip(found[2 * d :], pairs, strict=True):
            np.multiply(columns[i], columns[j], out=row)
        return found

    def in_population(self, influence: Influence) -> tuple[FloatArray, FloatArray]:
        """Return the means, and the variance of these and of what follows from them."""
        means, first, second, ahead = np.zeros((4, 1))
        shares, batch = self.population.shares, self.population.batch
        for start in range(0, len(shares), BLOCK):
            rows, share = batch.slice(start, BLOCK), shares[start : start + BLOCK]
            parts = self.of(np.nan_to_num(self.points_of(rows)))
            means = means + parts @ share
            np.negative(parts, out=parts)
            if influence.population is not None:
                parts += influence.population(rows).T
            # A row adds its share times (part + the functions' means − the parts' mean).
            ahead = ahead + parts @ share
            parts *= share
            first, second = first + parts @ share, second + np.einsum("ij,ij->i", parts, parts)
        # Σ (share · (part + shift))², multiplied out, so that one pass over the rows is enough.
        shift = -ahead if influence.centred else means
        variance = second + shift * (2 * first + shift * float(shares @ shares))
        return means, variance * self.population.share_of(influence.n_population)


def _squares(terms: FloatArray, centred: bool) -> FloatArray:
    """Return each column's sum of squares, about its mean or about zero."""
    sums: FloatArray = np.einsum("ij,ij->j", terms, terms)
    return sums - len(terms) * terms.mean(axis=0) ** 2 if centred else sums


def even_selection(weighter: Any, merged: IntArray | None = None) -> AssumptionTest:
    """Test whether every row of a cell was equally likely to be selected.

    Parameters
    ----------
    weighter : CellWeighter
        Fitted.
    merged : ndarray of int, optional
        The coarser cell of each cell.
    """
    examined = getattr(weighter, "rows_in_cells", None)
    if examined is None:
        return AssumptionTest(None, EVEN)
    sample, drawn, n_rows = examined
    if merged is not None:
        sample, drawn = (
            side.take(side.cells >= 0)._replace(cells=merged[side.cells[side.cells >= 0]])
            for side in (sample, drawn)
        )
    return AssumptionTest(even_within_cells(sample, drawn, n_rows), EVEN)
