"""The calibration problem against reference solvers and derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from unskew.numerics.calibration import CalibrationProblem, independent
from unskew.numerics.distances import Linear, Logit, Propensity, Raking, Truncated
from unskew.numerics.row_features import Indicators, RowFeatures

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
    rows = RowFeatures.from_parts([features])
    return CalibrationProblem(rows, shares / shares.sum(), distance, ratio, *ends)


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
    features = given.features.dense()
    solved = given.solve()
    assert solved.certificate.converged
    reference = minimize(
        lambda factors: given.shares @ primal(distance, factors),
        np.ones(120),
        jac=lambda f: given.shares * (f - 1 if isinstance(distance, Linear) else np.log(f)),
        bounds=[(max(low, 1e-9) if isinstance(distance, Raking) else low, high)] * 120,
        constraints=[
            {"type": "eq", "fun": lambda f: (given.shares * f) @ features,
             "jac": lambda f: features.T * given.shares},
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


def test_features_by_tables_are_those_of_the_matrix():
    random = np.random.default_rng(0)
    sizes = [3, 700, 2, 11, 20, 9, 5]
    levels = [Indicators(random.integers(-(size == 5), size, 2000), size) for size in sizes]
    parts = [*levels[:2], random.normal(size=(2000, 3)), *levels[2:], random.normal(size=(2000, 1))]
    matrix = np.hstack(
        [
            (p.places[:, None] == np.arange(p.width)).astype(float)
            if isinstance(p, Indicators)
            else p
            for p in parts
        ]
    )
    weights, kept = random.uniform(size=2000), random.uniform(size=matrix.shape[1]) < 0.7
    rows, centre = random.uniform(size=2000) < 0.8, random.normal(size=matrix.shape[1])
    scale = random.uniform(1, 2, matrix.shape[1])
    features = RowFeatures.from_parts(parts)
    features.moments(weights)  # what it keeps for the next call must not outlive the cells
    given = [(features, matrix, weights)]
    given += [(features.of_columns(kept), matrix[:, kept], weights)]
    given += [(features.of_rows(rows), matrix[rows], weights[rows])]
    given += [(features.standardised(centre, scale), (matrix - centre) / scale, weights)]
    for one, expected, w in given:
        assert np.array_equal(one.dense(), expected)
        assert np.allclose(one.sums(w), w @ expected, atol=1e-10)
        sums, gram = one.moments(w)
        assert np.allclose(sums, w @ expected, atol=1e-10)
        assert np.allclose(gram, expected.T @ (expected * w[:, None]), atol=1e-9)
        x = random.normal(size=one.width)
        assert np.allclose(one.scores(x), expected @ x, atol=1e-12)
    spread = np.sqrt(np.cov(matrix, rowvar=False, aweights=weights, bias=True).diagonal())
    constant = spread == 0
    assert np.allclose(features.spread(weights / weights.sum())[~constant], spread[~constant])
    assert features.are_indicators().tolist() == [j < 703 or 706 <= j < 753 for j in range(754)]
    one = np.zeros(754, dtype=bool)
    one[[1, 740]] = True
    assert np.array_equal(features.any_one(one), (matrix[:, [1, 740]] == 1).any(axis=1))
