"""Standard errors of ``estimate``: identities, the bootstrap, a simulation."""

import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.estimation.helpers import MEANS, QUIET

from unskew import (
    AutoWeights,
    CalibrationWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    Margins,
    TreeWeights,
    Unweighted,
    estimate,
)
from unskew.errors import EstimateWarning, InputError, ParameterError
from unskew.numerics.design_variance import SurveyDesign


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
    design = SurveyDesign.from_codes(4)
    assert design.spread(influence).degrees == pytest.approx(3)  # units less one
    sizes = np.array([[4.0], [1.0], [1.0], [0.0]])
    assert design.spread(influence, sizes=sizes).degrees == pytest.approx(36 / 18)
    assert design.spread(influence, sizes=np.ones((4, 1))).degrees == pytest.approx(3)
    pairs = SurveyDesign.from_codes(4, clusters=np.array([0, 0, 1, 2]))
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


def test_a_row_outside_of_a_domain_does_not_inflate_its_error():
    # Treated and untreated; an untreated row is nearly alone in what it is matched by.
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=200), np.zeros(200)])
    arm, y = np.repeat(["a", "b"], 100), random.normal(size=200) + X[:, 0]
    X[150, 1] = 1.0
    X[:, 1] += 0.02 * random.normal(size=200)
    population = random.normal(size=(2000, 2)) * [1.0, 0.02] + [0.2, 0.02]
    common = {"population": population, "weighter": MEANS, "by": arm}
    found = {
        name: estimate(X, y, variance=name, **common)["a"].standard_error
        for name in ("m_estimator", "hc3", "bootstrap")
    }
    assert found["hc3"] == pytest.approx(found["m_estimator"], rel=0.1)
    assert found["hc3"] == pytest.approx(found["bootstrap"], rel=0.3)


def test_domains_have_the_degrees_of_freedom_of_their_units():
    rows = np.arange(40)
    X, y = np.zeros((40, 1)), np.random.default_rng(0).normal(size=40)
    strata, clusters = rows // 20, rows // 4  # five clusters in each of two strata
    groups = np.where(rows < 12, "few", np.where(rows < 28, "both", "rest"))
    with pytest.warns(EstimateWarning):
        found = estimate(
            X, y, population=X, weighter=Unweighted(), strata=strata, clusters=clusters, by=groups
        )
    assert found["few"].degrees_of_freedom <= 3 - 1
    assert found["both"].degrees_of_freedom <= 4 - 2


def test_the_effective_size_counts_clusters():
    random = np.random.default_rng(0)
    X, y = np.zeros((600, 1)), np.repeat(random.normal(size=200), 3)
    common = {"population": X, "weighter": Unweighted(), "variance": "linear"}
    houses = np.arange(600) // 3
    # Copies count once: three rows of a house have the variance of one.
    assert estimate(X, y, clusters=houses, **common).effective_sample_size == pytest.approx(
        200 * 599 / 597, rel=0.01
    )
    assert estimate(X, y, **common).effective_sample_size == pytest.approx(600)
    # Where all answers are alike nothing shows how alike houses are: rows count as copies.
    alike = estimate(X, np.ones(600), clusters=houses, **common)
    assert alike.effective_sample_size == pytest.approx(200)


@pytest.mark.filterwarnings("ignore:The effective sample size")
def test_many_groups_take_no_matrix_of_rows_and_groups():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20_000, 1)), random.normal(size=20_000)
    groups = random.integers(2000, size=20_000)
    common = {"population": random.normal(size=(2000, 1)), "weighter": MEANS}
    estimate(X[:50], y[:50], **common)  # imports
    tracemalloc.start()
    found = estimate(X, y, by=groups, **common)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 160e6  # one matrix would be 320 MB
    own = groups == 17
    alone = estimate(X, y, by=own, **common)[True]
    assert found[17].value == pytest.approx(alone.value)
    assert found[17].standard_error == pytest.approx(alone.standard_error)


