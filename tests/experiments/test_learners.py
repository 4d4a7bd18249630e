from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.svm import SVR

from unskew.experiments.learners import estimator, paper_svr


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


def test_any_estimator_makes_a_learner(rows):
    sample, labels, test = rows
    weights = np.linspace(0.1, 2.0, 200)
    ridge = Ridge()
    predictions = estimator(ridge)(sample, labels, test)(weights)
    assert predictions == pytest.approx(
        Ridge().fit(sample, labels, sample_weight=weights).predict(test)
    )
    assert not hasattr(ridge, "coef_")
