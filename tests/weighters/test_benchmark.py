"""The committed result of ``python -m benchmarks.calibration features`` keeps what it promises."""

import json
from pathlib import Path

import pytest

RESULT = Path(__file__).parents[2] / "benchmarks" / "calibration" / "features.json"

pytestmark = pytest.mark.skipif(not RESULT.exists(), reason="runs in the repository only")


def by_mechanism(number):
    found = {}
    for one in json.loads(RESULT.read_text())["by_mechanism"]:
        found.setdefault(one["mechanism"], {})[one["features"]] = one[number]
    return found


def test_automatic_features_have_smaller_errors_than_means_on_average():
    errors = by_mechanism("weight_error")
    assert len(errors) == 4
    means, auto = (
        sum(one[kind] for one in errors.values()) / len(errors) for kind in ("means", "auto")
    )
    assert auto < 0.9 * means
    # Where the means are the right features and the overlap is poor, the choice costs something.
    for mechanism, one in errors.items():
        limit = 1.1 if mechanism == "logistic, slope 4" else 1.0
        assert one["auto"] <= limit * one["means"], mechanism
        assert one["auto"] <= one["margins"], mechanism


def test_automatic_features_help_on_most_sets():
    result = json.loads(RESULT.read_text())
    assert result["draws"] >= 20
    sets = result["weight_error_by_set"].values()
    assert sum(one["auto"] < one["means"] for one in sets) >= 7
    assert max(one["auto"] / one["means"] for one in sets) < 1.1
