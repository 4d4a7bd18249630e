"""Bounds contain the truth where hidden selection is as strong as they allow, and are reached."""

import json

import numpy as np
import pytest
from benchmarks.sensitivity.__main__ import RESULTS
from benchmarks.sensitivity.scenarios import drawn, estimated

KINDS = {"ratio": False, "nested": True}


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_contain_the_truth(kind):
    for number in range(10):
        random = np.random.default_rng([number, 5])
        odds, rho = random.uniform(1.2, 3.0), random.uniform(-0.5, 0.5)
        draw = drawn(random, odds, rho, 1500, nested=KINDS[kind])
        found = estimated(draw).sensitivity(odds=odds, nested=draw.nested, benchmark=False)
        (row,) = found.bounds
        assert row.plain[0] <= row.sharp[0] <= 0 <= row.sharp[1] <= row.plain[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_hidden_selection_reaches_the_sharp_bound(kind):
    draw = drawn(np.random.default_rng(3), 3.0, 1.0, 20_000, nested=KINDS[kind])
    found = estimated(draw).sensitivity(odds=3.0, nested=draw.nested, benchmark=False)
    low = found.bounds[0].sharp[0]
    assert abs(low) < 0.05 * (found.value - low)


def test_the_committed_results_hold():
    results = json.loads(RESULTS.read_text())
    sums = results["draws"]
    assert sum(sums[f"{kind}, moderate"]["draws"] for kind in KINDS) == 1000
    for kind in KINDS:
        moderate, worst = sums[f"{kind}, moderate"], sums[f"{kind}, worst"]
        assert moderate["plain"] == moderate["sharp"] == moderate["draws"]
        assert worst["sharp_interval"] >= 0.95 * worst["draws"]
    assert len(results["adversary"]) == 12
    assert max(abs(one["missed"]) for one in results["adversary"].values()) < 0.05
    cost = results["cost"]
    assert cost["numbers, plain"]["processor seconds"] < 2
    assert cost["numbers, sharp"]["processor seconds"] < 20
    assert cost["shares, sharp"]["processor seconds"] < 20
