"""Scores on a population whose labels are not known."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from tests.estimation.helpers import MEANS

from unskew import (
    CalibrationWeights,
    KernelMeanMatching,
    Margins,
    Population,
    Reweighted,
    estimate,
    estimate_score,
    population_scorer,
)
from unskew.errors import EstimateWarning, InputError, ParameterError


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    population = random.normal(size=(4000, 2))
    noise = random.normal(size=4000) * np.where(population[:, 0] > 0, 0.2, 3.0)
    labels = population[:, 1] > noise  # hard to tell where the sample has few rows
    kept = random.uniform(size=4000) < 0.5 / (1 + np.exp(-1.5 * population[:, 0]))
    train, test = np.flatnonzero(kept)[::2], np.flatnonzero(kept)[1::2]
    model = LogisticRegression().fit(population[train], labels[train])
    return model, population[test], labels[test], population, labels


@pytest.mark.parametrize("method", ["doubly_robust", "control_variate", "weighted"])
@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "neg_brier_score"])
def test_a_mean_score_is_that_of_the_population(data, method, scoring):
    model, X, y, population, labels = data
    found = estimate_score(
        model, X, y, population=population, scoring=scoring, method=method, weighter=MEANS
    )
    truth = sklearn.metrics.get_scorer(scoring)(model, population, labels)
    plain = sklearn.metrics.get_scorer(scoring)(model, X, y)
    assert found.unweighted == pytest.approx(plain)
    assert found.interval[0] < truth < found.interval[1]
    assert abs(found.value - truth) < abs(plain - truth)
    assert "not to have seen these rows" in str(found)
    assert found.statistic == scoring


def test_a_weighted_score_is_the_weighted_metric(data):
    model, X, y, population, _ = data
    weights = sklearn.clone(MEANS).fit(X, population=population).weights_
    common = {"population": population, "weighter": MEANS, "method": "weighted"}
    found = estimate_score(model, X, y, scoring="neg_log_loss", **common)
    assert -found.value == pytest.approx(
        log_loss(y, model.predict_proba(X), sample_weight=weights), rel=1e-9
    )
    found = estimate_score(model, X, y, scoring="roc_auc", replicates=50, **common)
    scores = model.decision_function(X)
    assert found.value == pytest.approx(roc_auc_score(y, scores, sample_weight=weights))
    assert found.unweighted == pytest.approx(roc_auc_score(y, scores))
    assert found.variance == "bootstrap"
    assert 0.005 < found.standard_error < 0.05


def test_replicates_never_make_an_error(data):
    # Two rows are far from the others, where the population's mean is: most replicates lack them.
    model, X, y, population, _ = data
    X, y = X[:60].copy(), y[:60]
    X[:, 0], X[:2, 0] = np.linspace(0, 1, 60), 8.0
    y[:] = np.arange(60) >= 58  # and often a class
    strict = CalibrationWeights(features="means", on_infeasible="raise", overlap="ignore")
    found = estimate_score(
        model, X, y, population=population + np.array([2.0, 0.0]), scoring="roc_auc", replicates=40,
        weighter=strict,
    )  # fmt: skip
    assert "of 40 replicates have no weights of their own" in str(found)
    assert "replicates have no such score and are left out" in str(found)
    assert found.standard_error > 0


def test_scores_that_are_no_means_say_so(data):
    model, X, y, population, _ = data
    found = estimate_score(
        model, X, y, population=population, scoring="f1", replicates=10, weighter=MEANS
    )
    assert "f1 is not a mean over rows" in str(found)
    margins = Margins(means={"x0": 0.0, "x1": 0.0})
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    fitted = LogisticRegression().fit(frame, y)
    found = estimate_score(fitted, frame, y, population=margins, scoring="accuracy")
    assert "Margins have no rows" in str(found)


def test_regressors_have_scores_too(data):
    _, X, _, population, _ = data
    random = np.random.default_rng(1)
    y = X[:, 0] ** 2 + random.normal(size=len(X))
    common = {"population": population, "cv": 5, "weighter": MEANS}
    found = estimate_score(
        LinearRegression(), X, y, scoring="neg_mean_squared_error", method="weighted", **common
    )
    assert "models of 5 folds" in str(found)
    # The same number as the estimate of the squared errors.
    from sklearn.model_selection import KFold, cross_val_predict

    folds = KFold(5, shuffle=True, random_state=0)
    losses = -((y - cross_val_predict(LinearRegression(), X, y, cv=folds)) ** 2)
    assert found.value == pytest.approx(
        estimate(X, losses, population=population, weighter=MEANS).value
    )
    found = estimate_score(LinearRegression(), X, y, scoring="r2", replicates=20, **common)
    assert -1 < found.value < 1


def test_reweighted_models_are_fitted_with_the_population(data):
    _, X, y, population, _ = data
    model = Reweighted(LogisticRegression(), MEANS)
    found = estimate_score(
        model, X, y, population=Population(population), scoring="accuracy", cv=3, method="weighted"
    )
    assert 0.6 < found.value < 1


def test_what_cannot_be_scored_is_an_error(data):
    model, X, y, population, _ = data
    with pytest.raises(ParameterError, match="method must be one of"):
        estimate_score(model, X, y, population=population, scoring="accuracy", method="best")
    with pytest.raises(ParameterError, match="predict_proba"):
        estimate_score(
            LinearRegression().fit(X, y), X, y, population=population, scoring="neg_log_loss"
        )
    for unfitted in (LogisticRegression(), LinearRegression()):
        with pytest.raises(
            ParameterError, match="is not fitted. Fit it on other rows, or use cv=5"
        ):
            estimate_score(unfitted, X, y, population=population, scoring="accuracy")
    with pytest.raises(InputError, match="y is False in every row"):
        estimate_score(model, X, y & False, population=population, scoring="accuracy", cv=5)
    splits = [(np.arange(10), np.arange(10, 20))]
    with pytest.raises(ParameterError, match="exactly one test fold"):
        estimate_score(model, X, y, population=population, scoring="accuracy", cv=splits)
    with pytest.warns(EstimateWarning, match="effective sample size"):
        estimate_score(
            model,
            X[:25],
            y[:25],
            population=population,
            scoring="accuracy",
            method="weighted",
            weighter=MEANS,
        )


@pytest.mark.parametrize("routing", [False, True])
def test_the_scorer_weighs_the_test_fold(data, routing):
    _, X, y, population, _ = data
    with sklearn.config_context(enable_metadata_routing=routing):
        model = Reweighted(LogisticRegression(), MEANS)
        if routing:
            model.set_fit_request(population=True)
        found = cross_validate(
            model,
            X,
            y,
            scoring={"there": population_scorer("roc_auc"), "here": "roc_auc"},
            params={"population": Population(population)},
            return_estimator=True,
            return_indices=True,
        )
        test = found["indices"]["test"][0]
        fitted = found["estimator"][0]
        weights = fitted.weighter_.weigh(X[test])
        expected = roc_auc_score(y[test], fitted.decision_function(X[test]), sample_weight=weights)
        assert found["test_there"][0] == pytest.approx(expected)
        assert found["test_here"][0] != pytest.approx(expected)
        search = GridSearchCV(
            model, {"estimator__C": [0.01, 1.0]}, scoring=population_scorer("neg_log_loss")
        )
        search.fit(X, y, population=Population(population))
        assert search.best_params_["estimator__C"] == 1.0


def test_the_scorer_names_what_it_cannot_use(data):
    _, X, y, population, _ = data
    with pytest.raises(ParameterError, match="is for Reweighted models"):
        population_scorer("accuracy")(LogisticRegression().fit(X, y), X, y)
    model = Reweighted(LogisticRegression(), KernelMeanMatching(overlap="ignore"))
    model.fit(X[:100], y[:100], population=Population(population))
    with pytest.raises(ParameterError, match="KernelMeanMatching cannot weigh new rows"):
        population_scorer("accuracy")(model, X, y)
    with pytest.raises(ParameterError, match="not a valid scoring"):
        population_scorer("goodness")
