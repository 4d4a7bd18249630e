"""Weaker and capped weights of any weighter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unskew import (
    CalibrationWeights,
    FrequencyWeights,
    KernelMeanMatching,
    KnownProbability,
    Margins,
    Tempered,
    TreeWeights,
)
from unskew.errors import ParameterError

SAMPLE = pd.DataFrame({"town": list("aaaabbbccd")})
POPULATION = pd.DataFrame({"town": list("aabbccdddd")})


def weights(weighter, **options):
    return weighter.fit(SAMPLE, np.arange(10.0), population=POPULATION, **options).weights_


@pytest.mark.parametrize("power", [0.0, 0.3, 0.5, 1.0, 2.0])
def test_the_weights_are_powers(power):
    plain = weights(FrequencyWeights())
    tempered = weights(Tempered(FrequencyWeights(), power=power))
    expected = plain**power
    assert tempered == pytest.approx(expected * 10 / expected.sum(), rel=1e-12)


def test_design_weights_are_not_tempered():
    design = np.arange(1.0, 11.0)
    plain = weights(FrequencyWeights(), sample_weight=design)
    tempered = weights(Tempered(FrequencyWeights(), power=0.5), sample_weight=design)
    expected = design * np.sqrt(plain / design)
    assert tempered == pytest.approx(expected * 10 / expected.sum(), rel=1e-12)


def test_a_cap_is_a_multiple_of_the_mean():
    weighter = Tempered(FrequencyWeights(), max_weight=2.0)
    capped = weights(weighter)
    assert capped.max() == pytest.approx(2.0)
    assert capped.sum() == pytest.approx(10)
    assert weighter.n_capped_ == 1
    assert weighter.weigh(SAMPLE) == pytest.approx(capped)


def test_only_what_can_weigh_new_rows_does_so():
    assert hasattr(Tempered(TreeWeights()), "weigh")
    assert not hasattr(Tempered(KernelMeanMatching()), "weigh")
    sample = np.random.default_rng(0).normal(size=(30, 2))
    fitted = Tempered(KernelMeanMatching(), power=0.5).fit(sample, population=sample[:20] + 0.1)
    assert fitted.weights_.sum() == pytest.approx(30)


def test_the_total_is_its_own():
    assert weights(
        Tempered(FrequencyWeights(), power=0.5, total="population")
    ).sum() == pytest.approx(10)


def test_margins_reach_the_weighter():
    census = Margins(shares={"town": {"a": 0.2, "b": 0.2, "c": 0.2, "d": 0.4}})
    plain = CalibrationWeights().fit(SAMPLE, population=census).weights_
    half = Tempered(CalibrationWeights(), power=0.5).fit(SAMPLE, population=census).weights_
    expected = np.sqrt(plain)
    assert half == pytest.approx(expected * 10 / expected.sum(), rel=1e-9)


def test_a_column_of_probabilities_is_no_feature():
    sample = SAMPLE.assign(chance=np.linspace(0.1, 1.0, 10))
    plain = KnownProbability("chance").fit(sample, population=POPULATION).weights_
    half = Tempered(KnownProbability("chance"), power=0.5).fit(sample, population=POPULATION)
    expected = np.sqrt(plain)
    assert half.weights_ == pytest.approx(expected * 10 / expected.sum(), rel=1e-9)


def test_negative_weights_have_no_power():
    random = np.random.default_rng(1)
    sample, population = random.normal(0, 1, (40, 1)), random.normal(2, 1, (200, 1))
    inner = CalibrationWeights(distance="linear", negative="allow", features="means")
    with pytest.raises(ParameterError, match="negative, and have no power"):
        Tempered(inner, power=0.5, overlap="ignore").fit(sample, population=population)
