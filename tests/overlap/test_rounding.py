"""One income distribution, rounded on one side: no gap, no bias, a note."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from unskew import (
    AutoWeights,
    ClassifierWeights,
    Unweighted,
    diagnose,
    effective_sample_size,
    estimate,
)
from unskew.errors import RoundingWarning


def incomes(who, step, heaped=1.0, m=1000, n=8000):
    random = np.random.default_rng(0)
    sides = [random.lognormal(np.log(2000), 0.5, rows) for rows in (m, n)]
    side = ("sample", "population").index(who)
    own = random.uniform(size=len(sides[side])) < heaped
    sides[side] = np.where(own, step * np.round(sides[side] / step), sides[side])
    return [pd.DataFrame({"income": one, "other": random.normal(size=len(one))}) for one in sides]


@pytest.mark.parametrize("who", ["sample", "population"])
@pytest.mark.parametrize("step", [10, 100, 1000, 100 / 30.4])
def test_rounding_is_neither_a_gap_nor_bias(who, step):
    sample, people = incomes(who, step)
    found = diagnose(sample, people)
    assert found.verdict.status == "no bias found"
    assert found.overlap.uncovered < 0.005
    said = f"'income': the {who} is rounded to {step:g}".replace("1000", "1,000")
    assert said in str(found)
    income = next(one for one in found.bias.features if one.name == "income")
    assert income.before.distance < 0.06  # Kolmogorov-Smirnov; 0.05 is the limit at 5 %


@pytest.mark.parametrize(
    "weighter",
    [AutoWeights(), ClassifierWeights(), ClassifierWeights(HistGradientBoostingClassifier())],
)
def test_weights_do_not_follow_it(weighter):
    sample, people = incomes("population", 1000)
    with pytest.warns(RoundingWarning, match="the population is rounded to 1,000"):
        weighter.fit(sample, population=people)
    # The user's own trees follow noise, about as much as without rounding.
    least = 700 if weighter.get_params().get("classifier") not in (None, "boosted") else 950
    assert effective_sample_size(weighter.weights_) > least


@pytest.mark.parametrize("step", [100, 1000])
def test_heaps_are_no_gaps(step):
    sample, people = incomes("population", step, heaped=0.6)
    found = Unweighted(overlap=1.0).fit(sample, population=people).overlap_
    assert found.uncovered < 0.005
    assert not found.rounded


@pytest.mark.parametrize("who", ["sample", "population"])
def test_gaps_are_still_found(who):
    sample, people = incomes(who, 100)
    sample = sample[(sample["income"] <= 1800) | (sample["income"] >= 2600)]
    lost = people["income"].between(1850, 2550).mean()
    with pytest.warns(RoundingWarning):
        found = Unweighted(overlap=1.0).fit(sample, population=people).overlap_
    assert found.uncovered == pytest.approx(lost, abs=0.03)
    assert "< income ≤ 2,500" in found.rules[0].text


def test_sums_are_of_the_values_as_they_are():
    sample, people = incomes("sample", 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundingWarning)
        found = estimate(sample, sample["income"], population=people)
    assert found.value == pytest.approx(people["income"].mean(), rel=1e-9)  # it is calibrated to
    assert any("the sample is rounded to 1,000" in note for note in found.notes)
