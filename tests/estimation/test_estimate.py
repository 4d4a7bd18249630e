"""Identities of ``estimate``: means, totals, shares, quantiles, groups."""

import copy
import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from tests.estimation.helpers import MEANS, QUIET

from unskew import CalibrationWeights, Margins, Population, Unweighted, diagnose, estimate
from unskew.errors import InputError


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
    assert "The population has no column 'g'" in str(found)
    given = estimate(X[["a", "b"]], y, population=population[["a", "b"]], by=X.g)
    assert given["x"].value == pytest.approx(found["x"].value)
    with pytest.raises(InputError, match="the population has no column 'g'"):
        estimate(X, y, population=population[["a", "b"]], by="g", outcome="linear")


def test_groups_without_sample_rows_are_named(data):
    X, y, population, _ = data
    rest = (X.g != "z").to_numpy()
    weighter = CalibrationWeights(columns=["a"], features="means", **QUIET)
    found = estimate(X[rest], y[rest], population=population, weighter=weighter, by="g")
    assert list(found) == ["x", "y"]
    assert "groups of 'g' without sample rows, such as 'z'" in str(found)


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
    assert "has no column" not in str(groups)


def test_the_population_is_read_once(data):
    X, y, population, _ = data
    chunks = (population.iloc[start : start + 1000] for start in range(0, 3000, 1000))
    once = Population(chunks)
    found = estimate(X, y, population=once, weighter=MEANS, outcome="linear", by="g")
    again = estimate(X, y, population=population, weighter=MEANS, outcome="linear", by="g")
    assert found["x"].value == pytest.approx(again["x"].value)


def test_the_result_carries_the_weights_behind_the_number(data):
    X, y, population, _ = data
    found = estimate(X, y, population=population)
    assert found.value == pytest.approx(np.average(y, weights=found.weights))
    assert found.weights is found.weighter.weights_
    assert diagnose(X, population, found.weighter).weights is not None
    plain = found.to_dict()
    assert plain["weighter"] == str(found.weighter)
    assert "weights" not in plain
    for twin in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert twin == found
        assert twin.weights == pytest.approx(found.weights)
        assert str(twin) == str(found)


def test_unweighted_is_without_design_weights(data):
    X, y, population, _ = data
    design = np.where(X.a > 0, 3.0, 1.0)
    found = estimate(X, y, population=population, weighter=MEANS, sample_weight=design)
    assert found.unweighted == pytest.approx(y.mean())
    assert found.design_weighted == pytest.approx(np.average(y, weights=design))
    assert "with design weights alone" in str(found)
    assert found.to_dict()["design_weighted"] == found.design_weighted
    even = estimate(X, y, population=population, weighter=MEANS, sample_weight=2 * np.ones(len(X)))
    assert even.design_weighted is None


def test_a_total_says_whether_the_size_counts_as_known(data):
    X, y, population, _ = data
    weighted = Population(population.assign(w=2.0), weight="w")
    common = {"statistic": "total", "population": weighted}
    known = estimate(X, y, weighter=Unweighted(columns="shared"), **common)
    assert "6,000, is the sum of its weights" in str(known)
    assert "not counted: it is as known" in str(known)
    assert "is counted." in str(estimate(X, y, weighter=MEANS, **common))
    rows = estimate(X, y, population=population, weighter=MEANS, statistic="total")
    assert "sum of its weights" not in str(rows)
