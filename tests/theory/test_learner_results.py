"""The stored measurements of certificates say what the docs say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.theory.learners.tables import by_learner, tables
from scipy.stats import binom

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "theory" / "learners" / "result.json"


@pytest.fixture(scope="module")
def result():
    return json.loads(RESULT.read_text())


def totals(steps, field):
    found = Counter()
    for step in steps.values():
        for name, values in step.items():
            found[name] += values[field]
    return found


@pytest.mark.parametrize("region", ["cells", "calibration", "logistic", "penalised", "bootstrap"])
def test_no_certificate_fails_more_often_than_it_may(result, region):
    found = by_learner(result[region])
    assert len(found) >= (8 if region in ("cells", "calibration", "logistic") else 1)
    for steps in found.values():
        draws, failed = (sum(step[field] for step in steps) for field in ("draws", "failed"))
        # An exact certificate may fail with probability 0.05, and has never done so.
        assert failed <= (0 if region == "cells" else binom.ppf(0.99, draws, 0.07))


def test_hidden_factors_never_exceed_the_bound(result):
    assert not any(totals(result["hidden"], "failed").values())


def test_designs_that_break_the_assumptions_are_found(result):
    draws, found = (totals(result["broken"], field) for field in ("draws", "qualified"))
    share = {name: found[name] / draws[name] for name in draws}
    assert min(share["within cells, 0.5"], share["within cells, 1"]) >= 0.8
    assert min(share[f"ratio with a square 0.2, {name}"] for name in ("raking", "logistic")) >= 0.8


def test_headlines_are_qualified_at_the_level_of_the_tests(result):
    draws, found = (totals(result["broken"], field) for field in ("draws", "qualified"))
    for name in ("by cell", "log-linear ratio, raking", "log-linear ratio, logistic"):
        assert found[name] <= binom.ppf(0.95, draws[name], 0.05)


def test_the_page_has_the_tables(result):
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8").splitlines()
    missing = [line for table in tables(result) for line in table if line not in page]
    assert not missing
