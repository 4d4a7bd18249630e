"""Replicate weights: their spread is the standard error."""

import numpy as np
import pandas as pd
import pytest
from tests.estimation.helpers import MEANS

from unskew import (
    CalibrationWeights,
    Margins,
    Population,
    TreeWeights,
    Unweighted,
    estimate,
    replicate_weights,
)
from unskew.errors import EstimateWarning, ParameterError


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    sample, population = random.normal(0.3, 1, (300, 2)), random.normal(size=(1000, 2))
    return sample, sample[:, 0] + random.normal(size=300), population


def test_the_spread_of_a_mean_is_its_standard_error(data):
    X, y, population = data
    common = {"population": population, "weighter": MEANS, "replicates": 100, "random_state": 1}
    columns = replicate_weights(X, y, **common)
    means = columns.T @ y / columns.sum(axis=0)
    boot = estimate(X, y, variance="bootstrap", **common)
    assert columns.shape == (300, 100)
    assert means.std(ddof=1) == pytest.approx(boot.standard_error, rel=0.1)
    assert columns.sum(axis=0) == pytest.approx([300] * 100)
    # Every replicate is calibrated, to a population that was drawn again.
    moved = columns.T @ X[:, 0] / 300
    assert moved.std(ddof=1) == pytest.approx(population[:, 0].std() / np.sqrt(1000), rel=0.25)


def test_a_complete_population_is_not_drawn_again(data):
    X, _, population = data
    common = {"weighter": MEANS, "replicates": 5}
    columns = replicate_weights(X, population=population, finite_population=True, **common)
    assert pytest.approx(np.tile(population.mean(axis=0), (5, 1))) == columns.T @ X / 300


def test_clusters_are_drawn_whole(data):
    X, y, population = data
    houses = np.arange(300) // 3
    columns = replicate_weights(
        X, y, population=population, weighter=TreeWeights(overlap="ignore"), replicates=5,
        clusters=houses, strata=houses % 2,
    )  # fmt: skip
    drawn = (columns > 0).reshape(100, 3, 5)
    assert (drawn.all(axis=1) | ~drawn.any(axis=1)).mean() > 0.95  # a cell may be lost
    assert 0.5 < drawn.any(axis=1).mean() < 0.75


def test_replicates_without_weights_of_their_own_count_and_are_named():
    # One row in ten has the level that the margin asks for: often it is not drawn.
    frame = pd.DataFrame({"x0": ["a"] * 9 + ["b"]})
    margins = Margins({"x0": {"a": 5, "b": 5}})
    strict = CalibrationWeights(on_infeasible="raise", columns="shared")
    with pytest.warns(EstimateWarning, match="of 20 replicates have no weights of their own"):
        columns = replicate_weights(frame, population=margins, weighter=strict, replicates=20)
    assert columns.shape == (10, 20)
    lost = columns[9] == 0  # the weights of the sample stand in, times how often rows were drawn
    assert 3 <= lost.sum() <= 12
    assert columns.sum(axis=0) == pytest.approx([10] * 20)
    with pytest.raises(ParameterError, match="replicates must be"):
        replicate_weights(frame, population=margins, replicates=1)


def test_a_largest_weight_is_that_of_each_row_as_often_as_it_is_drawn():
    # Of four clusters often two are drawn, whose rows cannot hold the weight as single rows.
    random = np.random.default_rng(0)
    X = pd.DataFrame({"sex": random.choice(["f", "m"], 120, p=[0.7, 0.3])})
    clusters = np.repeat(np.arange(4), 30)
    columns = replicate_weights(
        X, population=Margins({"sex": {"f": 500, "m": 500}}), clusters=clusters,
        weighter=CalibrationWeights(max_weight=2.0), replicates=50,
    )  # fmt: skip
    female = columns.T @ (X["sex"] == "f") / 120
    assert female == pytest.approx(np.full(50, 0.5), abs=1e-8)
    drawn = np.array([(column > 0).reshape(4, 30).any(axis=1).sum() for column in columns.T])
    assert (drawn <= 1).any()
    # Three of four clusters are drawn, each counts 4/3 times: a row at most four times.
    assert columns.max() <= 2.0 * 4 + 1e-9


def test_a_row_that_stands_for_itself_is_in_every_replicate_of_a_census():
    # Half of the population: the variance between replicates is halved (1 - 1/w with w = 2).
    random = np.random.default_rng(0)
    X, y = np.zeros((400, 1)), random.normal(size=400)
    common = {"population": np.zeros((800, 1)), "weighter": Unweighted(), "replicates": 200}
    apart = estimate(X, y, variance="bootstrap", **common)
    inside = estimate(X, y, variance="bootstrap", finite_population=True, **common)
    linear = estimate(X, y, variance="linear", finite_population=True, weighter=Unweighted(),
                      population=np.zeros((800, 1)))  # fmt: skip
    assert inside.standard_error == pytest.approx(apart.standard_error / 2**0.5, rel=0.15)
    assert inside.standard_error == pytest.approx(linear.standard_error, rel=0.15)
    whole = replicate_weights(X, finite_population=True, **common | {"population": X})
    assert whole == pytest.approx(np.ones((400, 200)))


def test_replicates_tell_their_progress(data):
    X, _, population = data
    heard = []
    known = Population(population, progress=lambda progress: heard.append(progress.doing))
    replicate_weights(X, population=known, weighter=MEANS, replicates=25)
    told = [doing for doing in heard if "replicates" in doing]
    assert told == [f"drawing replicates, {n} of 25" for n in (1, 11, 21)]
