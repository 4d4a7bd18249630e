"""The verdict, the love plot and the lists judge differences by one limit."""

import re

import numpy as np
import pandas as pd
import pytest

from unskew import CalibrationWeights, Margins, diagnose


def selected(slope, seed, n=3000):
    random = np.random.default_rng(seed)
    people = pd.DataFrame(random.normal(size=(n, 4)), columns=list("abcd"))
    chance = 0.2 / (1 + np.exp(-slope * people["a"]))
    taken = random.uniform(size=n) < chance
    return people[taken], people, 1 / chance[taken]


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
@pytest.mark.parametrize(("slope", "power"), [(1.5, 1.0), (2.5, 1.0), (1.5, 0.3)])
def test_verdict_and_plot_agree(slope, power):
    sample, people, weights = selected(slope, seed=1)
    found = diagnose(sample, people, weights**power)
    limits = found.thresholds
    assert limits.largest_difference == limits.balanced_difference + limits.chance_difference
    assert limits.chance_difference > 2 / np.sqrt(found.weights.effective_sample_size)
    left = [abs(line.after) for one in found.bias.features for line in one.lines]
    beyond = sum(size > limits.largest_difference for size in left)
    assert (found.verdict.cause == "means") == bool(beyond)
    assert f"before weighting, {beyond} after" in found.to_markdown()
    if not beyond and max(left) > limits.balanced_difference:
        assert f"up to {max(left):.2f} standard deviations may be chance" in str(found)


def test_a_corrected_sample_is_called_corrected():
    sample, people, weights = selected(0.8, seed=0)
    found = diagnose(sample, people, weights)
    assert found.verdict.status == "corrected"
    assert "Corrected" in found.to_markdown()
    assert "Correctable" not in found.to_markdown()


def test_differences_of_nothing_are_not_listed():
    sample, people, _ = selected(0.8, seed=0)
    weighter = CalibrationWeights(features="means").fit(sample, population=people)
    assert "No mean or share differs by 0.01" in str(diagnose(sample, people, weighter))
    margins = Margins(means=people.mean().to_dict())
    weighter = CalibrationWeights().fit(sample, population=margins)
    for found in (diagnose(sample, margins, weighter), diagnose(sample, people, weighter)):
        assert not re.search(r"[+−]0\.00", str(found.verdict))
