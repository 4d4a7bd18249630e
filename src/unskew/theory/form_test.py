r"""Whether weights with parameters suffice: a test of what they leave unmatched.

If the weights needed have the form that was fitted, the weighted sample's mean of any function
equals the population's, up to noise. The test compares squares and products of the columns, which
are standardised and kept within ±2; the covariance of the differences is that of the rows'
influence, through the weights and directly, with residuals over one minus their leverage.

Without limits, few rows with large squares and large weights decide both the difference and its
estimated variance, and the test rejects twice as often as its level says. The statistic is compared
with Hotelling's distribution for as many rows as the weights are worth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.stats import f as f_distribution

from unskew.numerics.typing import FloatArray
from unskew.population.sample import Sample
from unskew.theory.assumption_test import LEVEL, AssumptionTest
from unskew.weighters.linearisation import Linearisation

MOST_FUNCTIONS = 30
"""Squares and products that are compared: few enough for their covariance. Not tuned."""


LIMIT = 2.0
"""Standard deviations at which columns are cut before they are squared. Of 1.5, 2 and 2.5, the one
with the most power in the design of the benchmark whose level is right."""


class FormTest(AssumptionTest):
    """The result of the test."""

    assumed = "the weights have the right form"
    supposed = "the weights had the right form"

    @property
    def remark(self) -> str:
        """What the test says, in a sentence."""
        if self.p_value is None:
            return (
                "Whether the weights have the right form was not tested: that needs rows of the "
                "population, columns with squares or products that are not matched, and more "
                "rows, by the effective sample size, than these."
            )
        if self.rejected:
            return (
                "Squares or products of the columns differ between the weighted sample and the "
                f"population (p = {self.p_value:.2g}), so the covariance does not bound the error "
                "of the weights. Match more features."
            )
        return (
            "A test of squares and products of the columns finds no difference between the "
            f"weighted sample and the population (p = {self.p_value:.2g}, level {LEVEL:g}); it can "
            "miss small ones."
        )


class TheirRows(NamedTuple):
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
        used = min(n_fitted or self.n_rows, self.n_rows)
        if centred:
            parts = parts - self.shares @ parts
        return sum_of_squares(self.shares[:, None] * parts, False) * (len(parts) / used)


def sum_of_squares(terms: FloatArray, centred: bool) -> FloatArray:
    """Return the sum of the outer products of rows, about their mean or about zero."""
    if centred:
        terms = terms - terms.mean(axis=0)
    return np.asarray(terms.T @ terms)


def check_form(
    line: Linearisation, sample: Sample, shares: FloatArray, theirs: TheirRows
) -> FormTest:
    """Test whether weights of the fitted form make sample and population alike."""
    space, points = sample.points("standard")
    others = space.transform(theirs.batch, side="population").values
    mine, population = (
        _functions(np.clip(rows, -LIMIT, LIMIT)) for rows in (points, np.nan_to_num(others))
    )
    scale = np.maximum(mine.std(axis=0), 1e-12)
    mine, population = mine / scale, population / scale
    means = theirs.shares @ population
    difference = shares @ mine - means
    influence = line.influence(mine - shares @ mine, "hc3")
    parts = means - population
    if influence.population is not None:
        parts = parts + influence.population(theirs.batch)
    covariance = sum_of_squares(influence.sample, influence.centred)
    covariance += theirs.variance(parts, influence.n_population, influence.centred)
    size, directions = np.linalg.eigh(covariance)
    # What is matched exactly has no variance, and differs by rounding alone.
    kept = size > 1e-8 * max(float(size.max(initial=0.0)), 1 / len(points))
    if not kept.any():
        return FormTest(None)
    statistic = float((((difference @ directions)[kept]) ** 2 / size[kept]).sum())
    rank, worth = int(kept.sum()), 1 / float(shares @ shares)
    if worth <= rank + 1:
        return FormTest(None)
    statistic *= (worth - rank) / (rank * (worth - 1))
    return FormTest(float(f_distribution.sf(statistic, rank, worth - rank)))


def _functions(points: FloatArray) -> FloatArray:
    """Return squares, then products of neighbouring columns, up to a limit."""
    columns = list((points**2).T)
    n_columns = points.shape[1]
    for step in range(1, n_columns):
        if len(columns) >= MOST_FUNCTIONS:
            break
        columns += [points[:, i] * points[:, i + step] for i in range(n_columns - step)]
    return np.column_stack(columns[:MOST_FUNCTIONS])
