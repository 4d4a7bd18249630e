"""A pandas column with the row labels of X in another order is warned of, in every door."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from unskew import (
    ConformalClassifier,
    ConformalRegressor,
    HeckmanRegressor,
    Reweighted,
    TreeWeights,
    Unweighted,
    diagnose,
    estimate,
    estimate_score,
    replicate_weights,
    split_labelled,
)

RANDOM = np.random.default_rng(0)
U = pd.DataFrame({"a": RANDOM.normal(size=300), "b": RANDOM.normal(size=300)})
X = U.iloc[RANDOM.permutation(300)[:80]]
Y = (X["a"] > 0).astype(int)
MOVED = Y.sample(frac=1, random_state=0)
GAPS = Y.where(RANDOM.uniform(size=80) < 0.7).sample(frac=1, random_state=0)
GROUPS = pd.Series(np.arange(80) % 4, index=X.index).sample(frac=1, random_state=0)
TREES = TreeWeights(min_samples_leaf=20)
DOORS = {
    "weighter": lambda y: TREES.fit(X, y, population=U),
    "design": lambda y: TREES.fit(X, Y, population=U, sample_weight=y),
    "reweighted": lambda y: Reweighted(LogisticRegression(), TREES).fit(X, y, population=U),
    "automatic": lambda y: Reweighted(LogisticRegression()).fit(X, y, population=U),
    "regressor": lambda y: ConformalRegressor(LinearRegression(), Unweighted()).fit(
        X, y, population=U
    ),
    "classifier": lambda y: ConformalClassifier(LogisticRegression(), Unweighted()).fit(
        X, y, population=U
    ),
    "estimate": lambda y: estimate(X, y, population=U, weighter=Unweighted()),
    "score": lambda y: estimate_score(
        LogisticRegression(), X, y, population=U, scoring="accuracy", weighter=Unweighted(), cv=3
    ),
    "diagnose": lambda y: diagnose(X, population=U, y=y),
    "replicates": lambda y: replicate_weights(
        X, y, population=U, weighter=Unweighted(), replicates=10
    ),
}


def messages(call, *arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments)
    return [str(one.message) for one in caught if "in another order" in str(one.message)]


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_every_door_warns_once_and_only_then(door):
    assert len(messages(door, MOVED)) == 1
    for y in (Y, Y.to_numpy(), Y.reset_index(drop=True), list(Y)):
        assert messages(door, y) == []


def test_labels_that_are_partly_there():
    def heckman(y):
        HeckmanRegressor(selection=["a", "b"], outcome=["a"]).fit(X, y)

    for door in (heckman, lambda y: split_labelled(X, y)):
        assert len(messages(door, GAPS)) == 1
        assert messages(door, GAPS.loc[X.index]) == []


@pytest.mark.parametrize("name", ["by", "strata", "clusters"])
def test_groups(name):
    def door(groups):
        estimate(X, Y, population=U, weighter=Unweighted(), **{name: groups})

    assert messages(door, GROUPS)[0].startswith(f"{name} has the row labels of X")
    assert messages(door, GROUPS.loc[X.index]) == []


def test_the_values_are_taken_in_their_own_order():
    with pytest.warns(UserWarning, match=r"y\.loc\[X\.index\]"):
        moved = TREES.fit(X, MOVED, population=U).weights_
    assert np.array_equal(moved, TREES.fit(X, MOVED.to_numpy(), population=U).weights_)
