from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR

from unskew.paper.learners import estimator, factor_kernel, fit_on_factor, paper_svr


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.uniform(size=(260, 4))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * random.normal(size=260)
    return X[:200], (y[:200] - y.mean()) / y.std(), X[200:]


@pytest.mark.parametrize("zeros", [0, 150])
def test_the_papers_svr_is_scikit_learns_with_the_kernel_computed_once(rows, zeros):
    sample, labels, test = rows
    weights = np.random.default_rng(1).exponential(size=200)
    weights[:zeros] = 0.0
    plain = SVR(C=1.0, epsilon=0.1, gamma=1 / 4).fit(sample, labels, sample_weight=weights)
    predictions = paper_svr(sample, labels, test)(weights)
    assert predictions == pytest.approx(plain.predict(test), abs=1e-10)


def test_twice_the_weights_is_twice_the_c(rows):
    sample, labels, test = rows
    plain = SVR(C=2.0, epsilon=0.1, gamma=1 / 4).fit(sample, labels)
    doubled = paper_svr(sample, labels, test)(np.full(200, 2.0))
    assert doubled == pytest.approx(plain.predict(test), abs=1e-10)


@pytest.mark.parametrize("zeros", [0, 200])
def test_a_kernel_of_low_rank_gives_predictions_as_near_to_the_optimum_as_libsvm(zeros):
    """At a tolerance of 1e-6 LIBSVM stands for the optimum, at 1e-3 it is what we replace."""
    random = np.random.default_rng(0)
    X = random.uniform(size=(1700, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.5 * random.normal(size=1700)
    sample, labels, test = X[:1500], (y[:1500] - y.mean()) / y.std(), X[1500:]
    weights = random.exponential(size=1500) ** 3
    weights[:zeros] = 0.0
    kept = weights > 0
    optimum, plain = (
        SVR(C=1.0, epsilon=0.1, gamma=1 / 2, tol=tol)
        .fit(sample[kept], labels[kept], sample_weight=weights[kept])
        .predict(test)
        for tol in (1e-6, 1e-3)
    )
    assert factor_kernel(sample, gamma=1 / 2, tolerance=1e-7, max_rank=1500 // 30) is not None
    predictions = paper_svr(sample, labels, test)(weights)
    assert np.abs(predictions - optimum).max() < 1e-3
    assert np.abs(predictions - optimum).max() <= np.abs(plain - optimum).max() + 1e-4


def test_the_factor_is_the_kernel_within_its_tolerance(rows):
    sample, _, test = rows
    factor = factor_kernel(sample, gamma=0.25, tolerance=1e-6, max_rank=200)
    kernel = rbf_kernel(sample, gamma=0.25)
    assert factor.L.shape[1] < 150
    assert np.abs(factor.L @ factor.L.T - kernel).max() <= 1e-6
    among = factor.of_rows(test) @ factor.L.T
    assert np.abs(among - rbf_kernel(test, sample, gamma=0.25)).max() < 1e-4
    assert factor_kernel(sample, gamma=0.25, tolerance=1e-6, max_rank=20) is None


def test_a_fit_in_closed_form():
    """Two rows of one feature: v = min(c, (1 - ε)) by symmetry, and b = 0."""
    L, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    for c, v in ((0.2, 0.4), (10.0, 0.9)):
        found, b = fit_on_factor(L, y, np.full(2, c))
        assert found == pytest.approx([v], abs=1e-3)
        assert b == pytest.approx(0.0, abs=1e-6)


def test_any_estimator_makes_a_learner(rows):
    sample, labels, test = rows
    weights = np.linspace(0.1, 2.0, 200)
    ridge = Ridge()
    predictions = estimator(ridge)(sample, labels, test)(weights)
    assert predictions == pytest.approx(
        Ridge().fit(sample, labels, sample_weight=weights).predict(test)
    )
    assert not hasattr(ridge, "coef_")
