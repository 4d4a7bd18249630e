r"""The confidence ellipsoid of weights that have parameters, by M-estimation.

Weights such as :math:`e^{\lambda^\top\varphi(x)}` or :math:`1 + e^{-\beta^\top\varphi(x)}` follow
parameters that solve estimating equations. To first order :math:`W_i / \hat W_i - 1 = D_i^\top
\delta` for weights of the same total, where δ, the error of the parameters, is asymptotically
normal. The influence of every row on weighted means
(:class:`unskew.weighters.linearisation.Linearisation`) has a part through the weights; for means of
values v with :math:`\sum_i s_i D_i v_i^\top = 1`, s the shares of the weights, that part is the
row's influence on δ itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unskew.errors import ParameterError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.margins import Margins
from unskew.theory.asked import Asked
from unskew.theory.assumption_test import AssumptionTest
from unskew.theory.form_test import FormTest, TheirRows, check_form, sum_of_squares
from unskew.theory.not_covered import not_covered
from unskew.theory.partitions import why_no_region
from unskew.theory.regions import ParameterRegion, Region
from unskew.weighters.linearisation import Linearisation, left_by


class Parameters(NamedTuple):
    """What is known of the errors of weights, asymptotically."""

    region: Region
    number: int
    """Of parameters, or of replicates."""
    assumptions: tuple[str, ...]
    form: AssumptionTest
    """The test of whether weights of this form suffice."""


def read_parameters(weighter: Any, asked: Asked, delta: float, rows: IntArray) -> Parameters:
    """Return the region of a fitted weighter's parameters, or raise why there is none."""
    name, X, population = type(weighter).__name__, asked.X, asked.population
    if X is None:
        raise ParameterError(f"X, the sample, is needed for the covariance of {name}: pass X.")
    sample = asked.sample.select(weighter.columns_)
    line = weighter._linearisation(sample)
    responses = None if line is None else line.responses()
    if line is None or responses is None:
        not_covered(why_no_region(weighter))
    if population is None:
        raise ParameterError(
            f"population is needed for the covariance of {name}: pass the population of fit, or "
            "some of its rows."
        )
    shares = weighter.weights_ / weighter.weights_.sum()
    responses = responses - shares @ responses
    known = isinstance(population, Margins)
    theirs = None if known else asked.rows(weighter.columns_)
    root, degrees = _root(line, shares, responses, theirs)
    return Parameters(
        ParameterRegion(
            responses[rows], root, shares[rows], delta, degrees, unbiased=line.unbiased
        ),
        root.shape[1],
        (
            f"the weights needed have the form that {name} fits, with some parameters, and the "
            "errors of these are normal and small: to first order, for many rows",
            "the population's totals are known without error"
            if known
            else "rows of sample and population are independent draws",
            *line.cautions,
        ),
        FormTest(None) if theirs is None else check_form(line, sample, shares, theirs),
    )


def _root(
    line: Linearisation, shares: FloatArray, responses: FloatArray, theirs: TheirRows | None
) -> tuple[FloatArray, float]:
    """Return a root of the parameters' covariance, and its degrees of freedom.

    These are few where few rows have most of the influence.
    """
    gram = responses.T @ (shares[:, None] * responses)
    values = responses @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
    influence = line.influence(values, "m_estimator")
    own = influence.sample - shares[:, None] * values
    if line.unbiased and line.has_leverage:
        # As a jackknife would: such rows have moved the parameters towards themselves.
        leverage = shares * np.einsum("ij,ij->i", values, responses)
        own /= left_by(leverage)[:, None]
    covariance = sum_of_squares(own, influence.centred)
    if influence.population is not None and theirs is not None:
        parts = influence.population(theirs.batch)
        covariance += theirs.variance(parts, influence.n_population, influence.centred)
    size, directions = np.linalg.eigh(covariance)
    kept = size > 1e-12 * size.max(initial=0.0)
    parts = np.square(own @ (directions[:, kept] / np.sqrt(size[kept]))).sum(axis=1)
    degrees = float(parts.sum() ** 2 / np.maximum(parts @ parts, 1e-300))
    return directions[:, kept] * np.sqrt(size[kept]), max(degrees, 1.0)
