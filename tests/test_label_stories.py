"""The page on selection by the label quotes what its commands print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "selection-on-the-label.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="runs in the repository only")


def test_its_tables_are_those_of_the_stories():
    from docs.label_stories import lines

    text = PAGE.read_text(encoding="utf-8")
    for line in lines():
        assert line in text


def test_its_figures_are_those_of_the_benchmarks():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    heckman = json.loads((ROOT / "benchmarks/heckman/result.json").read_text())
    for part, row in (("coverage", "with an exclusion"), ("exclusion", "without")):
        cells = []
        for method in ("two-step", "ml"):
            covered = heckman[part][method]["covered"]
            cells.append(f"{100 * min(covered):.1f} to {100 * max(covered):.1f} %")
        widths = [heckman[part][method]["mean_width"][0] for method in ("two-step", "ml")]
        cells.append(f"{widths[0]:.2f}, {widths[1]:.2f}")
        assert f"| {row} | {' | '.join(cells)} |" in text
    assert f"{heckman['convergence']['clean']} converged without a warning" in text
    assert f"in at most {heckman['convergence']['most_steps']} steps" in text
    covered, designs = heckman["classes_coverage"]["covered"], heckman["classes_convergence"]
    assert f"{100 * min(covered):.1f} to {100 * max(covered):.1f} %; of 200" in text
    assert f"{designs['clean']} converged without a warning" in text
    assert f"in at most {designs['most_steps']} steps, and in the others" in text
    for part in ("cost", "classes_cost"):
        assert f"takes {heckman[part]['seconds']:.1f} s on one core" in text
    shift = json.loads((ROOT / "benchmarks/label_shift/result.json").read_text())
    names = {"cancer": "breast cancer"}
    for name, one in shift["tables"].items():
        strong, none = one["strong"], one["none"]
        worse = 100 * (none["corrected"] / none["plain"] - 1)
        row = (
            f"| {names.get(name, name)}, {one['classes']} | {strong['mlls']:.4f} | "
            f"{strong['bbse']:.4f} | {strong['better']} of {one['draws']} | {worse:+.1f} % |"
        )
        assert row in text


def test_label_shift_keeps_what_it_promises():
    shift = json.loads((ROOT / "benchmarks/label_shift/result.json").read_text())
    assert shift["cost"]["rows"] == 20_000_000
    assert shift["cost"]["ratio"] <= 1.2
    tables = shift["tables"].values()
    for one in tables:
        assert one["strong"]["mlls"] < one["strong"]["bbse"]
        assert one["none"]["corrected"] <= 1.01 * one["none"]["plain"]
    assert sum(one["strong"]["better"] for one in tables) >= 0.9 * sum(
        one["draws"] for one in tables
    )
