"""The committed result of ``python -m benchmarks.diagnosis overlap`` keeps what it promises."""

import json
from pathlib import Path

RESULT = Path(__file__).parents[2] / "benchmarks" / "diagnosis" / "overlap.json"


def test_unbiased_designs_are_hardly_ever_called_not_correctable():
    result = json.loads(RESULT.read_text())
    assert result["draws"] >= 500
    assert len(result["even"]) >= 20
    rates = {name: one["not correctable"] / result["draws"] for name, one in result["even"].items()}
    assert max(rates.values()) < 0.01, rates


def test_excluded_categories_are_found_where_chance_cannot_explain_them():
    excluded = json.loads(RESULT.read_text())["excluded"]
    for name in ("share 5%, m = 1,000", "share 1%, m = 5,000"):
        assert excluded[name]["found"] == excluded[name]["draws"]
