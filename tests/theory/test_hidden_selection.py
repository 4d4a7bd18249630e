"""Hidden selection: no weights within the odds move the model further than stated."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from tests.theory.helpers import BUCKETS

from unskew import KnownProbability, Reweighted
from unskew.errors import ParameterError
from unskew.theory import hidden_selection_certificate
from unskew.theory.regions import LinearContributions, spread_of_gram

SPREAD = "odds up to which it moves less than its spread"


def test_no_hidden_factors_move_ridge_further(cells):
    population, sample, labels, _ = cells
    model = Reweighted(Ridge(), BUCKETS).fit(sample, labels, population=population)
    odds = 1.2
    bound = hidden_selection_certificate(model, odds, X=sample, y=labels)
    random = np.random.default_rng(0)
    residual = labels - model.predict(sample)
    directions = [residual, *(residual * (sample @ random.normal(size=3)) for _ in range(5))]
    worst = 0.0
    for direction in [*directions, *(random.normal(size=len(labels)) for _ in range(5))]:
        weights = model.weights_ * odds ** np.sign(direction)
        change = Ridge().fit(sample, labels, sample_weight=weights).predict(sample)
        change -= model.predict(sample)
        worst = max(worst, float(np.sqrt(np.average(change**2, weights=model.weights_))))
    assert worst <= bound <= 5 * worst


def test_the_limits_are_where_the_statements_end(cells):
    population, sample, labels, _ = cells
    classes = labels + np.random.default_rng(0).logistic(size=len(labels)) > 0
    model = Reweighted(LogisticRegression(tol=1e-8), BUCKETS)
    model.fit(sample, classes, population=population)
    given = {"X": sample, "y": classes, "population": population}
    bound = hidden_selection_certificate(model, 1.05, **given)
    limit = bound.terms[SPREAD]
    assert not hidden_selection_certificate(model, limit, **given).vacuous
    assert hidden_selection_certificate(model, 1 + 1.1 * (limit - 1), **given).vacuous
    flips = bound.terms["odds up to which at most 5 % flip"]
    share = "share of the population whose prediction could flip"
    assert hidden_selection_certificate(model, flips, **given).terms[share] <= 0.05
    assert "hidden selection would have to change the odds by more than" in str(bound)


def test_kernels_and_weights_that_are_known(cells):
    population, sample, labels, _ = cells
    model = Reweighted(
        KernelRidge(kernel="rbf", gamma=0.3), KnownProbability(lambda X: np.full(len(X), 0.5))
    )
    model.fit(sample[:150], labels[:150], population=population)
    few, more = (hidden_selection_certificate(model, odds) for odds in (1.1, 1.3))
    assert 0 < few < more


def test_the_spread_of_sums_is_bounded_and_near():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(12, 3)) * random.exponential(size=(12, 1))
    signs = np.array(np.meshgrid(*[[-1, 1]] * 12)).reshape(12, -1)
    largest = np.linalg.norm(vectors.T @ signs, axis=0).max()
    bound = LinearContributions(vectors).spread()
    assert largest <= bound <= 1.4 * largest
    assert spread_of_gram(vectors @ vectors.T) == pytest.approx(bound)


@pytest.mark.parametrize("odds", [1.0, 0.5, np.inf, np.nan])
def test_odds_that_are_none(cells, odds):
    population, sample, labels, _ = cells
    model = Reweighted(Ridge(), BUCKETS).fit(sample, labels, population=population)
    with pytest.raises(ParameterError, match="odds"):
        hidden_selection_certificate(model, odds, X=sample, y=labels)
