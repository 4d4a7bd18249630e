"""Estimates with a model of the outcome."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from tests.estimation.helpers import QUIET

from unskew import (
    CalibrationWeights,
    KernelMeanMatching,
    Unweighted,
    estimate,
)
from unskew.numerics.design_variance import half_width


def test_a_linear_model_of_matched_features_changes_nothing(data):
    X, y, population, _ = data
    numbers, weighter = ["a", "b"], CalibrationWeights(features="means", **QUIET)
    plain = estimate(X[numbers], y, population=population[numbers], weighter=weighter)
    robust = estimate(
        X[numbers],
        y,
        population=population[numbers],
        weighter=weighter,
        outcome=LinearRegression(),
        cv=None,
    )
    assert robust.value == pytest.approx(plain.value, rel=1e-9)
    assert robust.standard_error == pytest.approx(plain.standard_error, rel=1e-6)


def test_an_outcome_model_alone_is_mass_imputation(data):
    X, y, population, _ = data
    numbers = ["a", "b"]
    found = estimate(
        X[numbers],
        y,
        population=population[numbers],
        weighter=Unweighted(),
        outcome=LinearRegression(),
        cv=None,
    )
    model = LinearRegression().fit(X[numbers], y)
    assert found.value == pytest.approx(model.predict(population[numbers]).mean())
    assert found.parts["population"] == pytest.approx(
        model.predict(population[numbers]).var(ddof=1) / 3000
    )


@pytest.mark.parametrize("outcome", ["boosted", "linear"])
def test_outcome_models_take_any_table(data, outcome):
    X, y, population, labels = data
    X, population = X.copy(), population.copy()
    X.loc[::7, "a"] = np.nan
    population.loc[::7, "a"] = np.nan
    found = estimate(X, y, population=population, outcome=outcome)
    assert found.interval[0] < labels.mean() < found.interval[1]
    shares = estimate(X, y > 1, population=population, outcome=outcome, by="g")
    assert all(0.2 < one.value < 0.9 for one in shares.values())
    assert found.outcome == outcome


def test_cross_fitting_does_not_depend_on_the_order_of_rows(data):
    X, y, population, _ = data
    order = np.random.default_rng(1).permutation(len(X))
    numbers = ["a", "b"]
    one = estimate(X[numbers], y, population=population[numbers], outcome=LinearRegression())
    other = estimate(
        X[numbers].iloc[order], y[order], population=population[numbers], outcome=LinearRegression()
    )
    assert one.value == pytest.approx(other.value, rel=1e-9)


def test_classifiers_give_the_mean_of_two_classes(data):
    X, y, population, _ = data
    numbers = ["a", "b"]
    found = estimate(
        X[numbers],
        (y > 1).astype(int),
        population=population[numbers],
        outcome=LogisticRegression(),
        cv=None,
        weighter=Unweighted(),
    )
    model = LogisticRegression().fit(X[numbers], y > 1)
    residual = ((y > 1) - model.predict_proba(X[numbers])[:, 1]).mean()
    expected = model.predict_proba(population[numbers])[:, 1].mean() + residual
    assert found.value == pytest.approx(expected)


def test_an_outcome_model_may_use_more_columns_than_the_weights(data):
    X, y, population, _ = data
    weighter = CalibrationWeights(columns=["g"], features="means", **QUIET)
    found = estimate(X, y, population=population, weighter=weighter, outcome="linear", cv=None)
    narrow = estimate(
        X[["g"]], y, population=population[["g"]], weighter=weighter, outcome="linear", cv=None
    )
    assert found.value != pytest.approx(narrow.value, rel=1e-3)
    assert found.parts["population"] > narrow.parts["population"]


def test_the_interval_allows_for_what_weights_and_model_disagree_on(data):
    X, y, population, _ = data
    X, population = X[["a", "b"]], population[["a", "b"]]
    weighter = KernelMeanMatching(overlap="ignore")
    model = LinearRegression()
    found = estimate(X, y, population=population, weighter=weighter, outcome=model, cv=None)
    assert found.variance == "orthogonal"
    weighted = weighter.fit(X, population=population).weights_ @ y / len(y)
    imputed = model.fit(X, y).predict(population).mean()
    differences = [abs(found.value - weighted), abs(found.value - imputed)]
    assert found.bias_allowed == pytest.approx(max(differences))
    symmetric = found.degrees_of_freedom, found.level
    half = found.interval[1] - found.value
    assert half == pytest.approx(half_width(found.standard_error, *symmetric, max(differences)))
    assert half > half_width(found.standard_error, *symmetric)
    assert "allows for a bias" in str(found)


def test_mass_imputation_says_that_the_models_error_is_not_counted(data):
    X, y, population, _ = data
    common = {"population": population, "outcome": "linear"}
    for options in (
        {"weighter": Unweighted(), "cv": None},
        {"weighter": Unweighted()},
        {"cv": None},
    ):
        assert "own error is not counted" in str(estimate(X, y, **common, **options))
    assert "own error is not counted" not in str(estimate(X, y, **common))
