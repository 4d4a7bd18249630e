"""Sets of classes: the definition by hand, guarantees in simulation, classes that are rare."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from unskew import ConformalClassifier, FrequencyWeights, KnownProbability, Population, Unweighted
from unskew.errors import InfiniteIntervalWarning
from unskew.numerics.conformal import adaptive_scores


def chance(X):
    return 1 / (1 + np.exp(1.5 * np.asarray(X)[:, 0]))


def draw(seed, n=800):
    """Three classes that are harder to predict where selection is rare."""
    random = np.random.default_rng(seed)
    U = random.normal(size=(n, 2))
    noise = np.exp(0.8 * U[:, 0]) * random.normal(size=n)
    y = np.array(["high", "low", "middle"])[np.digitize(U[:, 1] + noise, [-0.5, 0.5])]
    return U, y, random.uniform(size=n) < chance(U)


def held(model, sets, y):
    return sets[np.arange(len(y)), np.searchsorted(model.classes_, y)]


@pytest.mark.parametrize("score", ["lac", "aps"])
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_a_class_is_in_the_set_if_enough_weight_is_at_least_as_strange(score, method):
    U, y, s = draw(0, 300)
    X, labels = U[s], y[s]
    model = ConformalClassifier(
        LogisticRegression(), KnownProbability(chance), method=method, conformity_score=score
    )
    model.fit(X, labels, population=U)
    new = U[:20]

    def scores_of(learner, rows):
        chances = learner.predict_proba(rows)
        return 1 - chances if score == "lac" else adaptive_scores(chances)

    learners = [model.estimator_] if method == "split" else model.estimator_.members
    places = np.split(model.calibration_rows_, _ends(len(learners), len(model.calibration_rows_)))
    below, total = np.zeros((20, 3)), 0.0
    for learner, weighter, rows in zip(learners, model.weighters_, places, strict=True):
        weights = weighter.weigh(X[rows])
        own = scores_of(learner, X[rows])
        own = own[np.arange(len(rows)), np.searchsorted(model.classes_, labels[rows])]
        theirs = scores_of(learner, new)
        below += ((own[:, None, None] < theirs) * weights[:, None, None]).sum(axis=0)
        total += weights.sum()
    mass = np.mean([weighter.weigh(new) for weighter in model.weighters_], axis=0)
    expected = below < 0.8 * (total + mass)[:, None]
    assert (model.predict_set(new, coverage=0.8) == expected).all()


def _ends(n_folds, n_rows):
    sizes = [n_rows // n_folds + (fold < n_rows % n_folds) for fold in range(n_folds)]
    return np.cumsum(sizes)[:-1]


@pytest.mark.filterwarnings("ignore::unskew.errors.InfiniteIntervalWarning")
@pytest.mark.parametrize("score", ["lac", "aps"])
def test_known_weights_keep_the_coverage_on_the_population(score):
    found = {"plain": [], "weighted": []}
    for seed in range(30):
        U, y, s = draw(seed)
        new, labels, _ = draw(seed + 1000)
        for name, weighter in (("plain", Unweighted()), ("weighted", KnownProbability(chance))):
            model = ConformalClassifier(LogisticRegression(), weighter, conformity_score=score)
            model.fit(U[s], y[s], population=Population(U))
            sets = model.predict_set(new, coverage=0.8)
            found[name].append(held(model, sets, labels).mean())
    error = np.std(found["weighted"]) / 30**0.5
    assert 0.8 - 2 * error < np.mean(found["weighted"]) < 0.83
    assert np.mean(found["plain"]) < np.mean(found["weighted"]) - 0.03


def test_a_row_has_the_same_set_alone_and_among_others():
    U, y, s = draw(1)
    model = ConformalClassifier(LogisticRegression(), Unweighted(), conformity_score="aps")
    model.fit(U[s], y[s], population=U)
    sets = model.predict_set(U[:40])
    assert (np.vstack([model.predict_set(U[[k]]) for k in range(40)]) == sets).all()


def test_a_class_that_no_training_row_has():
    X = np.random.default_rng(2).normal(size=(60, 1))
    y = np.where(X[:, 0] > 0, 1, 0)
    y[0] = 7
    seeds = range(20)
    model = next(
        fitted
        for seed in seeds
        if 0
        in (
            fitted := ConformalClassifier(
                LogisticRegression(), Unweighted(), random_state=seed
            ).fit(X, y, population=Population(X))
        ).calibration_rows_
    )
    assert model.classes_.tolist() == [0, 1, 7]
    assert model.predict_proba(X)[:, 2].tolist() == [0.0] * 60
    assert not model.predict_set(X, coverage=0.8)[:, 2].any()
    with pytest.warns(InfiniteIntervalWarning, match="100.0% of the sets hold every class"):
        assert model.predict_set(X, coverage=0.99).all()
    assert model.infinite_share_ == 1


def test_cells_are_calibrated_each_by_itself():
    random = np.random.default_rng(3)
    towns = random.choice(["Bonn", "Kiel"], 3000)
    y = random.uniform(size=3000) < np.where(towns == "Kiel", 0.5, 0.02)
    table = pd.DataFrame({"town": towns, "x": np.zeros(3000)})
    model = ConformalClassifier(
        DummyClassifier(), groups=FrequencyWeights(columns=["town"]), conformity_score="lac"
    )
    model.fit(table, y, population=Population(table))
    sizes = pd.Series(model.predict_set(table).sum(axis=1)).groupby(towns).mean()
    # One class suffices in Bonn for 90 %, and does not in Kiel.
    assert sizes.to_dict() == {"Bonn": 1.0, "Kiel": 2.0}
