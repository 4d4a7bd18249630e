"""What is wrong with weights, on data made for each case, and what the verdict suggests."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from unskew import (
    AutoWeights,
    CalibrationWeights,
    KernelMeanMatching,
    KnownProbability,
    Margins,
    diagnose,
    effective_sample_size,
)


@pytest.fixture(scope="module")
def correlated():
    """A population whose two columns are correlated, and a sample in which they are not."""
    random = np.random.default_rng(0)
    people = random.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 3000)
    sample = random.normal([0.3, 0], 1, (1500, 2))
    return tuple(pd.DataFrame(rows, columns=["height", "weight"]) for rows in (sample, people))


@pytest.fixture(scope="module")
def steep():
    """A sample selected steeply by a column that the label does not depend on."""
    random = np.random.default_rng(1)
    people = pd.DataFrame(random.normal(size=(20_000, 2)), columns=["postcode", "age"])
    chance = 0.5 / (1 + np.exp(-1.9 * people["postcode"] - 0.5 * people["age"]))
    taken = random.uniform(size=20_000) < chance
    label = 2 * people["age"] + random.normal(size=20_000)
    return people[taken], people, chance[taken], label[taken]


def test_means_without_the_joint_distribution(correlated):
    sample, people = correlated
    weighter = CalibrationWeights(features="means").fit(sample, population=people)
    found = diagnose(sample, people, weighter)
    # The means are the population's to the last digits; the correlation is that of the sample.
    assert max(abs(one.lines[0].after) for one in found.bias.features) < 1e-6
    assert (found.verdict.status, found.verdict.cause) == ("not corrected", "joint distribution")
    assert found.verdict.headline == (
        "The weights correct the means, but not the joint distribution."
    )
    step = found.verdict.next_step
    assert step.weighters == ("AutoWeights", "ClassifierWeights")
    assert "height and weight together: correlation" in step.reason
    better = AutoWeights(calibrate_to="means").fit(sample, population=people)
    assert not diagnose(sample, people, better).bias_left


def test_right_weights_that_cost_much(steep):
    sample, people, chance, label = steep
    weighter = KnownProbability(chance).fit(sample, population=people)
    found = diagnose(sample, people, weighter, y=label)
    assert (found.verdict.status, found.verdict.cause) == ("costly", "cost")
    assert found.verdict.headline.startswith("The weights correct the bias, at the cost of")
    # Only age is related to selection and label: weights by it alone cost little.
    assert found.verdict.next_step.leave_out == ("postcode",)
    fewer = AutoWeights(columns=["age"]).fit(sample, population=people)
    said = re.search(r"about ([\d,]+) effective rows would be left", found.verdict.next_step.reason)
    left = effective_sample_size(fewer.weights_)
    assert float(said[1].replace(",", "")) == pytest.approx(left, rel=0.1)
    assert diagnose(sample, people, fewer).verdict.status == "corrected"
    unlabelled = diagnose(sample, people, weighter).verdict.next_step
    assert unlabelled.fewer_columns
    assert "not to the outcome cost effective sample size" in unlabelled.reason


def test_a_column_that_costs_little_is_not_to_be_left_out(steep):
    sample, people, chance, _ = steep
    random = np.random.default_rng(0)
    sample, people = (rows.assign(noise=random.normal(size=len(rows))) for rows in (sample, people))
    weights = np.exp(-0.2 * sample["noise"]) / chance  # it costs exp(0.2²) - 1 = 4 %
    sample["noise"] += 0.2
    found = diagnose(sample, people, weights, y=sample["postcode"] + sample["age"])
    assert found.verdict.cause == "cost"
    assert found.verdict.next_step.leave_out == ()
    assert "no column costs much of it: without 'noise'" in found.verdict.next_step.reason


def test_overfitted_weights():
    random = np.random.default_rng(0)
    sample, people = random.normal(size=(400, 5)), random.normal(size=(2000, 5))
    weighter = KernelMeanMatching(ridge=0.0).fit(sample, population=people)
    found = diagnose(sample, people, weighter)
    assert (found.verdict.status, found.verdict.cause) == ("not corrected", "overfitted")
    assert found.verdict.headline.startswith("The weights are overfitted:")
    step = found.verdict.next_step
    assert "a larger ridge" in step.settings
    assert step.weighters == ("AutoWeights",)
    assert step.fewer_columns


def test_margins_that_are_not_met():
    sample = pd.DataFrame({"town": ["Ulm"] * 60 + ["Bonn"] * 40})
    margins = Margins({"town": {"Ulm": 30, "Bonn": 70}})
    found = diagnose(sample, margins, np.ones(100))
    assert (found.verdict.status, found.verdict.cause) == ("not corrected", "means")
    assert found.verdict.next_step.weighters == ("CalibrationWeights",)
    assert "town by 0." in found.verdict.next_step.reason