def test_ten_thousand_strata_are_drawn_within_each():
    design = SurveyDesign.from_codes(
        30_000, strata=np.random.default_rng(0).permutation(np.arange(30_000) // 3)
    )
    times = design.redraw(np.random.RandomState(0))
    sums = np.bincount(design.strata, times)
    assert sums == pytest.approx(np.full(10_000, 3.0))
    assert set(times) == {0.0, 1.5, 3.0}
    assert times.var() == pytest.approx(1.0, rel=0.05)
    began = time.process_time()
    for seed in range(20):
        design.redraw(np.random.RandomState(seed))
    assert time.process_time() - began < 2.0  # a loop over strata took 6 s


def test_margins_that_are_estimates_add_their_variance():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"sex": np.repeat(["f", "m"], 200), "age": random.normal(40, 10, 400)})
    y = random.normal(size=400) + 3.0 * (X.sex == "f") + 0.2 * X.age
    weighter = FrequencyWeights(columns=["sex"])
    for given, error in (
        ({"counts": {"sex": {"f": 300, "m": 700}}}, 20.0),
        ({"shares": {"sex": {"f": 30, "m": 70}}, "unit": "percent"}, {"f": 2.0, "m": 2.0}),
    ):
        exact = Margins(**given)
        found = estimate(
            X, y, population=Margins(**given, standard_errors={"sex": error}), weighter=weighter
        )
        gap = y[X.sex == "f"].mean() - y[X.sex == "m"].mean()
        assert found.parts["margins"] == pytest.approx((0.02 * gap) ** 2, rel=1e-6)
        before = estimate(X, y, population=exact, weighter=weighter)
        assert found.standard_error**2 == pytest.approx(
            before.standard_error**2 + found.parts["margins"]
        )
        assert found.degrees_of_freedom > before.degrees_of_freedom
        assert "the margins are exact" not in found.assumptions
    # A mean moves the number by its slope; a table of three levels by a multinomial's.
    mean = Margins(means={"age": 41.0}, standard_errors={"age": 1.5})
    slope = np.polyfit(X.age, y, 1)[0]
    found = estimate(X, y, population=mean, weighter=CalibrationWeights(distance="linear"))
    assert found.parts["margins"] == pytest.approx((1.5 * slope) ** 2, rel=1e-6)
    three = pd.DataFrame({"g": np.repeat(["a", "b", "c"], [100, 200, 100])})
    shares = {"a": 0.2, "b": 0.3, "c": 0.5}
    errors = {level: np.sqrt(p * (1 - p) / 50) for level, p in shares.items()}
    known = Margins(shares={"g": shares}, standard_errors={"g": errors})
    found = estimate(three, y, population=known)
    means = np.array([y[three.g == level].mean() for level in "abc"])
    p = np.array(list(shares.values()))
    expected = (p @ means**2 - (p @ means) ** 2) / 50
    assert found.parts["margins"] == pytest.approx(expected, rel=1e-6)
    median = estimate(three, y, population=known, statistic="quantile", q=0.5)
    plain = estimate(
        three, y, population=Margins(shares={"g": shares}), statistic="quantile", q=0.5
    )
    assert median.standard_error > plain.standard_error
    with pytest.raises(ParameterError, match="standard_errors of g lacks the level 'b'"):
        Margins(shares={"g": shares}, standard_errors={"g": {"a": 0.1, "c": 0.1}})


def test_the_bootstrap_of_automatic_weights_is_that_of_cells_and_fits_no_model_again():
    random = np.random.default_rng(1)
    effects, names = np.array([-1.5, -0.5, 0.0, 0.7, 1.4]), np.array(list("abcde"))
    odds = np.exp(0.6 * effects)
    chosen = random.choice(5, size=500, p=odds / odds.sum())
    sample = pd.DataFrame({"c": names[chosen]})
    population = pd.DataFrame({"c": names[random.integers(5, size=3000)]})
    y = 2 * effects[chosen] + random.normal(size=500)
    began = time.process_time()
    AutoWeights(**QUIET).fit(sample, population=population)
    fit = time.process_time() - began
    ours = estimate(sample, y, population=population, weighter=AutoWeights(**QUIET))
    taken = time.process_time() - began - fit
    cells = estimate(sample, y, population=population, weighter=FrequencyWeights(**QUIET))
    assert ours.variance == "bootstrap"
    # The spread of 200 replicates has an error of 5 %.
    assert ours.standard_error == pytest.approx(cells.standard_error, rel=0.15)
    assert taken < 20 * fit  # 200 fits took 200 times as long
