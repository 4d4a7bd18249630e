"""What must hold of every weighter on any data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.weighters.catalogue import REWEIGHTED, WEIGHTERS, every_weighter, labels_for, shown

from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    DensityRatioWeights,
    KernelMeanMatching,
    LabelShiftWeights,
    Population,
    Reweighted,
)
from unskew.errors import UnskewError
from unskew.weighters.cells import CellWeighter

ALL = [*WEIGHTERS, REWEIGHTED]
CELLS = [weighter for weighter in WEIGHTERS if isinstance(weighter, CellWeighter)]
# More population rows are more evidence to these, also where they are the same rows again.
BY_EVIDENCE = AutoWeights | ClassifierWeights | LabelShiftWeights | Reweighted


def over(weighters):
    return pytest.mark.parametrize("weighter", weighters, ids=shown)


def holds(check, weighter, **strategies):
    """Draw problems for a property: few where a fit chooses among models, 25 otherwise."""
    slow = isinstance(weighter, AutoWeights | ClassifierWeights | Reweighted)
    draw = settings(
        max_examples=10 if slow else 25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    draw(given(problem=problems(), **strategies)(check))()


@st.composite
def problems(draw):
    """A sample with labels and a population that shares rows with it, with ties and gaps."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_columns = draw(st.integers(1, 3))
    sizes = draw(st.integers(2, 25)), draw(st.integers(1, 40))
    if draw(st.booleans()):
        sample, others = (random.integers(0, 3, (size, n_columns)).astype(float) for size in sizes)
    else:
        sample, others = (random.normal(size=(size, n_columns)) for size in sizes)
    if draw(st.booleans()):
        sample[0, 0] = np.nan
    labels = random.integers(0, 3, len(sample)).astype(float)
    return sample, labels, np.vstack([sample, others])


def fitted(weighter, sample, labels, population):
    if isinstance(weighter, Reweighted):  # its learner takes no missing values
        sample = np.nan_to_num(sample, nan=7.0)
        if not isinstance(population, Population):
            population = np.nan_to_num(population, nan=7.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            labels = labels_for(weighter, labels)
            return clone(weighter).fit(sample, labels, population=population)
        except UnskewError:  # no weights exist, or too few rows: tests of ugly data read the words
            reject()


def fit(weighter, sample, labels, population):
    return fitted(weighter, sample, labels, population).weights_


def with_given_features(weighter):
    """Return a calibration to means: automatic features are chosen by folds of the rows' order."""
    if getattr(weighter, "features", None) != "auto":
        return weighter
    return clone(weighter).set_params(features="means")


def rounding(weighter):
    """Return how far a solution may move with the order of its sums, which are not exact."""
    if isinstance(weighter, KernelMeanMatching):
        return 0.02
    if isinstance(weighter, DensityRatioWeights):  # the likelihood is solved to a gap of 1e-8
        return 1e-3 if weighter.loss == "kl" else 1e-6
    if isinstance(weighter, CalibrationWeights | BY_EVIDENCE):  # solved by Newton's method
        return 1e-6
    return 1e-12  # sums of counts are exact


def assert_same(weighter, weights, expected):
    scale = expected.max() if rounding(weighter) > 1e-12 else 0
    bound = rounding(weighter)
    assert np.allclose(weights, expected, rtol=bound, atol=bound * scale)


@every_weighter
def test_weights_are_finite_non_negative_and_sum_to_the_total(weighter):
    def check(problem):
        sample, labels, population = problem
        weights = fit(weighter, sample, labels, population)
        assert weights.shape == (len(sample),)
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
        to_sample = getattr(weighter, "total", "sample") == "sample"
        total = len(sample) if to_sample else len(population)
        assert weights.sum() == pytest.approx(total, rel=1e-9)

    holds(check, weighter)


@every_weighter
def test_permuting_rows_permutes_weights(weighter):
    def check(problem, seed):
        sample, labels, population = problem
        random = np.random.default_rng(seed)
        order = random.permutation(len(sample))
        weights = fit(weighter, sample, labels, population)
        others = random.permutation(population)
        if getattr(weighter, "features", None) == "auto":  # folds go by the population's order
            others = population
        shuffled = fit(weighter, sample[order], labels[order], others)
        assert_same(weighter, shuffled, weights[order])

    holds(check, weighter, seed=st.integers(0, 100))


@over([weighter for weighter in ALL if not isinstance(weighter, BY_EVIDENCE)])
def test_duplicating_the_population_changes_nothing(weighter):
    weighter = with_given_features(weighter)

    def check(problem):
        sample, labels, population = problem
        once = fit(weighter, sample, labels, population)
        thrice = fit(weighter, sample, labels, np.tile(population, (3, 1)))
        factor = 3 if weighter.total == "population" else 1
        assert_same(weighter, thrice, once * factor)

    holds(check, weighter)


@over([weighter for weighter in ALL if not isinstance(weighter, BY_EVIDENCE)])
def test_a_weighted_population_equals_the_same_rows_repeated(weighter):
    weighter = with_given_features(weighter)

    def check(problem, seed):
        sample, labels, population = problem
        times = np.random.default_rng(seed).integers(0, 4, len(population))
        times[0] = 1
        repeated = fit(weighter, sample, labels, np.repeat(population, times, axis=0))
        weighted = fit(weighter, sample, labels, Population(population, weight=times))
        assert_same(weighter, weighted, repeated)

    holds(check, weighter, seed=st.integers(0, 100))


# A smooth function is near one there, not equal to it; tests of its own say how near. So are the
# weights of an honest tree, which counts other rows than it grew on, and classes by folds.
@over(
    [
        weighter
        for weighter in ALL
        if not getattr(weighter, "honest", False)
        and not isinstance(weighter, DensityRatioWeights | LabelShiftWeights)
    ]
)
def test_a_population_equal_to_the_sample_gives_weights_of_one(weighter):
    def check(problem):
        sample, labels, _ = problem
        assert_same(weighter, fit(weighter, sample, labels, sample), np.ones(len(sample)))

    holds(check, weighter)


@over(CELLS)
def test_weighing_the_sample_again_gives_its_weights(weighter):
    def check(problem):
        sample, labels, population = problem
        found = fitted(weighter, sample, labels, population)
        assert np.array_equal(found.weigh(sample), found.weights_)

    holds(check, weighter)


# Kernel mean matching is left out: its solution is sparse, zero is what most weights should be.
@over([weighter for weighter in ALL if not isinstance(weighter, KernelMeanMatching)])
@pytest.mark.parametrize("n_rows", [997, 1000, 4005])
def test_no_row_is_left_at_weight_zero(weighter, n_rows):
    """Whatever the number of rows: a sample that is part of the population has no empty cell."""
    random = np.random.default_rng(n_rows)
    population = random.normal(size=(2 * n_rows, 2)).round(1)
    sample = population[:n_rows]
    labels = random.normal(size=n_rows)
    assert (fit(weighter, sample, labels, population) > 0).all()
