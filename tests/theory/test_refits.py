"""Sharper bounds for linear learners: all weights of a region, and draws of weights."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC, LinearSVR
from tests.theory.helpers import BUCKETS

from unskew import (
    AutoWeights,
    CalibrationWeights,
    HistogramWeights,
    KnownProbability,
    Reweighted,
)
from unskew.errors import InputError, LearnerError, ParameterError
from unskew.theory import certificate
from unskew.theory.certificate import CertifiedModel
from unskew.theory.moves import in_neighbourhood, joint_limits, moves, refits_with_draws
from unskew.theory.regions import BootstrapRegion, CellRegion, read_cells

LEARNERS = [Ridge(), LogisticRegression(tol=1e-8), LinearSVC(tol=1e-8, max_iter=50_000)]
MEANS = CalibrationWeights(features="means", overlap="ignore")


def fitted(cells, learner):
    population, sample, labels, _ = cells
    labels = labels if isinstance(learner, Ridge | LinearSVR) else labels > 0.3
    model = Reweighted(learner, BUCKETS).fit(sample, labels, population=population)
    return CertifiedModel(model, sample, labels, population)


def score(model, rows):
    return getattr(model, "decision_function", model.predict)(rows)


WITHOUT_CURVATURE = [
    LinearSVC(loss="hinge", C=0.01, tol=1e-8, max_iter=50_000),
    LinearSVR(C=0.01, tol=1e-8, max_iter=50_000),
]


@pytest.mark.parametrize(
    "learner", [*LEARNERS, *WITHOUT_CURVATURE], ids=lambda one: type(one).__name__
)
def test_no_weights_of_the_region_move_a_row_further(cells, learner):
    given = fitted(cells, learner)
    counted = read_cells(given.model.weighter_, given.model.weights_)
    region = CellRegion.from_cells(counted, 0.05, given.rows)
    found = moves(given.fitted, region)
    ball = in_neighbourhood(given.fitted, region)
    assert found.on_average <= ball.on_average
    assert (found.reach <= ball.reach).all()
    assert (found.reach <= found.ball.reach(given.fitted.features) + 1e-12).all()
    errors, random = region.errors, np.random.default_rng(0)
    before = score(given.model, given.X)
    for _ in range(25):
        way = random.normal(size=len(errors.size)) / np.sqrt(errors.stiffness)
        limits = np.where(way > 0, errors.high, errors.low)
        largest = min(np.sqrt(errors.radius / (errors.stiffness @ way**2)), (limits / way).min())
        weights = given.model.weights_ * counted.ratios(given.rows, largest * way)
        other = clone(learner).fit(given.X, given.y, sample_weight=weights)
        change = score(other, given.X) - before
        assert (np.abs(change) <= found.reach + 1e-6).all()
        for one in found.ellipsoids:
            assert (np.abs(change) <= one.reach(given.fitted.features) + 1e-6).all()
        assert np.sqrt(np.average(change**2, weights=given.model.weights_)) <= found.on_average


def test_rows_have_bounds_of_their_own_where_cells_are_many():
    random = np.random.default_rng(0)
    population = random.normal(size=(9000, 6))
    borders = np.quantile(population[:, 0], np.arange(1, 10) / 10)
    chance = random.uniform(0.4, 0.8, size=10)[np.searchsorted(borders, population[:, 0])]
    sample = population[random.uniform(size=9000) < chance]
    labels = sample.sum(axis=1) + random.normal(size=len(sample))
    weighter = HistogramWeights(buckets={0: list(borders), **dict.fromkeys(range(1, 6), 1)})
    model = Reweighted(Ridge(), weighter).fit(sample, labels, population=population)
    given = CertifiedModel(model, sample, labels, None)
    counted = read_cells(model.weighter_, model.weights_)
    region = CellRegion.from_cells(counted, 0.05, given.rows)
    ball = in_neighbourhood(given.fitted, region)
    found = moves(given.fitted, region)
    assert np.median(found.reach / ball.ball.reach(given.fitted.features)) < 0.7


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_refits_are_those_of_the_learner(cells, learner):
    given = fitted(cells, learner)
    changes = np.exp(0.4 * np.random.default_rng(0).normal(size=(len(given.y), 19))) - 1
    region = BootstrapRegion.from_replicates(1 + changes, 0.1)
    _, found, _ = refits_with_draws(given.fitted, region, 0.1, np.random.RandomState(0))
    before = score(given.model, given.X)
    for draw in range(0, 19, 6):
        weights = given.model.weights_ * (1 + changes[:, draw])
        other = clone(learner).fit(given.X, given.y, sample_weight=weights)
        change = score(other, given.X) - before
        size = np.sqrt(np.average(change**2, weights=given.model.weights_))
        assert size * 0.999 <= found["average"][draw] <= 1.1 * size
        assert np.abs(change).max() * 0.999 <= found["most"][draw] <= 1.2 * np.abs(change).max()


def test_limits_hold_at_once_as_often_as_they_say():
    random = np.random.default_rng(0)
    shared = random.normal(size=(2000, 100, 1))
    numbers = np.exp(shared + random.normal(size=(2000, 100, 3)))  # 99 draws, and the truth
    exceeded = 0
    for one in numbers:
        limits = joint_limits(dict(enumerate(one[:99].T)), 0.1)
        exceeded += (one[99] > list(limits.values())).any()
    assert 0.08 <= exceeded / 2000 <= 0.115


def draw(seed, m=300, n=600):
    random = np.random.default_rng(seed)
    population, sample = random.normal(size=(n, 2)), random.normal(size=(m, 2)) - [0.6, -0.3]
    return population, sample, sample.sum(axis=1) + random.normal(size=m) > 0


def test_the_bootstrap_agrees_with_the_covariance():
    population, sample, labels = draw(0)
    model = Reweighted(LogisticRegression(), MEANS).fit(sample, labels, population=population)
    given = {"X": sample, "y": labels, "population": population}
    by_covariance = certificate(model, **given)
    again = certificate(model, region="bootstrap", **given)
    assert again == pytest.approx(float(by_covariance), rel=0.3)
    assert again.statement.startswith("Asymptotically with probability 95 %")
    assert again.terms["replicates of the weights"] == 200
    svc = certificate(
        Reweighted(Ridge(), HistogramWeights(buckets={0: [0.0], 1: 1})).fit(
            sample, labels.astype(float), population=np.concatenate([population, sample])
        ),
        X=sample,
        y=labels.astype(float),
        population=np.concatenate([population, sample]),
        region="bootstrap",
        replicates=19,
    )
    assert not svc.vacuous


def test_few_rows_are_named():
    population, sample, labels = draw(0, m=20)
    model = Reweighted(LogisticRegression(), MEANS).fit(sample, labels, population=population)
    bound = certificate(model, X=sample, y=labels, population=population)
    assert "the weights leave the worth of" in str(bound)


class TestBadBootstraps:
    def test_too_few_replicates_or_no_data(self):
        population, sample, labels = draw(0)
        model = Reweighted(LogisticRegression(), MEANS).fit(sample, labels, population=population)
        with pytest.raises(ParameterError, match="at least 19"):
            certificate(model, X=sample, y=labels, region="bootstrap", replicates=18)
        with pytest.raises(ParameterError, match="X and population are needed"):
            certificate(model, X=sample, y=labels, region="bootstrap")
        with pytest.raises(ParameterError, match="region must be"):
            certificate(model, X=sample, y=labels, region="ellipsoid")
        with pytest.raises(InputError, match="does not give the weights of fit again"):
            certificate(model, X=sample, y=labels, population=population[:300], region="bootstrap")

    def test_weights_that_cannot_be_solved_again(self):
        population, sample, labels = draw(0)
        known = KnownProbability(lambda rows: np.full(len(rows), 0.5))
        model = Reweighted(LogisticRegression(), known).fit(sample, labels, population=population)
        given = {"X": sample, "y": labels, "population": population, "region": "bootstrap"}
        with pytest.raises(LearnerError, match="not covered: KnownProbability estimates nothing"):
            certificate(model, **given)

    def test_advice_where_there_is_no_other_region(self):
        population, sample, labels = draw(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = Reweighted(LogisticRegression(), AutoWeights(overlap="ignore"), power=1).fit(
                sample, labels, population=population
            )
        with pytest.raises(LearnerError, match='not covered: automatic.*region="bootstrap"'):
            certificate(model, X=sample, y=labels, population=population)
