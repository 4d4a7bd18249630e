"""What is claimed of the defaults stands in the committed results of ``benchmarks.defaults``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks/defaults/result.json"

pytestmark = pytest.mark.skipif(not RESULT.exists(), reason="runs in the repository only")


@pytest.fixture(scope="module")
def result():
    return json.loads(RESULT.read_text(encoding="utf-8"))


def page(name: str) -> str:
    return " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())


def test_the_demonstrations_verdicts(result):
    found = result["demonstration"]
    assert len(found["draws"]) == 30
    reached = [one for one in found["draws"] if one["uncovered"] <= 0.05]
    good = {n: sum(one["verdicts"][n]["good"] for one in reached) for n in ("tree", "auto")}
    assert found["reached"] == len(reached) >= 5
    assert found["good"] == good
    assert good["auto"] == len(reached)
    assert good["tree"] < good["auto"]


def test_the_demonstrations_error_is_near_that_of_the_true_weights(result):
    found = result["demonstration"]
    for name, mean in found["mean_error"].items():
        errors = [one["errors"][name] for one in found["draws"]]
        assert mean == pytest.approx(sum(errors) / 30, abs=1e-4)
        assert f"{mean:.3f}" in page("automatic-weights.md")
    assert found["mean_error"]["auto"] <= found["mean_error"]["ideal"] + 0.02
    assert found["mean_error"]["auto"] < found["mean_error"]["tree"]


def test_the_cap_of_the_command_line(result):
    text, found = page("automatic-weights.md"), result["caps"]
    for name, one in found.items():
        row = f"{one['mean_error']:.3f} | {one['effective_share']:.0%}".replace("%", " %")
        assert f"| {row} | {one['good']} of 5 |" in text, name
    assert found["max_weight=20"]["good"] == result["demonstration"]["reached"]
    assert found["max_weight=20"]["better"] == 30
    demonstrated = result["demonstration"]["mean_error"]["auto"]
    assert found["max_weight=20"]["mean_error"] == pytest.approx(demonstrated, abs=1e-3)


def test_no_harm_where_there_is_no_bias(result):
    found = result["no_harm"]
    assert found["equal_weights"] >= 0.95 * found["draws"]
    assert set(found["same_model"].values()) == {found["equal_weights"]}
    assert f"{found['equal_weights']} of {found['draws']} draws" in page("automatic-weights.md")


def test_which_columns_to_weigh_by(result):
    found = result["columns"]
    right, costly, best = (
        found[name] for name in ("both", "both, selection alone", "both, outcome alone")
    )
    assert abs(found["none"]["bias"]) > 0.1
    assert abs(found["selection alone"]["bias"]) > 0.1
    for one in (right, costly, best):  # within three standard errors of 500 draws
        assert abs(one["bias"]) < 3 * one["spread"] / 500**0.5 + 0.01
    assert costly["spread"] > 1.1 * right["spread"]
    assert costly["effective_share"] < 0.8 * right["effective_share"]
    assert best["spread"] < right["spread"]
    for one in found.values():
        assert f"{one['root_mean_square']:.3f}" in page("which-columns.md")
