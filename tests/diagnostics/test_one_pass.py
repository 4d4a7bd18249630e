"""A diagnosis that is asked along with the weights reads the population no second time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unskew import CalibrationWeights, HistogramWeights, Population, diagnose
from unskew.diagnostics.diagnose import FitToDiagnose
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
    fit = FitToDiagnose(weighter, sample, population=population)
    assert fit.fit() is None
    assert fit.diagnose() == diagnose(sample, chunks, weighter)
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
    fit = FitToDiagnose(weighter, sample, population=Population(population), y=y)
    fit.fit()
    whole = diagnose(sample, population, weighter, y=y)
    assert fit.diagnose() == whole
    judged = fit.diagnose(whole=False)
    assert (judged.verdict, judged.bias, judged.overlap) == (
        whole.verdict,
        whole.bias,
        whole.overlap,
    )
    assert whole.bounds
    assert whole.outcome is not None
    assert not judged.bounds
    assert judged.outcome is None
