from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from tests.population.frequencies import frequencies

from unskew import (
    AutoWeights,
    CalibrationWeights,
    KnownProbability,
    Population,
    TreeWeights,
    Unweighted,
)
from unskew.errors import InputError, OverlapError

X = np.arange(4.0).reshape(-1, 1)


@pytest.mark.parametrize(
    "labels",
    [
        pd.array([True, None, False, True], dtype="boolean"),
        pd.Series(["a", pd.NA, "b", "a"], dtype="string"),
        pd.to_datetime(["2024-01-01", None, "2024-01-02", "2024-01-03"]),
    ],
    ids=["booleans", "text", "dates"],
)
def test_missing_labels(labels):
    with pytest.raises(InputError, match="y contains"):
        TreeWeights(min_samples_leaf=1).fit(X, labels, population=X)


@pytest.mark.parametrize(
    "labels",
    [
        [Decimal("0.5"), Decimal("1.5"), Decimal("2.5"), Decimal("3.5")],
        np.array([0.5, 1.5, 2.5, 3.5], dtype=object),
        pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]),
    ],
    ids=["decimals", "objects", "dates"],
)
def test_labels_that_are_quantities_in_disguise(labels):
    weighter = TreeWeights(min_samples_leaf=1).fit(X, labels, population=X)
    assert type(weighter.tree_).__name__ == "DecisionTreeRegressor"


def test_weights_beyond_floating_point():
    with pytest.raises(InputError, match="too large for floating point"):
        KnownProbability([1e-310, 0.5]).fit([[1.0], [2.0]], population=[[1.0], [2.0]])
    population = Population([[1.0], [2.0]], weight=[1e300, 1.5e300])
    assert frequencies([[1.0], [2.0]], population) == pytest.approx([1e300, 1.5e300])


@pytest.mark.parametrize("weighter", [Unweighted(), KnownProbability([0.5])])
def test_no_population_at_all(weighter):
    with pytest.raises(InputError, match="no rows"):
        weighter.fit([[1.0]], population=np.empty((0, 1)))


@pytest.mark.parametrize("weighter", [AutoWeights(), CalibrationWeights()], ids=str)
def test_a_refusal_names_the_column_that_one_side_lacks(weighter):
    values = np.random.default_rng(0).normal(size=(300, 2))
    frame = pd.DataFrame(values, columns=["age", "score"])
    empty = frame.assign(score=np.nan)
    for sample, population, where in (
        (empty, frame, "score is not missing: 100.0 % of the population, 0 of 100 sample rows"),
        (frame, empty, "score is missing: 100.0 % of the population, 0 of 100 sample rows"),
    ):
        with pytest.raises(OverlapError, match=where):
            weighter.fit(sample.iloc[:100], population=population)
