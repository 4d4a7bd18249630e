"""How sure a model is of rows, and what that says of its score."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC

from unskew import CalibrationWeights, estimate, estimate_score
from unskew.estimation.scores import Confidence


@pytest.fixture(scope="module")
def fitted():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(90, 2)), columns=["a", "b"])
    X["c"] = random.choice(["u", "v"], 90)
    y = X["a"] + random.normal(size=90) > 0
    folds, models = np.zeros(90, int), []
    for number, (train, test) in enumerate(KFold(3, shuffle=True, random_state=0).split(X)):
        folds[test] = number
        model = RandomForestClassifier(20, random_state=0)
        models.append(Numeric(model).fit(X.iloc[train], y.iloc[train]))
    return X, y, folds, models


class Numeric(ClassifierMixin, BaseEstimator):
    """A classifier of the columns of numbers."""

    def __init__(self, inner):
        self.inner = inner

    def fit(self, X, y):
        self.inner.fit(X[["a", "b"]], y)
        return self

    def predict_proba(self, X):
        return self.inner.predict_proba(X[["a", "b"]])


def test_a_row_of_the_sample_is_judged_by_the_model_that_has_not_seen_it(fitted):
    X, _, folds, models = fitted
    confidence = Confidence.from_models(models, folds, X)
    each = np.array([model.predict_proba(X).max(axis=1) for model in models])
    assert np.array_equal(confidence(X)[:, 0], each[folds, np.arange(90)])
    order = np.random.default_rng(1).permutation(90)
    assert np.array_equal(confidence(X.iloc[order]), confidence(X)[order])
    # A forest is surer of rows that it was trained on.
    assert confidence(X).mean() < each.mean() - 0.02
    assert copy.deepcopy(confidence) is confidence


def test_other_rows_are_shared_out_among_the_models(fitted):
    X, _, folds, models = fitted
    new = X.assign(a=X["a"] + 0.01)
    each = np.array([model.predict_proba(new).max(axis=1) for model in models])
    found = Confidence.from_models(models, folds, X)(new)[:, 0]
    assert (found == each).any(axis=0).all()
    for own in each:  # each has some, and none has all
        assert not np.array_equal(found, own)


def test_regressors_and_margins():
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 2))
    y = X[:, 0] + random.normal(size=50)
    alone = np.zeros(50, int)
    line = LinearRegression().fit(X, y)
    assert np.array_equal(Confidence.from_models([line], alone, X)(X)[:, 0], line.predict(X))
    plane = LinearSVC().fit(X, y > 0)
    found = Confidence.from_models([plane], alone, X)(X)[:, 0]
    assert np.array_equal(found, np.abs(plane.decision_function(X)))


def test_classes_alone_say_nothing(fitted):
    class Classes(ClassifierMixin, BaseEstimator):
        pass

    X, _, folds, _ = fitted
    assert Confidence.from_models([Classes()], folds, X) is None


def test_a_score_that_depends_on_the_margin():
    """Selected rows are the easy ones, by a margin that no single column shows."""
    better = []
    weighter = CalibrationWeights(features="means", overlap="ignore")
    for seed in range(4):
        random = np.random.default_rng(seed)
        X = random.normal(size=(5000, 4))
        index = X @ [1.0, 1.0, -1.0, 1.0]
        y = index + random.logistic(size=5000) > 0
        easy = random.uniform(size=5000) < 0.15 / (1 + np.exp(3 - 2 * np.abs(index)))
        mine, labels = X[easy], y[easy]
        model = LogisticRegression().fit(X[::10], y[::10])
        truth = (model.predict(X) == y).mean()
        common = {"population": X, "weighter": weighter, "random_state": seed}
        ours = estimate_score(model, mine, labels, scoring="accuracy", **common).value
        right = (model.predict(mine) == labels).astype(float)
        plain = estimate(mine, right, outcome="boosted", **common).value
        better.append(abs(plain - truth) - abs(ours - truth))
    assert np.mean(better) > 0.01
