"""The calibration problem against reference solvers and derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from unskew.numerics.calibration import CalibrationProblem, independent
from unskew.numerics.distances import Linear, Logit, Propensity, Raking, Truncated

DISTANCES = {
    "raking": Raking(),
    "propensity": Propensity(),
    "linear": Linear(),
    "logit": Logit(0.3, 3.0),
    "truncated linear": Truncated(Linear(), 0.2, 2.5),
    "truncated raking": Truncated(Raking(), 0.0, 2.5),
}


@pytest.mark.parametrize("name", DISTANCES)
def test_factors_are_the_derivative_of_the_potential(name):
    distance, scores = DISTANCES[name], np.linspace(-2.1, 2.2, 40)
    step = 1e-5
    rise = (distance.potential(scores + step) - distance.potential(scores - step)) / (2 * step)
    assert np.allclose(rise, distance.factors(scores), atol=1e-8)
    slope = (distance.factors(scores + step) - distance.factors(scores - step)) / (2 * step)
    smooth = np.abs(slope - distance.slopes(scores)) < 1e-8
    assert smooth.sum() >= 38  # all but the kinks
    inside = distance.slopes(scores) > 0
    factors = distance.factors(scores)
    assert np.allclose(distance.inverse(factors)[inside], scores[inside], atol=1e-9)
    low, high = distance.range()
    assert factors.min() >= low
    assert factors.max() <= high


def test_the_logistic_curve_of_deville_and_sarndal():
    # F = [L(U-1) + U(1-L)e^{Au}] / [(U-1) + (1-L)e^{Au}], A = (U-L) / ((1-L)(U-1))
    low, high = 0.3, 3.0
    u = np.linspace(-3, 3, 13)
    steepness = (high - low) / ((1 - low) * (high - 1))
    e = np.exp(steepness * u)
    expected = (low * (high - 1) + high * (1 - low) * e) / ((high - 1) + (1 - low) * e)
    assert np.allclose(Logit(low, high).factors(u), expected, rtol=1e-12)
    assert Logit(low, high).slopes(np.zeros(1)) == pytest.approx(1.0)


def problem(distance, *, slack=0.0, ridge=0.0, seed=0):
    random = np.random.default_rng(seed)
    features = random.normal(size=(120, 4)) - [0.3, -0.2, 0.0, 0.1]
    shares = random.uniform(0.5, 1.5, 120)
    ratio = 6.0 if isinstance(distance, Propensity) else 1.0
    ends = np.full(4, slack), np.full(4, ridge)
    return CalibrationProblem(features, shares / shares.sum(), distance, ratio, *ends)


def primal(distance, factors):
    """The distance that each factor minimises: the convex conjugate of its potential."""
    if isinstance(distance, Linear):
        return (factors - 1) ** 2 / 2
    return factors * np.log(factors) - factors  # raking


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # old SciPy
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("distance", "low", "high"),
    [(Raking(), 0, np.inf), (Linear(), -np.inf, np.inf), (Linear(), 0.4, 1.8), (Raking(), 0, 1.9)],
)
def test_the_dual_solves_the_program(distance, low, high, seed):
    bounded = Truncated(distance, low, high) if np.isfinite(high) else distance
    given = problem(bounded, seed=seed)
    solved = given.solve()
    assert solved.certificate.converged
    reference = minimize(
        lambda factors: given.shares @ primal(distance, factors),
        np.ones(120),
        jac=lambda f: given.shares * (f - 1 if isinstance(distance, Linear) else np.log(f)),
        bounds=[(max(low, 1e-9) if isinstance(distance, Raking) else low, high)] * 120,
        constraints=[
            {"type": "eq", "fun": lambda f: (given.shares * f) @ given.features,
             "jac": lambda f: given.features.T * given.shares},
            {"type": "eq", "fun": lambda f: given.shares @ f - 1, "jac": lambda f: given.shares},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert np.allclose(solved.factors, reference.x, atol=2e-5)


@pytest.mark.parametrize("name", ["raking", "linear", "logit", "propensity"])
@pytest.mark.parametrize(("slack", "ridge"), [(0.05, 0.0), (0.0, 0.2), (0.05, 0.2)])
def test_soft_balance_satisfies_its_conditions(name, slack, ridge):
    given = problem(DISTANCES[name], slack=slack, ridge=ridge)
    solved = given.solve()
    assert solved.certificate.converged
    # The imbalance is -slack·sign - ridge·multiplier, and within the slack at multipliers of zero.
    left = given.imbalances(solved.factors)
    moved = solved.multipliers != 0
    expected = -slack * np.sign(solved.multipliers) - ridge * solved.multipliers
    assert np.allclose(left[moved], expected[moved], atol=1e-9)
    assert (np.abs(left[~moved]) <= slack + 1e-9).all()
    assert moved.any()


def test_collinear_features_are_found():
    random = np.random.default_rng(0)
    columns = random.normal(size=(50, 3))
    features = np.column_stack(
        [columns, columns @ [1.0, 2.0, -1.0], np.ones(50), columns[:, 0] * 3]
    )
    assert independent(np.cov(features, rowvar=False)).tolist() == [True] * 3 + [False] * 3
