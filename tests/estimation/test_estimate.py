"""Identities, simulations and bad input of ``estimate``."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor

from unskew import (
    CalibrationWeights,
    EstimateWarning,
    FrequencyWeights,
    HistogramWeights,
    InputError,
    KernelMeanMatching,
    LearnerError,
    Margins,
    ParameterError,
    Population,
    TreeWeights,
    Unweighted,
    estimate,
)

QUIET = {"overlap": "ignore"}
MEANS = CalibrationWeights(features="means", columns="shared", **QUIET)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(3)
    n = 3000
    population = pd.DataFrame(
        {
            "a": random.normal(size=n),
            "b": random.normal(size=n),
            "g": random.choice(["x", "y", "z"], size=n),
        }
    )
    labels = population.a + population.b**2 + (population.g == "x") + random.normal(size=n)
    kept = random.uniform(size=n) < 0.3 / (1 + np.exp(-population.a))
    return population[kept].reset_index(drop=True), labels[kept].to_numpy(), population, labels


def test_it_corrects_the_mean_and_says_so(data):
    X, y, population, labels = data
    found = estimate(X, y, population=population)
    assert found.interval[0] < labels.mean() < found.interval[1] < found.unweighted
    assert found.unweighted == pytest.approx(y.mean())
    assert set(found.parts) == {"sample", "population"}
    assert sum(found.parts.values()) == pytest.approx(found.standard_error**2)
    assert "unweighted" in str(found)
    assert "selection depends on the 3 columns only" in str(found)
    assert str(found).split(",")[0] in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["value"] == found.value


def test_a_weighted_mean_is_that_of_the_weighter(data):
    X, y, population, _ = data
    weights = clone(MEANS).fit(X, population=population).weights_
    found = estimate(X, y, population=population, weighter=MEANS)
    assert found.value == pytest.approx(np.average(y, weights=weights), rel=1e-12)
    assert not hasattr(MEANS, "weights_")  # a clone was fitted


def test_a_total_is_the_mean_times_the_size(data):
    X, y, population, _ = data
    mean = estimate(X, y, population=population, weighter=MEANS)
    total = estimate(X, y, population=population, weighter=MEANS, statistic="total")
    assert total.value == pytest.approx(3000 * mean.value)
    assert total.standard_error == pytest.approx(3000 * mean.standard_error)


def test_proportions_add_up_and_are_means_of_indicators(data):
    X, y, population, _ = data
    classes = np.where(y > 1, "high", np.where(y > 0, "middle", "low"))
    found = estimate(X, classes, population=population, weighter=MEANS, statistic="proportion")
    assert list(found) == ["high", "low", "middle"]
    assert sum(one.value for one in found.values()) == pytest.approx(1.0)
    alone = estimate(X, classes == "high", population=population, weighter=MEANS)
    assert found["high"].value == pytest.approx(alone.value)
    assert found["high"].standard_error == pytest.approx(alone.standard_error)
    assert "%" in str(alone)
    with pytest.raises(InputError, match='statistic="proportion"'):
        estimate(X, classes, population=population)


def test_a_median_of_equal_weights_is_the_median():
    X, y = np.zeros((101, 1)), np.random.default_rng(0).normal(size=101)
    found = estimate(X, y, population=X, weighter=Unweighted(), statistic="quantile", q=0.5)
    assert found.value == pytest.approx(np.median(y))
    # Woodruff: the ends are order statistics about 0.98 √n beside the median.
    ranks = np.searchsorted(np.sort(y), found.interval)
    assert ranks == pytest.approx([40, 60], abs=2)


def test_groups_are_domains_as_in_a_regression(data):
    X, y, population, _ = data
    weights = clone(MEANS).fit(X, population=population).weights_
    found = estimate(X, y, population=population, weighter=MEANS, by="g")
    for group, one in found.items():
        own = (X.g == group).to_numpy()
        assert one.value == pytest.approx(np.average(y[own], weights=weights[own]))
    parts = estimate(X, y, population=population, weighter=MEANS, by="g", statistic="total")
    total = estimate(X, y, population=population, weighter=MEANS, statistic="total")
    assert sum(one.value for one in parts.values()) == pytest.approx(total.value)
    assert "g" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["estimates"][0]["label"] == ["x"]
    assert "<td>x</td>" in found._repr_html_()


def test_groups_that_the_population_lacks_are_those_of_the_sample(data):
    X, y, population, _ = data
    found = estimate(X, y, population=population[["a", "b"]], by="g")
    assert "The population does not tell 'g'" in str(found)
    given = estimate(X[["a", "b"]], y, population=population[["a", "b"]], by=X.g)
    assert given["x"].value == pytest.approx(found["x"].value)
    with pytest.raises(InputError, match="does not tell 'g'"):
        estimate(X, y, population=population[["a", "b"]], by="g", outcome="linear")


def test_groups_without_sample_rows_are_named(data):
    X, y, population, _ = data
    rest = (X.g != "z").to_numpy()
    weighter = CalibrationWeights(columns=["a"], features="means", **QUIET)
    found = estimate(X[rest], y[rest], population=population, weighter=weighter, by="g")
    assert list(found) == ["x", "y"]
    assert "groups of 'g' without sample rows, such as 'z'" in str(found)


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


def test_margins_and_the_rows_that_they_count_agree(data):
    X, y, population, _ = data
    margins = Margins.from_population(population[["a", "g"]], ["a", "g"])
    exact = estimate(X, y, population=margins)
    weighter = CalibrationWeights(columns=["a", "g"], features="means", **QUIET)
    rows = estimate(X, y, population=population, weighter=weighter)
    assert exact.value == pytest.approx(rows.value)
    assert exact.standard_error**2 == pytest.approx(rows.parts["sample"])
    assert "the margins are exact" in exact.assumptions
    groups = estimate(X, y, population=margins, by="g")
    again = estimate(X, y, population=population, weighter=weighter, by="g")
    assert groups["x"].value == pytest.approx(again["x"].value)
    assert "does not tell" not in str(groups)


def test_a_linear_model_of_matched_features_changes_nothing(data):
    X, y, population, _ = data
    numbers, weighter = ["a", "b"], CalibrationWeights(features="means", **QUIET)
    plain = estimate(X[numbers], y, population=population[numbers], weighter=weighter)
    robust = estimate(
        X[numbers],
        y,
        population=population[numbers],
        weighter=weighter,
        outcome=LinearRegression(),
        cv=None,
    )
    assert robust.value == pytest.approx(plain.value, rel=1e-9)
    assert robust.standard_error == pytest.approx(plain.standard_error, rel=1e-6)


def test_an_outcome_model_alone_is_mass_imputation(data):
    X, y, population, _ = data
    numbers = ["a", "b"]
    found = estimate(
        X[numbers],
        y,
        population=population[numbers],
        weighter=Unweighted(),
        outcome=LinearRegression(),
        cv=None,
    )
    model = LinearRegression().fit(X[numbers], y)
    assert found.value == pytest.approx(model.predict(population[numbers]).mean())
    assert found.parts["population"] == pytest.approx(
        model.predict(population[numbers]).var(ddof=1) / 3000
    )


@pytest.mark.parametrize("outcome", ["boosted", "linear"])
def test_outcome_models_take_any_table(data, outcome):
    X, y, population, labels = data
    X, population = X.copy(), population.copy()
    X.loc[::7, "a"] = np.nan
    population.loc[::7, "a"] = np.nan
    found = estimate(X, y, population=population, outcome=outcome)
    assert found.interval[0] < labels.mean() < found.interval[1]
    shares = estimate(X, y > 1, population=population, outcome=outcome, by="g")
    assert all(0.2 < one.value < 0.9 for one in shares.values())
    assert found.outcome == outcome


def test_cross_fitting_does_not_depend_on_the_order_of_rows(data):
    X, y, population, _ = data
    order = np.random.default_rng(1).permutation(len(X))
    numbers = ["a", "b"]
    one = estimate(X[numbers], y, population=population[numbers], outcome=LinearRegression())
    other = estimate(
        X[numbers].iloc[order], y[order], population=population[numbers], outcome=LinearRegression()
    )
    assert one.value == pytest.approx(other.value, rel=1e-9)


def test_classifiers_give_the_mean_of_two_classes(data):
    X, y, population, _ = data
    numbers = ["a", "b"]
    found = estimate(
        X[numbers],
        (y > 1).astype(int),
        population=population[numbers],
        outcome=LogisticRegression(),
        cv=None,
        weighter=Unweighted(),
    )
    model = LogisticRegression().fit(X[numbers], y > 1)
    residual = ((y > 1) - model.predict_proba(X[numbers])[:, 1]).mean()
    expected = model.predict_proba(population[numbers])[:, 1].mean() + residual
    assert found.value == pytest.approx(expected)


def test_an_outcome_model_may_use_more_columns_than_the_weights(data):
    X, y, population, _ = data
    weighter = CalibrationWeights(columns=["g"], features="means", **QUIET)
    found = estimate(X, y, population=population, weighter=weighter, outcome="linear", cv=None)
    narrow = estimate(
        X[["g"]], y, population=population[["g"]], weighter=weighter, outcome="linear", cv=None
    )
    assert found.value != pytest.approx(narrow.value, rel=1e-3)
    assert found.parts["population"] > narrow.parts["population"]


def test_the_population_is_read_once(data):
    X, y, population, _ = data
    chunks = (population.iloc[start : start + 1000] for start in range(0, 3000, 1000))
    once = Population(chunks)
    found = estimate(X, y, population=once, weighter=MEANS, outcome="linear", by="g")
    again = estimate(X, y, population=population, weighter=MEANS, outcome="linear", by="g")
    assert found["x"].value == pytest.approx(again["x"].value)


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


def test_constant_labels_say_that_the_error_says_nothing(data):
    X, _, population, _ = data
    found = estimate(X, np.full(len(X), 3.0), population=population, weighter=MEANS)
    assert found.value == pytest.approx(3.0)
    assert found.standard_error == pytest.approx(0.0, abs=1e-9)
    assert "y is 3.0 in every sample row" in str(found)
    one = estimate(X, ["a"] * len(X), population=population, statistic="proportion")
    assert one["a"].value == pytest.approx(1.0)
    with pytest.raises(InputError, match="one class only"):
        estimate(X, np.ones(len(X)), population=population, outcome="boosted")


def test_missing_labels_are_an_error_or_left_out(data):
    X, y, population, _ = data
    gaps = y.copy()
    gaps[::5] = np.nan
    with pytest.raises(InputError, match="y contains NaN"):
        estimate(X, gaps, population=population)
    present = ~np.isnan(gaps)
    ours = estimate(
        X, gaps, population=population, missing="drop", by="g", clusters=np.arange(len(X))
    )
    theirs = estimate(X[present], y[present], population=population, by="g")
    assert ours["x"].value == pytest.approx(theirs["x"].value)
    assert f"{(~present).sum()} rows without y were left out" in str(ours)
    text = np.where(present, "a", None)
    text[0] = "b" if present[0] else None
    found = estimate(X, text, population=population, missing="drop", statistic="proportion")
    assert found["a"].n_rows == present.sum()
    with pytest.raises(InputError, match="missing in every row"):
        estimate(X, np.full(len(X), np.nan), population=population, missing="drop")


def test_strata_and_clusters_without_variance_are_errors(data):
    X, y, population, _ = data
    strata = np.zeros(len(X))
    strata[0] = 1
    with pytest.raises(InputError, match="1 of 2 strata have one row"):
        estimate(X, y, population=population, strata=strata)
    with pytest.raises(InputError, match="one cluster"):
        estimate(X, y, population=population, clusters=np.zeros(len(X)))
    # Clusters of one row each are rows.
    ours = estimate(X, y, population=population, clusters=np.arange(len(X)))
    assert ours.standard_error == pytest.approx(
        estimate(X, y, population=population).standard_error
    )
    with pytest.raises(InputError, match="clusters must have one entry"):
        estimate(X, y, population=population, clusters=[1, 2])


def test_few_effective_rows_warn(data):
    X, y, population, _ = data
    with pytest.warns(EstimateWarning, match="effective sample size is"):
        estimate(X.iloc[:25], y[:25], population=population, weighter=MEANS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"statistic": "variance"}, "statistic must be one of"),
        ({"q": 0.5}, "q is for"),
        ({"statistic": "quantile"}, "q is for"),
        ({"statistic": "quantile", "q": 1.5}, "q must lie between"),
        ({"statistic": "quantile", "q": 0.5, "outcome": "linear"}, "predict means"),
        ({"variance": "best"}, "variance must be one of"),
        ({"variance": "orthogonal"}, "needs an outcome model"),
        ({"level": 95}, "level must lie between"),
        ({"missing": "impute"}, "missing must be"),
        ({"outcome": "forest"}, "outcome must be a learner"),
        ({"replicates": 1}, "replicates must be"),
        ({"outcome": "linear", "cv": 1}, "cv must be"),
    ],
)
def test_parameters_out_of_range_are_errors(data, options, words):
    X, y, population, _ = data
    with pytest.raises(ParameterError, match=words):
        estimate(X, y, population=population, **options)


def test_what_cannot_be_answered_is_an_error(data):
    X, y, population, _ = data
    margins = Margins({"g": {"x": 1, "y": 1, "z": 1}})
    with pytest.raises(InputError, match="Margins have none"):
        estimate(X, y, population=margins, outcome="linear")
    with pytest.raises(InputError, match="by='h' is not a column"):
        estimate(X, y, population=population, by="h")
    with pytest.raises(InputError, match="few values"):
        estimate(X, y, population=population, by="a")
    with pytest.raises(InputError, match="y is None"):
        estimate(X, None, population=population)
    with pytest.raises(LearnerError, match="takes no sample_weight"):
        estimate(
            X[["a"]],
            y,
            population=population[["a"]],
            outcome=KNeighborsRegressor(),
            sample_weight=np.arange(1, len(X) + 1),
        )
    shares = Margins(shares={"g": {"x": 0.3, "y": 0.3, "z": 0.4}})
    with pytest.raises(InputError, match="size of the population is not known"):
        estimate(X, y, population=shares, statistic="total")


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
