"""Replicate weights: their spread is the standard error."""

import numpy as np
import pandas as pd
import pytest
from tests.estimation.helpers import MEANS

from unskew import (
    CalibrationWeights,
    InputError,
    Margins,
    ParameterError,
    TreeWeights,
    estimate,
    replicate_weights,
)


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


def test_replicates_without_weights_are_an_error():
    # One row in ten has the level that the margin asks for: often it is not drawn.
    X = np.array([["a"]] * 9 + [["b"]])
    margins = Margins({"x0": {"a": 5, "b": 5}})
    frame = pd.DataFrame(X, columns=["x0"])
    with pytest.raises(InputError, match="bootstrap replicates have no weights"):
        replicate_weights(frame, population=margins, replicates=20)
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
