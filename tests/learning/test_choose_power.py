"""How strongly Reweighted weighs, by the learner's own loss."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
)
from sklearn.metrics import log_loss, mean_gamma_deviance, mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import LinearSVC

from unskew import AutoWeights, Margins, Population, Reweighted, TreeWeights, Unweighted
from unskew.learning.choose_power import row_loss, tempered


def selected(seed=0, n=1500, slope=2.0):
    random = np.random.default_rng(seed)
    population = random.normal(size=(n, 2))
    labels = population[:, 0] ** 2 + population[:, 1] + random.normal(0, 0.3, n)
    chosen = random.uniform(size=n) < 1 / (1 + np.exp(-slope * population[:, 0]))
    return population, labels, chosen


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_a_line_through_a_curve_is_weighted():
    population, labels, chosen = selected()
    sample, own = population[chosen], labels[chosen]
    model = Reweighted(LinearRegression()).fit(sample, own, population=Population(population))
    plain = LinearRegression().fit(sample, own)
    errors = [np.mean((one.predict(population) - labels) ** 2) for one in (model, plain)]
    assert errors[0] < 0.9 * errors[1]
    assert model.chosen_ != "not weighting"
    assert str(model.strength_).startswith("Weighting helps this learner")
    assert min(model.choice_scores_, key=model.choice_scores_.get) == model.chosen_
    assert set(model.choice_scores_) == {
        "not weighting",
        "AutoWeights to the power ½",
        "AutoWeights",
        "TreeWeights(4)",
        "TreeWeights(20)",
    }


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_a_learner_that_fits_the_truth_is_not_weighted():
    population, _, chosen = selected(1)
    truth = population @ [1.0, 1.0] + np.random.default_rng(0).normal(0, 0.3, len(population))
    model = Reweighted(LinearRegression())
    model.fit(population[chosen], truth[chosen], population=population)
    assert model.chosen_ == "not weighting"
    assert model.power_ == 0.0
    assert "does not help this learner" in str(model.strength_)
    plain = LinearRegression().fit(population[chosen], truth[chosen])
    assert np.array_equal(model.estimator_.coef_, plain.coef_)


def test_without_selection_the_model_is_the_unweighted_one_to_the_last_bit():
    population, labels, _ = selected(2, n=600)
    learner = HistGradientBoostingRegressor(max_iter=10)
    model = Reweighted(learner).fit(population[::3], labels[::3], population=population)
    assert not model.weighter_.detected_
    assert (model.weights_ == 1).all()
    plain = learner.fit(population[::3], labels[::3])
    assert np.array_equal(model.predict(population), plain.predict(population))
    assert "No selection was detected" in str(model.strength_)


def test_a_named_weighter_is_used_as_it_is():
    population, labels, chosen = selected(3, n=400, slope=0.5)
    named = Reweighted(LinearRegression(), TreeWeights(min_samples_leaf=20))
    named.fit(population[chosen], labels[chosen], population=population)
    assert named.power_ == 1.0
    assert np.array_equal(named.weights_, named.weighter_.weights_)
    half = Reweighted(LinearRegression(), TreeWeights(min_samples_leaf=20), power=0.5)
    half.fit(population[chosen], labels[chosen], population=population)
    roots = np.sqrt(named.weights_)
    assert half.weights_ == pytest.approx(roots * len(roots) / roots.sum())
    none = Reweighted(LinearRegression(), TreeWeights(), power=0)
    none.fit(population[chosen], labels[chosen], population=population)
    assert (none.weights_ == 1).all()


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_the_choice_may_go_by_a_score():
    population, labels, chosen = selected(4, n=800)
    model = Reweighted(
        LogisticRegression(), TreeWeights(min_samples_leaf=20), power="auto", scoring="roc_auc"
    )
    model.fit(population[chosen], labels[chosen] > 1, population=population)
    assert set(model.choice_scores_) == {
        "not weighting",
        "TreeWeights to the power ½",
        "TreeWeights",
    }
    assert all(-1 <= loss <= 0 for loss in model.choice_scores_.values())


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_a_population_that_can_be_read_once_is_enough():
    population, labels, chosen = selected(5, n=600)
    once = Population(iter([population[:300], population[300:]]))
    model = Reweighted(LinearRegression()).fit(population[chosen], labels[chosen], population=once)
    again = Reweighted(LinearRegression())
    again.fit(population[chosen], labels[chosen], population=population)
    assert model.choice_scores_ == pytest.approx(again.choice_scores_)


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_a_learner_without_weights_chooses_by_resampling():
    population, labels, chosen = selected(6, n=500)
    model = Reweighted(KNeighborsRegressor(), resample="multiplicity", random_state=0)
    model.fit(population[chosen], labels[chosen], population=population)
    assert model.chosen_ in model.choice_scores_


def test_margins_are_calibrated_to():
    import pandas as pd

    sample = pd.DataFrame({"sex": ["f", "m", "m", "m"] * 5})
    model = Reweighted(DummyClassifier()).fit(
        sample, [0, 1] * 10, population=Margins(shares={"sex": {"f": 0.5, "m": 0.5}})
    )
    assert model.weights_[:2] == pytest.approx([2.0, 2 / 3])


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_it_works_in_cross_validation_and_searches_and_weighs_new_rows():
    population, labels, chosen = selected(7, n=300, slope=1.0)
    U = Population(population)
    model = Reweighted(LinearRegression())
    found = cross_validate(
        model, population[chosen], labels[chosen], params={"population": U}, cv=2
    )
    assert np.isfinite(found["test_score"]).all()
    search = GridSearchCV(model, {"power": [0, 1, "auto"]}, cv=2)
    search.fit(population[chosen], labels[chosen], population=U)
    weights = search.best_estimator_.weigh(population[:5])
    assert weights.shape == (5,)
    assert hasattr(Reweighted(LinearRegression()), "weigh")
    assert hasattr(Reweighted(LinearRegression(), Unweighted()), "weigh")


def test_row_losses_are_scikit_learns():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    counts = random.poisson(np.exp(0.3 * X[:, 0]))
    positive = random.gamma(2, np.exp(0.3 * X[:, 0])) + 0.01
    classes = np.where(X[:, 0] + random.normal(size=200) > 0, "b", "a")
    for learner, y, metric in (
        (PoissonRegressor(), counts, mean_poisson_deviance),
        (GammaRegressor(), positive, mean_gamma_deviance),
    ):
        model = learner.fit(X, y)
        assert row_loss(model)[1](model, X, y).mean() == pytest.approx(metric(y, model.predict(X)))
    model = LogisticRegression().fit(X, classes)
    found = row_loss(model)[1](model, X, classes).mean()
    assert found == pytest.approx(log_loss(classes, model.predict_proba(X)))
    machine = LinearSVC().fit(X, classes)
    name, hinge = row_loss(machine)
    margin = np.where(classes == "b", 1, -1) * machine.decision_function(X)
    assert name == "hinge loss"
    assert hinge(machine, X, classes) == pytest.approx(np.maximum(0, 1 - margin))


def test_tempered_weights_keep_their_sum_and_the_design():
    weights, design = np.array([1.0, 4.0, 0.0, 3.0]), np.array([1.0, 2.0, 0.0, 1.0])
    half = tempered(weights, design, 0.5)
    expected = design * np.sqrt([1.0, 2.0, 0.0, 3.0])
    assert half == pytest.approx(expected * 8 / expected.sum())
    assert tempered(weights, design, 0.0) == pytest.approx(design * 2)
    assert tempered(weights, design, 1.0) is weights


def test_parameters_are_passed_on():
    model = Reweighted(LinearRegression(), AutoWeights(cv=3), overlap="ignore")
    population, labels, chosen = selected(8, n=200)
    model.fit(population[chosen], labels[chosen], population=population)
    assert model.weighter_.cv == 3
    assert model.weighter_.overlap == "ignore"
