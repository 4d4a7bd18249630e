from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unskew import HistogramWeights
from unskew.errors import ParameterError


def test_histogram_buckets_by_width_and_quantile():
    sample = np.array([[0.0], [1.0], [2.0], [10.0]])
    population = np.array([[0.5]] * 6 + [[9.0]] * 2)
    by_width = HistogramWeights(buckets=2, strategy="width", total="population")
    assert by_width.fit(sample, population=population).weights_.tolist() == [2, 2, 2, 2]
    by_quantile = HistogramWeights(buckets=2, total="population")
    assert by_quantile.fit(sample, population=population).weights_.tolist() == [3, 3, 1, 1]
    by_name = HistogramWeights(buckets={"age": [0.75, 5.0]}, total="population")
    frame = pd.DataFrame(sample, columns=["age"])
    weights = by_name.fit(frame, population=population).weights_
    assert weights.tolist() == [6, 0, 0, 2]


@pytest.mark.parametrize(
    ("buckets", "message"),
    [
        (0, "buckets"),
        ({"height": 3}, "names 'height', which is not among the columns"),
        ({0: 0}, "at least 1; got 0"),
        ({0: [np.nan]}, "must be finite"),
    ],
)
def test_bad_buckets(buckets, message):
    with pytest.raises(ParameterError, match=message):
        HistogramWeights(buckets=buckets).fit(np.zeros((3, 1)), population=np.zeros((3, 1)))


def test_a_dominant_value_does_not_swallow_the_others():
    sample = pd.DataFrame({"v": [True] * 10 + [False] * 90})
    population = pd.DataFrame({"v": [True] * 500 + [False] * 500})
    weights = HistogramWeights(total="population").fit(sample, population=population).weights_
    assert weights[:10].tolist() == [50] * 10
    assert weights[10:] == pytest.approx(500 / 90)


def test_zeros_and_a_tail():
    sample = np.append(np.zeros(90), np.arange(1.0, 11.0)).reshape(-1, 1)
    population = np.append(np.zeros(100), np.full(100, 5.0)).reshape(-1, 1)
    weights = HistogramWeights(total="population").fit(sample, population=population).weights_
    assert weights[:90].sum() == pytest.approx(100)


def test_borders_of_dates():
    days = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-06-01", "2024-07-01"])})
    weighter = HistogramWeights(buckets={"day": [pd.Timestamp("2024-03-01")]}, total="population")
    assert weighter.fit(days, population=days.iloc[[0, 0, 1]]).weights_.tolist() == [
        2,
        0.5,
        0.5,
    ]


@pytest.mark.parametrize("borders", [["abc"], "abc", [[1.0]], 2.5, [None]])
def test_bad_borders(borders):
    with pytest.raises(ParameterError, match="buckets of column 'x0'"):
        HistogramWeights(buckets={0: borders}).fit([[1.0], [2.0]], population=[[1.0]])


def test_borders_of_a_category():
    with pytest.raises(ParameterError, match="whose categories are its buckets"):
        HistogramWeights(buckets={"t": 3}).fit(
            pd.DataFrame({"t": ["a"]}), population=pd.DataFrame({"t": ["a"]})
        )


def test_design_weights_act_on_the_partition_as_copies_would():
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(60, 1)), random.normal(size=(500, 1))
    times = random.integers(1, 4, 60)
    weighter = HistogramWeights(total="population")
    weighted = weighter.fit(sample, population=population, sample_weight=times)
    counts = weighted.population_counts_.copy()
    repeated = weighter.fit(np.repeat(sample, times, axis=0), population=population)
    assert np.array_equal(counts, repeated.population_counts_)
