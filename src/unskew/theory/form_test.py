r"""Whether weights with parameters suffice: a test of what they leave unmatched.

If the weights needed have the form that was fitted, the weighted sample's mean of any function
equals the population's, up to noise. The test compares squares and products of the columns; the
covariance of the differences is that of the rows' influence, through the weights and directly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.stats import chi2

from unskew.numerics.typing import FloatArray
from unskew.population.sample import Sample
from unskew.theory.assumption_test import LEVEL, AssumptionTest
from unskew.weighters.linearisation import Linearisation

MOST_FUNCTIONS = 30
"""Squares and products that are compared: few enough for their covariance. Not tuned."""


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
                "population, and columns with squares or products that are not matched."
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
    """Rows of the population, and how many it has."""

    batch: pa.RecordBatch
    n_rows: int

    def variance(
        self, parts: FloatArray, n_fitted: int | None = None, centred: bool = True
    ) -> FloatArray:
        """Return the covariance of the mean of the rows' parts, over all rows or those fitted."""
        used = min(n_fitted or self.n_rows, self.n_rows)
        return sum_of_squares(parts, centred) / (len(parts) * used)


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
    mine, population = _functions(points), _functions(np.nan_to_num(others))
    scale = np.maximum(mine.std(axis=0), 1e-12)
    mine, population = mine / scale, population / scale
    difference = shares @ mine - population.mean(axis=0)
    influence = line.influence(mine - shares @ mine, "m_estimator")
    parts = population.mean(axis=0) - population
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
    return FormTest(float(chi2.sf(statistic, int(kept.sum()))))


def _functions(points: FloatArray) -> FloatArray:
    """Return squares, then products of neighbouring columns, up to a limit."""
    columns = list((points**2).T)
    n_columns = points.shape[1]
    for step in range(1, n_columns):
        if len(columns) >= MOST_FUNCTIONS:
            break
        columns += [points[:, i] * points[:, i + step] for i in range(n_columns - step)]
    return np.column_stack(columns[:MOST_FUNCTIONS])
