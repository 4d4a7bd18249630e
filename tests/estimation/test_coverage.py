"""The committed coverage of ``estimate``: what the docs say of it holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "estimation"
# Columns that are not the model's leave a bias, and few rows have most of the leverage.
HARD = "Kang-Schafer, wrong columns"
# What does not cover in 93 to 97 % of draws: a bias, and intervals of few degrees of freedom.
MISSED = {HARD: (0.92, 0.97), "few effective rows": (0.93, 0.975)}


def read(name):
    path = FOLDER / name
    if not path.exists():
        pytest.skip("runs in the repository only")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def results():
    return read("results.json")


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs" / "estimates.md").read_text(encoding="utf-8")


def test_every_scenario_has_a_thousand_draws(results):
    from benchmarks.estimation.scenarios import scenarios

    assert set(results) == set(scenarios())
    for totals in results.values():
        assert totals["draws"] >= 1000
        assert totals["weights"]["made"] >= 0.99 * totals["draws"]


def test_intervals_cover_as_documented(results):
    for name, totals in results.items():
        for method in ("weights", "outcome"):
            sums = totals[method]
            covered = sums["covered"] / sums["made"]
            low, high = MISSED.get(name, (0.93, 0.97))
            assert low <= covered <= high, (name, method)
            # Standard errors are right also where a bias moves the intervals.
            bias = sums["error"] / sums["made"]
            spread = (sums["squares"] / sums["made"] - bias**2) ** 0.5
            ratio = sums["se"] / sums["made"] / spread
            assert 0.9 <= ratio <= (1.2 if name == HARD else 1.1)


def test_kang_and_schafer(results):
    def error(name, method):
        sums = results[f"Kang-Schafer, {name} columns"][method]
        return (sums["squares"] / sums["made"]) ** 0.5

    assert error("right", "weights") <= 1.2
    assert error("wrong", "outcome") <= 2.0  # 2.6 with exact balance of the means


def test_the_page_shows_the_results(results, page):
    from benchmarks.estimation.__main__ import table

    assert table(results) in page


def test_the_default_weighter_covers_at_least_as_often_in_most_scenarios(page):
    from benchmarks.estimation.__main__ import table

    compared = read("compared.json")
    assert table(compared) in page
    better = 0
    for totals in compared.values():
        assert totals["draws"] >= 200
        covered = {
            method: totals[method]["covered"] / totals[method]["made"]
            for method in ("calibration", "automatic")
        }
        better += covered["calibration"] >= covered["automatic"]
    assert better >= 4


def test_scores_are_nearer_than_naive_ones_as_documented(page):
    from benchmarks.estimation.scores import METHODS, SELECTIONS, biased, gathered, summary

    results = read("scores.json")
    assert set(results) == set(SELECTIONS)
    assert summary(results) in page
    every = [draw for found in results.values() for draws in found.values() for draw in draws]
    assert min(len(draws) for found in results.values() for draws in found.values()) >= 5
    by_columns = [
        draw
        for selection in ("component", "target")
        for draws in results[selection].values()
        for draw in draws
    ]
    for method in ("doubly_robust", "weighted"):
        n, error, naive, _ = gathered([draw for draw in every if biased(draw)], method)
        assert n >= 50
        assert error <= naive / 2
        n, *_, covered = gathered(by_columns, method)
        assert n >= 100
        assert 0.90 <= covered <= 0.99
    # Weights that no one has cover no more often.
    assert gathered(by_columns, "doubly_robust")[3] >= gathered(by_columns, METHODS[-1])[3]


@pytest.mark.xfail(
    strict=True, reason="92.4 % of 132 draws of each; the page says what is behind it"
)
@pytest.mark.parametrize("selection", ["component", "target"])
def test_scores_are_covered_as_often_as_asked(selection):
    from benchmarks.estimation.scores import gathered

    draws = [draw for draws in read("scores.json")[selection].values() for draw in draws]
    assert 0.93 <= gathered(draws, "doubly_robust")[3] <= 0.97
