"""A diagnosis from margins alone: differences in closed form, verdicts, every form of report."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from unskew import CalibrationWeights, Margins, diagnose

SAMPLE = pd.DataFrame({"sex": list("fffm") * 25, "age": np.tile([20.0, 40.0, 60.0, 80.0], 25)})
CENSUS = Margins({"sex": {"f": 500, "m": 500}}, means={"age": 56.0})


def test_differences_in_closed_form():
    found = diagnose(SAMPLE, CENSUS)
    sex, age = sorted(found.bias.features, key=lambda one: one.name, reverse=True)
    # A share of a quarter for a half, in standard deviations of the population's indicator.
    assert (sex.name, sex.lines[0].category) == ("sex", "m")
    assert sex.lines[0].before == pytest.approx((0.25 - 0.5) / 0.5)
    assert sex.before.distance == pytest.approx(0.25)
    assert sex.distribution.population == pytest.approx((0.5, 0.5))
    # A mean of 50 for 56, in standard deviations of the sample.
    assert age.lines[0].before == pytest.approx(-6 / np.std([20, 40, 60, 80]))
    assert found.bias.tests == ()
    assert found.overlap is None
    assert found.verdict.status == "correctable"
    assert "Only margins" in str(found)
    assert found.bias_left


def test_weights_that_agree_and_weights_that_do_not():
    weighter = CalibrationWeights().fit(SAMPLE, population=CENSUS)
    found = diagnose(SAMPLE, CENSUS, weighter, y=SAMPLE["age"])
    assert found.verdict.status == "corrected"
    assert not found.bias_left
    assert found.method == "CalibrationWeights"
    assert all(abs(line.after) < 1e-6 for one in found.bias.features for line in one.lines)
    assert diagnose(SAMPLE, CENSUS, np.ones(100)).verdict.status == "not corrected"
    heavy = np.where(np.arange(100) < 4, weighter.weights_, 1e-9)
    assert diagnose(SAMPLE, CENSUS, heavy).verdict.status == "costly"
    even = Margins({"sex": {"f": 75, "m": 25}})
    assert diagnose(SAMPLE, even).verdict.status == "no bias found"
    missing = Margins({"sex": {"f": 75, "m": 25, "x": 50}})
    assert diagnose(SAMPLE, missing).verdict.status == "not correctable"


def test_every_form_of_the_report(tmp_path):
    weighter = CalibrationWeights().fit(SAMPLE, population=CENSUS)
    found = diagnose(SAMPLE, CENSUS, weighter)
    page = found.to_html(tmp_path / "report.html")
    assert "margins only" in page
    assert "<svg" in page
    assert "Two-sample tests" not in page
    assert "None: only margins of the population are known." in found.to_markdown()
    plain = json.loads(found.to_json())
    assert plain["overlap"] is None
    assert plain["bias"]["classifier"] is None


def test_many_levels_are_cut_and_counted():
    towns = [f"town {place}" for place in range(60)]
    sample = pd.DataFrame({"town": towns * 2})
    counts = {town: 1 + 40 * (place < 40) for place, town in enumerate(towns)}
    found = diagnose(sample, Margins({"town": counts}))
    town = found.bias.features[0]
    assert len(town.lines) <= 20
    notable = len(town.lines) + town.unlisted
    shares = np.array(list(counts.values())) / sum(counts.values())
    expected = np.abs(1 / 60 - shares) / np.sqrt(shares * (1 - shares)) > 0.1
    assert notable == expected.sum()
