"""The dual certificate against models that are refitted."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from unskew.errors import InputError, ParameterError
from unskew.theory import dual_certificate
from unskew.theory.models import KernelMetric


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = X[:, 0] ** 2 + 0.3 * random.normal(size=60)
    return X, y, rbf_kernel(X, gamma=0.5), random.gamma(3.0, size=60)


def fit(X, y, weights, alpha=0.7):
    return KernelRidge(alpha=alpha, kernel="rbf", gamma=0.5).fit(X, y, sample_weight=weights)


def test_no_refit_is_further_away(problem):
    X, y, K, weights = problem
    model = fit(X, y, weights)
    random = np.random.default_rng(1)
    ratios = []
    for _ in range(30):
        other = weights * random.gamma(8.0, 1 / 8, size=60)
        moved = fit(X, y, other).dual_coef_ - model.dual_coef_
        realised = np.sqrt(moved @ K @ moved)
        given = {
            "coefficients": model.dual_coef_,
            "kernel_matrix": K,
            "weights": weights,
            "other_weights": other,
        }
        plain, curved = dual_certificate(**given), dual_certificate(**given, alpha=0.7)
        assert realised <= curved <= plain
        ratios.append([plain / realised, curved / realised])
    assert (np.median(ratios, axis=0) < [8, 2.5]).all()


def test_the_same_weights_move_nothing(problem):
    X, y, K, weights = problem
    a = fit(X, y, weights).dual_coef_
    given = {"coefficients": a, "kernel_matrix": K, "weights": weights}
    assert dual_certificate(**given, other_weights=weights) == 0


def test_one_point_by_hand():
    # h(x) = w y / (w + alpha): a = w y / (w + alpha) with K = 1, so |g| = |a| |w'/w - 1|.
    a = 2.0 * 3.0 / (2.0 + 1.0)
    bound = dual_certificate(
        coefficients=[a], kernel_matrix=[[1.0]], weights=[2.0], other_weights=[5.0]
    )
    assert bound == pytest.approx(a * 1.5)
    curved = dual_certificate(
        coefficients=[a], kernel_matrix=[[1.0]], weights=[2.0], other_weights=[5.0], alpha=1.0
    )
    # In the norm of the curvature it is exact: (alpha + w') d^2 = alpha^2 g^2 / (alpha + w').
    assert curved == pytest.approx(a * 1.5 / np.sqrt(6.0))
    moved = 5.0 * 3.0 / 6.0 - a
    assert moved**2 * 6.0 == pytest.approx((a * 1.5) ** 2 / 6.0)


def test_curvature_is_the_inverse_of_the_hessian(problem):
    _, _, K, weights = problem
    metric = KernelMetric(K, np.ones(60), 0.7, curvature=weights)
    b = np.random.default_rng(2).normal(size=(60, 3))
    # A^{-1} Phi b = Phi (alpha + W K)^{-1} b
    expected = b.T @ K @ np.linalg.solve(0.7 * np.eye(60) + weights[:, None] * K, b)
    np.testing.assert_allclose(metric.gram(b), expected, rtol=1e-8, atol=1e-10)


def test_refits_by_conjugate_gradients_are_refits(problem):
    X, y, K, weights = problem
    model = fit(X, y, weights)
    random = np.random.default_rng(3)
    ratios = random.uniform(0.6, 1.8, size=(60, 4))
    metric = KernelMetric(K, -0.7 * model.dual_coef_, 0.7, curvature=0.6 * weights)
    moves = metric.refit_changes(ratios - 1, ratios / 0.6, steps=30)
    for column in range(4):
        other = fit(X, y, weights * ratios[:, column])
        np.testing.assert_allclose(moves[:, column], other.predict(X) - model.predict(X), atol=1e-8)
    rough = metric.refit_changes(ratios - 1, ratios / 0.6)
    assert np.abs(rough - moves).max() < 0.01 * np.abs(moves).max()


def test_bad_input(problem):
    _, _, K, weights = problem
    given = {"coefficients": np.ones(60), "kernel_matrix": K, "weights": weights}
    with pytest.raises(InputError, match="shape"):
        dual_certificate(**{**given, "coefficients": np.ones(3)}, other_weights=weights)
    with pytest.raises(InputError, match="other_weights has 3 entries for 60 rows"):
        dual_certificate(**given, other_weights=np.ones(3))
    with pytest.raises(ParameterError, match="positive"):
        dual_certificate(**{**given, "weights": np.r_[0.0, weights[1:]]}, other_weights=weights)
    with pytest.raises(ParameterError, match="alpha"):
        dual_certificate(**given, other_weights=weights, alpha=0.0)
