"""The stored measurements of certificates say what the docs say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

RESULT = Path(__file__).parents[2] / "benchmarks" / "theory" / "learners" / "result.json"


@pytest.fixture(scope="module")
def result():
    return json.loads(RESULT.read_text())


def totals(steps, field):
    found = Counter()
    for step in steps.values():
        for name, values in step.items():
            found[name] += values[field]
    return found


@pytest.mark.parametrize("region", ["cells", "calibration", "logistic"])
def test_no_certificate_fails_more_often_than_it_may(result, region):
    draws, failed = (totals(result[region], field) for field in ("draws", "failed"))
    assert len(draws) == 8
    assert set(draws.values()) == {1000}
    assert max(failed.values()) <= (0 if region == "cells" else 0.05 * 1000)


def test_hidden_factors_never_exceed_the_bound(result):
    assert not any(totals(result["hidden"], "failed").values())


def test_designs_that_break_the_assumptions_are_found(result):
    draws, found = (totals(result["broken"], field) for field in ("draws", "qualified"))
    share = {name: found[name] / draws[name] for name in draws}
    assert min(share["within cells, 0.5"], share["within cells, 1"]) >= 0.8
    assert min(share[f"ratio with a square 0.2, {name}"] for name in ("raking", "logistic")) >= 0.8
    assert share["by cell"] <= 0.1
