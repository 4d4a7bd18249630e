"""What must hold of every weighter on any data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unskew import (
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    KnownProbability,
    Population,
    Tempered,
    TreeWeights,
    Unweighted,
)

CELLS = [
    FrequencyWeights(),
    FrequencyWeights(empty="drop"),
    HistogramWeights(buckets=3),
    HistogramWeights(buckets=2, strategy="width", total="population"),
    ClusterWeights(),
    TreeWeights(min_samples_leaf=1),
    TreeWeights(min_samples_leaf=2, total="population"),
    TreeWeights(min_samples_leaf=1, honest=True),
    TreeWeights(min_samples_leaf="bound"),
]
ALL = [
    Unweighted(),
    Unweighted(total="population"),
    KnownProbability(lambda X: np.full(len(X), 0.2)),
    *CELLS,
    CalibrationWeights(features="means", on_infeasible="relax"),
    CalibrationWeights(distance="linear", bounds=(0, None), ridge=0.1, total="population"),
    CalibrationWeights(
        features="means", distance="linear", bounds=(0, None), ridge=0.1, total="population"
    ),
    ClassifierWeights("logistic", penalty=0.01, rate=0.3, calibration=None),
    Tempered(HistogramWeights(buckets=3), power=0.5),
    KernelMeanMatching(ridge=1.0),  # without, the weights at near points are not determined
    KernelMeanMatching(method="low-rank", ridge=1.0, total="population"),
    DensityRatioWeights(smoothing=0.1),
    DensityRatioWeights("kl", bandwidth="paper"),
    DensityRatioWeights(relative=0.2, smoothing=0.1, total="population"),
]

every_weighter = pytest.mark.parametrize("weighter", ALL, ids=lambda w: str(w).split(" at 0x")[0])
quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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


def fit(weighter, sample, labels, population, **options):
    from sklearn.base import clone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(weighter).fit(sample, labels, population=population, **options).weights_


def with_given_features(weighter):
    """Return a calibration to means: automatic features are chosen by folds of the rows' order."""
    from sklearn.base import clone

    if getattr(weighter, "features", None) != "auto":
        return weighter
    return clone(weighter).set_params(features="means")


def assert_same(weighter, weights, expected):
    # Sums of counts are exact; sums of kernels are not, and a solution moves with them.
    rounding = 0.02 if isinstance(weighter, KernelMeanMatching) else 1e-12
    if isinstance(weighter, DensityRatioWeights):  # the likelihood is solved to a gap of 1e-8
        rounding = 1e-3 if weighter.loss == "kl" else 1e-6
    if isinstance(weighter, CalibrationWeights | ClassifierWeights):  # solved by Newton's method
        rounding = 1e-6
    solved = isinstance(
        weighter,
        KernelMeanMatching | CalibrationWeights | ClassifierWeights | DensityRatioWeights,
    )
    scale = expected.max() if solved else 0
    assert np.allclose(weights, expected, rtol=rounding, atol=rounding * scale)


@every_weighter
@quick
@given(problem=problems())
def test_weights_are_finite_non_negative_and_sum_to_the_total(weighter, problem):
    sample, labels, population = problem
    weights = fit(weighter, sample, labels, population)
    assert weights.shape == (len(sample),)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    total = len(sample) if weighter.total == "sample" else len(population)
    assert weights.sum() == pytest.approx(total, rel=1e-9)


@every_weighter
@quick
@given(problem=problems(), seed=st.integers(0, 100))
def test_permuting_rows_permutes_weights(weighter, problem, seed):
    sample, labels, population = problem
    random = np.random.default_rng(seed)
    order = random.permutation(len(sample))
    weights = fit(weighter, sample, labels, population)
    others = random.permutation(population)
    if getattr(weighter, "features", None) == "auto":  # chosen by folds of the population's order
        others = population
    shuffled = fit(weighter, sample[order], labels[order], others)
    assert_same(weighter, shuffled, weights[order])


@every_weighter
@quick
@given(problem=problems())
def test_duplicating_the_population_changes_nothing(weighter, problem):
    sample, labels, population = problem
    weighter = with_given_features(weighter)
    once = fit(weighter, sample, labels, population)
    thrice = fit(weighter, sample, labels, np.tile(population, (3, 1)))
    factor = 3 if weighter.total == "population" else 1
    assert_same(weighter, thrice, once * factor)


@every_weighter
@quick
@given(problem=problems(), seed=st.integers(0, 100))
def test_a_weighted_population_equals_the_same_rows_repeated(weighter, problem, seed):
    sample, labels, population = problem
    weighter = with_given_features(weighter)
    times = np.random.default_rng(seed).integers(0, 4, len(population))
    times[0] = 1
    repeated = fit(weighter, sample, labels, np.repeat(population, times, axis=0))
    weighted = fit(weighter, sample, labels, Population(population, weight=times))
    assert_same(weighter, weighted, repeated)


# A smooth function is near one there, not equal to it; tests of its own say how near.
@pytest.mark.parametrize(
    "weighter",
    [w for w in ALL if not (getattr(w, "honest", False) or isinstance(w, DensityRatioWeights))],
    ids=lambda w: str(w).split(" at 0x")[0],
)
@quick
@given(problem=problems())
def test_a_population_equal_to_the_sample_gives_weights_of_one(weighter, problem):
    sample, labels, _ = problem
    assert_same(weighter, fit(weighter, sample, labels, sample), np.ones(len(sample)))


@pytest.mark.parametrize("weighter", CELLS, ids=lambda w: str(w).split(" at 0x")[0])
@quick
@given(problem=problems())
def test_weighing_the_sample_again_gives_its_weights(weighter, problem):
    from sklearn.base import clone

    sample, labels, population = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(weighter).fit(sample, labels, population=population)
    assert np.array_equal(fitted.weigh(sample), fitted.weights_)


# Kernel mean matching is left out: its solution is sparse, zero is what most weights should be.
@pytest.mark.parametrize(
    "weighter",
    [w for w in ALL if not isinstance(w, KernelMeanMatching)],
    ids=lambda w: str(w).split(" at 0x")[0],
)
@pytest.mark.parametrize("n_rows", [997, 1000, 1001, 4005])
def test_no_row_is_left_at_weight_zero(weighter, n_rows):
    """Whatever the number of rows: a sample that is part of the population has no empty cell."""
    random = np.random.default_rng(n_rows)
    population = random.normal(size=(2 * n_rows, 2)).round(1)
    sample = population[:n_rows]
    labels = random.normal(size=n_rows)
    assert (fit(weighter, sample, labels, population) > 0).all()
