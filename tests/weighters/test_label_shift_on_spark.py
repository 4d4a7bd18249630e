"""Label shift over a population on Spark: its rows are drawn in one pass."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from unskew import LabelShiftWeights, Population

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def shifted(shares, *, m=600, n=3000):
    """A sample with equal classes, and a population of other shares, as frames."""
    random = np.random.default_rng(0)
    labels = random.integers(0, len(shares), m), random.choice(len(shares), n, p=shares)
    towns = np.array(["Ulm", "Bonn", "Kiel"])
    frames = [
        pd.DataFrame(
            {
                "age": random.normal(2.0 * one),
                "income": random.normal(-1.0 * one),
                "town": towns[(one + random.integers(0, 2, len(one))) % 3],
            }
        )
        for one in labels
    ]
    return frames[0], labels[0], frames[1], np.bincount(labels[1]) / n


@pytest.mark.parametrize("method", ["mlls", "bbse"])
@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.1, 0.2, 0.7)])
def test_it_says_what_rows_in_memory_say(method, shares, spark):
    X, y, U, truth = shifted(shares)
    weighter = LabelShiftWeights(method=method, cv=3)
    expected = weighter.fit(X, y, population=U).class_weights_
    on_spark = spark.createDataFrame(U).repartition(3)
    weighter.fit(X, y, population=on_spark)
    np.testing.assert_allclose(weighter.class_weights_, expected, rtol=1e-6)
    np.testing.assert_allclose(weighter.population_shares_, truth, atol=0.03)
    assert weighter.shift_test_.holds


def test_design_weights_of_the_population_count(spark):
    X, y, U, truth = shifted((0.8, 0.2))
    U["count"] = 1 + np.arange(len(U)) % 2
    weighter = LabelShiftWeights(cv=3)
    expected = weighter.fit(X, y, population=Population(U, weight="count")).class_weights_
    on_spark = spark.createDataFrame(U).repartition(3)
    weighter.fit(X, y, population=Population(on_spark, weight="count"))
    np.testing.assert_allclose(weighter.class_weights_, expected, rtol=1e-6)
    np.testing.assert_allclose(weighter.population_shares_, truth, atol=0.04)


def test_a_classifier_of_your_own_stays_on_the_driver(spark):
    X, y, U, _ = shifted((0.8, 0.2))
    X, U = X[["age", "income"]], U[["age", "income"]]
    weighter = LabelShiftWeights(LogisticRegression())
    expected = weighter.fit(X, y, population=U).class_weights_
    weighter.fit(X, y, population=spark.createDataFrame(U))
    np.testing.assert_allclose(weighter.class_weights_, expected, rtol=1e-6)
