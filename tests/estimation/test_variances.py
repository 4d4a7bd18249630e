"""Standard errors of ``estimate``: identities, the bootstrap, a simulation."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.estimation.helpers import MEANS, QUIET

from unskew import (
    CalibrationWeights,
    FrequencyWeights,
    HistogramWeights,
    InputError,
    KernelMeanMatching,
    TreeWeights,
    Unweighted,
    estimate,
)
from unskew.numerics.design_variance import Design


def test_cells_and_calibration_to_their_shares_agree(data):
    X, y, population, _ = data
    cells = FrequencyWeights(columns=["g"], **QUIET)
    shares = CalibrationWeights(columns=["g"], features="means", **QUIET)
    for variance in ("linear", "m_estimator", "hc3"):
        ours, theirs = (
            estimate(X, y, population=population, weighter=one, variance=variance)
            for one in (cells, shares)
        )
        assert ours.value == pytest.approx(theirs.value)
        assert ours.parts == pytest.approx(theirs.parts)


def test_merged_cells_have_the_noise_of_the_rows_that_they_take():
    # The population's third level has no sample row, and counts with the nearest, the second.
    X, y = np.repeat([[0.0], [1.0]], 50, axis=0), np.arange(100) % 7 + np.repeat([0.0, 10.0], 50)
    population = np.repeat([[0.0], [1.0], [2.0]], [60, 30, 10], axis=0)
    weighter = HistogramWeights(buckets=3, **QUIET)
    found = estimate(X, y, population=population, weighter=weighter, variance="linear")
    gap = y[50:].mean() - y[:50].mean()
    assert found.parts["population"] == pytest.approx(gap**2 * 0.6 * 0.4 / 99, rel=1e-6)


def test_clusters_of_copies_count_once(data):
    X, y, population, _ = data
    once = estimate(X, y, population=population, weighter=MEANS, variance="m_estimator")
    twice = pd.concat([X, X], ignore_index=True)
    copies = estimate(
        twice,
        np.concatenate([y, y]),
        population=population,
        weighter=MEANS,
        variance="m_estimator",
        clusters=np.tile(np.arange(len(X)), 2),
    )
    assert copies.value == pytest.approx(once.value)
    assert copies.standard_error == pytest.approx(once.standard_error)


def test_strata_that_explain_y_take_its_variance():
    y = np.repeat([0.0, 10.0], 50) + np.tile([-1.0, 1.0], 50)
    X = np.zeros((100, 1))
    common = {"population": X, "weighter": Unweighted(), "variance": "linear"}
    found = estimate(X, y, strata=np.repeat([0, 1], 50), **common)
    assert found.standard_error == pytest.approx(np.sqrt(2 * 50 / 49 * 50) / 100)
    assert found.standard_error < 0.25 * estimate(X, y, **common).standard_error


def test_a_sample_that_is_all_of_a_finite_population_has_no_error(data):
    _, _, population, labels = data
    found = estimate(
        population,
        labels,
        population=population,
        finite_population=True,
        weighter=Unweighted(),
    )
    assert found.standard_error == pytest.approx(0.0, abs=1e-12)


def test_the_bootstrap_agrees_with_linearisation(data):
    X, y, population, _ = data
    for weighter in (MEANS, FrequencyWeights(columns=["g"], **QUIET)):
        common = {"population": population, "weighter": weighter}
        linear = estimate(X, y, variance="m_estimator", **common)
        boot = estimate(X, y, variance="bootstrap", replicates=200, **common)
        assert boot.standard_error == pytest.approx(linear.standard_error, rel=0.15)
        assert boot.variance == "bootstrap"


def test_the_bootstrap_draws_the_population_again(data):
    # A small population that the features follow closely: its noise is most of the variance.
    X, _, population, _ = data
    small = population.iloc[:100]
    numbers = CalibrationWeights(columns=["a"], features="means", **QUIET)
    common = {"population": small, "weighter": numbers}
    linear = estimate(X, X.a, variance="m_estimator", **common)
    boot = estimate(X, X.a, variance="bootstrap", replicates=200, **common)
    assert linear.standard_error == pytest.approx(small.a.std() / 10, rel=1e-6)
    assert boot.standard_error == pytest.approx(linear.standard_error, rel=0.15)
    exact = estimate(X, X.a, variance="bootstrap", finite_population=True, **common)
    assert exact.standard_error == pytest.approx(0.0, abs=1e-8)


def test_weights_that_cannot_be_linearised_are_bootstrapped(data):
    X, y, population, _ = data
    X, y = X.iloc[:100], y[:100]
    weighter = KernelMeanMatching(columns=["a"], **QUIET)
    found = estimate(X, y, population=population, weighter=weighter, replicates=10)
    assert found.variance == "bootstrap"
    robust = estimate(X, y, population=population, weighter=weighter, outcome="linear")
    assert robust.variance == "orthogonal"
    with pytest.raises(InputError, match='variance="bootstrap"'):
        estimate(X, y, population=population, weighter=weighter, variance="linear")


def test_trees_that_saw_the_labels_say_so(data):
    X, y, population, _ = data
    found = estimate(X, y, population=population, weighter=TreeWeights(**QUIET))
    assert "honest=True" in str(found)
    honest = TreeWeights(honest=True, min_samples_leaf=20, **QUIET)
    honest = estimate(X, y, population=population, weighter=honest, replicates=20)
    assert honest.variance == "bootstrap"


def test_ridge_slack_and_limits_have_a_variance(data):
    X, y, population, _ = data
    exact = estimate(X, y, population=population, weighter=MEANS)
    for options in ({"ridge": 1e-6}, {"slack": 1e-6}, {"max_weight": 50.0}):
        weighter = clone(MEANS).set_params(**options)
        found = estimate(X, y, population=population, weighter=weighter)
        assert found.standard_error == pytest.approx(exact.standard_error, rel=1e-4)
    loose = clone(MEANS).set_params(slack=10.0)
    plain = estimate(X, y, population=population, weighter=Unweighted())
    found = estimate(X, y, population=population, weighter=loose)
    assert found.parts["sample"] == pytest.approx(plain.parts["sample"], rel=1e-6)


def test_intervals_cover_the_truth():
    covered = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        population = random.normal(size=(500, 2))
        pool = random.normal(size=(1000, 2))
        kept = random.uniform(size=1000) < 0.4 / (1 + np.exp(-pool[:, 0]))
        X = pool[kept]
        y = X[:, 0] + random.normal(size=len(X))
        weighter = CalibrationWeights(features="means", **QUIET)
        found = estimate(X, y, population=population, weighter=weighter)
        covered += found.interval[0] <= 0 <= found.interval[1]
    # Of 200 intervals that each cover in 95 %, fewer than 180 do in one of 1,000 runs.
    assert 180 <= covered <= 199


def test_degrees_of_freedom_of_known_sizes():
    influence = np.array([[3.0], [-1.0], [1.0], [-3.0]])
    design = Design.of(4)
    assert design.spread(influence).degrees == pytest.approx(3)  # units less one
    sizes = np.array([[4.0], [1.0], [1.0], [0.0]])
    assert design.spread(influence, sizes=sizes).degrees == pytest.approx(36 / 18)
    assert design.spread(influence, sizes=np.ones((4, 1))).degrees == pytest.approx(3)
    pairs = Design.of(4, clusters=np.array([0, 0, 1, 2]))
    assert pairs.spread(influence, sizes=sizes).degrees == pytest.approx(36 / 26)
    assert design.spread(influence, sizes=np.zeros((4, 1))).degrees == pytest.approx(3)


@pytest.mark.filterwarnings("ignore:The effective sample size")
def test_few_rows_have_the_degrees_of_freedom_of_their_weights():
    random = np.random.default_rng(0)
    X, population = random.normal(1, 1, size=(60, 1)), random.normal(size=(500, 1))
    y = random.normal(size=60)
    few = estimate(X, y, population=population, weighter=clone(MEANS))
    assert few.effective_sample_size < 30
    weights = few._basis.weighed.weights
    most = (weights**2).sum() ** 2 / (weights**4).sum()  # leverage only makes large rows larger
    assert 1 <= few.degrees_of_freedom <= most
    groups = np.where(np.arange(60) < 30, "a", "b")
    found = estimate(X, y, population=population, weighter=clone(MEANS), by=groups)
    assert max(one.degrees_of_freedom for one in found.values()) <= 30
