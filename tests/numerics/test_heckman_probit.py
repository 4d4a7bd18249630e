from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal, norm
from tests.numerics.heckman_problem import problem

from unskew.numerics.heckman import ProbitLikelihood, maximise_probit, outcome_probit


def test_it_is_the_probability_of_what_is_seen():
    """Against SciPy's distribution function of each combination of signs."""
    one = problem(n=60, classes=True)
    gamma, beta, rho = np.array([0.3, -0.5, 0.8]), np.array([0.5, 1.0]), -0.4
    total = norm.logcdf(-(one.selection.columns[~one.selected] @ gamma)).sum()
    for z, x, y in zip(one.z, one.outcome.columns, one.y, strict=True):
        sign = 1 if y else -1  # P(−ν < zγ, −q·ε < q·xβ), and −q·ε has the correlation q·ρ with −ν
        covariance = [[1, sign * rho], [sign * rho, 1]]
        total += np.log(multivariate_normal.cdf([z @ gamma, sign * (x @ beta)], cov=covariance))
    params = np.concatenate([gamma, beta, [np.arctanh(rho)]])
    assert ProbitLikelihood(one).value(params) == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("tau", [-1.5, 0.0, 0.4, 2.5])
def test_derivatives_are_those_of_the_value(tau):
    weight = np.random.default_rng(2).uniform(0.5, 2, 400)
    likelihood = ProbitLikelihood(problem(classes=True, weight=weight))
    params = np.array([0.3, -0.5, 0.8, 0.5, 1.0, tau])
    gradient = likelihood.derivatives(params)[0]
    np.testing.assert_allclose(
        approx_fprime(params, likelihood.value, 1e-6), gradient, rtol=1e-4, atol=1e-2
    )
    np.testing.assert_allclose(
        approx_fprime(params, lambda p: likelihood.derivatives(p)[0], 1e-6),
        likelihood.derivatives(params)[1],
        rtol=1e-4,
        atol=1e-2,
    )
    np.testing.assert_allclose(likelihood.scores(params).sum(axis=0), gradient, atol=1e-8)


@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.7])
def test_no_other_solver_gets_higher(rho):
    one = problem(n=1000, rho=rho, seed=3, classes=True)
    found = maximise_probit(one, outcome_probit(one))
    likelihood = ProbitLikelihood(one)
    other = minimize(
        lambda p: -likelihood.value(p),
        np.zeros(6),
        jac=lambda p: -likelihood.derivatives(p)[0],
        method="BFGS",
    )
    assert found.certificate.converged
    assert found.log_likelihood >= -other.fun - 1e-9
    np.testing.assert_allclose(found.params, other.x, atol=1e-3)
