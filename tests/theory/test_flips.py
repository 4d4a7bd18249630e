"""Shares of predictions that could flip: bounds against what any change in the region flips."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from tests.theory.helpers import BUCKETS

from unskew import Population, Reweighted, TreeWeights
from unskew.errors import InputError, MismatchError
from unskew.theory import certificate
from unskew.theory.flips import PerDraw, WithinEllipsoid
from unskew.theory.learners import read_learner
from unskew.theory.models import Ellipsoid

SHARE = "share of the population whose prediction could flip"


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    features = random.normal(size=(1500, 12))
    return features, features @ random.normal(size=12), random


def share_of(rule, features, scores):
    weights = np.ones(len(scores))
    return float(rule.shares(rule.tally(features, scores, weights), len(scores))[0])


@pytest.mark.parametrize("rest", [0.0, 0.05])
def test_no_change_in_the_ellipsoid_flips_more(rows, rest):
    features, scores, random = rows
    ellipsoid = Ellipsoid(
        0.3 * random.normal(size=(5, 12)), 0.02 * random.normal(size=12), np.eye(12), rest
    )
    bound = share_of(WithinEllipsoid(ellipsoid, features, scores, np.ones(1500)), features, scores)
    worst = 0.0
    for _ in range(300):
        way, off = random.normal(size=5), random.normal(size=12)
        change = ellipsoid.along.T @ (way / np.linalg.norm(way))
        change = change + random.choice([-1, 1]) * ellipsoid.centre
        change += rest * off / np.linalg.norm(off)
        moved = features @ change
        assert (np.abs(moved) <= ellipsoid.reach(features) + 1e-12).all()
        worst = max(worst, np.mean(scores * (scores + moved) < 0))
    assert worst <= bound <= 8 * worst


def test_one_change_cannot_flip_all_rows_that_could(rows):
    features, scores, _ = rows
    ball = Ellipsoid(0.5 * np.eye(12), None, np.eye(12), 0.0)
    single = np.mean(ball.reach(features) >= np.abs(scores))
    assert share_of(WithinEllipsoid(ball, features, scores, np.ones(1500)), features, scores) < (
        0.8 * single
    )


def test_rows_that_cannot_flip_do_not_count(rows):
    features, scores, _ = rows
    ball = Ellipsoid(0.5 * np.eye(12), None, np.eye(12), 0.0)
    rule = WithinEllipsoid(ball, features, scores, np.ones(1500))
    near = share_of(rule, features, scores)
    far = 1.001 * np.linalg.norm(0.5 * features, axis=1)
    with_far = share_of(rule, np.vstack([features, features]), np.append(scores, far))
    assert 2 * with_far == pytest.approx(near)


def test_an_ellipsoid_contains_another_with_its_rest(rows):
    features, _, random = rows
    one = Ellipsoid(0.3 * random.normal(size=(5, 12)), None, random.normal(size=(12, 12)), 0.1)
    wider = one.without_rest(features.T @ features / 1500)
    assert wider.rest == 0
    assert (wider.reach(features) >= one.reach(features) * (1 - 1e-12)).all()
    squares = [np.mean(each.reach(features) ** 2) for each in (one, wider)]
    assert squares[1] <= 1.05 * squares[0]


def test_the_decision_function_of_svc_is_its_own(cells):
    population, sample, labels, _ = cells
    model = Reweighted(make_pipeline(StandardScaler(), SVC()), BUCKETS).fit(
        sample, labels > 0.3, population=population
    )
    found = read_learner(model, sample, None)
    assert found.score(population) == pytest.approx(
        model.estimator_.decision_function(population), abs=1e-9
    )


def test_flips_of_draws_are_those_of_their_models(rows):
    features, scores, random = rows
    theta = np.linalg.lstsq(features, scores, rcond=None)[0]
    steps = 0.2 * random.normal(size=(12, 7))
    rule = PerDraw(steps, np.zeros(7), np.eye(12))
    flipped = ((features @ (theta[:, None] + steps) > 0) != (scores > 0)[:, None]).mean(axis=0)
    assert rule.shares(rule.tally(features, scores, np.ones(1500)), 1500) == pytest.approx(flipped)
    wider = PerDraw(steps, np.full(7, 0.1), np.eye(12))
    assert (wider.tally(features, scores, np.ones(1500)) >= 1500 * flipped).all()


@pytest.mark.parametrize("learner", [LogisticRegression(), SVC(C=0.02)])
def test_a_population_is_asked_as_its_rows_are(cells, learner, tmp_path):
    population, sample, labels, _ = cells
    classes = labels > 0.3
    model = Reweighted(learner, BUCKETS).fit(sample, classes, population=population)
    given = {"X": sample, "y": classes}
    rows = certificate(model, population=population, **given)
    pd.DataFrame(population, columns=["x0", "x1", "x2"]).to_parquet(tmp_path / "rows.parquet")
    for asked in (Population(population), Population(str(tmp_path / "rows.parquet"))):
        assert certificate(model, population=asked, **given).terms[SHARE] == pytest.approx(
            rows.terms[SHARE]
        )


def people(n=900):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "town": random.choice(["a", "b", "c"], n),
            "age": random.normal(50, 10, n),
            "same": np.ones(n),
        }
    )
    chance = np.where(frame.town == "a", 0.7, 0.3)
    return frame, frame[random.uniform(size=n) < chance].reset_index(drop=True), random


def test_text_in_a_pipeline_and_columns_in_another_order():
    frame, sample, random = people()
    labels = np.where(sample.age + 10 * random.normal(size=len(sample)) > 50, "old", "young")
    learner = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["town"]), (StandardScaler(), ["age", "same"])),
        LogisticRegression(),
    )
    weighter = TreeWeights(min_samples_leaf=100, columns=["town"])
    model = Reweighted(learner, weighter).fit(sample, labels, population=frame)
    bound = certificate(model, X=sample, y=labels, population=frame)
    assert 0 < bound.terms[SHARE] < 0.3
    turned = frame[["same", "age", "town"]]
    again = certificate(model, X=sample, y=labels, population=turned)
    assert again.terms[SHARE] == bound.terms[SHARE]
    with pytest.raises(MismatchError, match="age"):
        certificate(model, X=sample, y=labels, population=frame[["town", "same"]])


@pytest.mark.parametrize("learner", [LogisticRegression(), SVC(C=0.02)])
def test_rows_without_a_prediction_are_named(cells, learner):
    population, sample, labels, _ = cells
    classes = labels > 0.3
    model = Reweighted(learner, BUCKETS).fit(sample, classes, population=population)
    gaps = np.where(np.arange(len(population))[:, None] == 7, np.nan, population)
    with pytest.raises(InputError, match="1 rows of the population have missing"):
        certificate(model, X=sample, y=classes, population=gaps)


def test_design_weights_of_the_population_count():
    frame, sample, random = people()
    labels = sample.age + 10 * random.normal(size=len(sample)) > 50
    model = Reweighted(
        make_pipeline(make_column_transformer((StandardScaler(), ["age"])), LogisticRegression()),
        TreeWeights(min_samples_leaf=100, columns=["town"]),
    ).fit(sample, labels, population=frame)
    far = frame.assign(weight=np.where(np.abs(frame.age - 50) > 8, 1.0, 0.0))
    weighed = Population(far, weight="weight")
    assert certificate(model, X=sample, y=labels, population=weighed).terms[SHARE] < 0.01
