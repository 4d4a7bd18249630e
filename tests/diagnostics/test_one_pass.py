"""A diagnosis that is asked along with the weights reads the population no second time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from unskew import CalibrationWeights, HistogramWeights, Population, diagnose, replicate_weights
from unskew.errors import InputError


@pytest.mark.parametrize("overlap", ["ignore", "warn", 1.0])
def test_a_population_that_can_be_read_once_is_enough(overlap):
    random = np.random.default_rng(0)
    chunks = [
        pd.DataFrame({"age": random.normal(size=100), "town": random.choice(["Ulm", "Bonn"], 100)})
        for _ in range(3)
    ]
    sample = chunks[0].head(40)
    population = Population(iter(chunks))
    weighter = HistogramWeights(overlap=overlap)
    found = diagnose(sample, population, weighter)
    assert found == diagnose(sample, chunks, weighter)
    with pytest.raises(InputError, match="read already"):
        diagnose(sample, population)


def test_without_it_the_population_is_read_again():
    sample = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0]})
    population = Population(iter([sample, sample]))
    weighter = HistogramWeights().fit(sample, population=population)
    with pytest.raises(InputError, match="read already"):
        diagnose(sample, population, weighter)


@pytest.mark.parametrize("overlap", ["warn", 1.0])
def test_the_verdict_alone_is_that_of_the_whole_diagnosis(overlap):
    random = np.random.default_rng(0)
    population = random.normal(size=(1500, 2))
    sample = random.normal([0.5, 0.0], size=(300, 2))
    y = sample[:, 0] + random.normal(size=300)
    weighter = CalibrationWeights(overlap=overlap)
    whole = diagnose(sample, population, weighter, y=y)
    assert whole == diagnose(sample, population, weighter, y=y)  # which is fitted now
    judged = diagnose(sample, population, clone(weighter), y=y, consequences=False)
    assert (judged.verdict, judged.bias, judged.overlap) == (
        whole.verdict,
        whole.bias,
        whole.overlap,
    )
    assert whole.bounds
    assert whole.outcome is not None
    assert not judged.bounds
    assert judged.outcome is None


def test_replicates_come_from_the_same_pass():
    random = np.random.default_rng(0)
    sample = pd.DataFrame({"age": random.normal(0.5, 1, 100)})
    chunks = [pd.DataFrame({"age": random.normal(size=200)}) for _ in range(2)]
    weighter, design = (
        CalibrationWeights(overlap="ignore"),
        {"replicates": 3, "strata": np.arange(100) % 2},
    )
    diagnose(sample, Population(iter(chunks)), weighter, **design)
    expected = replicate_weights(sample, population=chunks, weighter=clone(weighter), **design)
    np.testing.assert_array_equal(weighter.replicates_, expected)
