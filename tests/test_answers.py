"""The benchmark of the defaults' answers works, and its stored results hold its limits."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.answers.__main__ import records_of, run
from benchmarks.answers.designs import DESIGNS
from benchmarks.answers.measure import draw_of, weight_error
from benchmarks.answers.page import RESULTS
from benchmarks.answers.summary import (
    averages,
    intervals_of,
    line_of,
    misses,
    ratios,
    summarise,
)


def test_a_run_of_two_designs_resumes_and_is_summarised(tmp_path):
    chosen = ["share in five levels", "margins"]
    wanted = {"estimate": 3, "weights": 2, "beside": 2, "automatic": 0}
    run(tmp_path, 5, chosen, {**wanted, "estimate": 2}, 1, 5.0)
    run(tmp_path, 5, chosen, wanted, 1, 5.0)
    records = records_of(tmp_path, 5)
    assert len(records) == 2 * (3 + 2 + 2)  # nothing twice
    lines = summarise(records)
    assert list(lines) == chosen
    line = lines["share in five levels"]
    assert (line["draws"], line["compared"], line["refused"]) == (3, 2, 0)
    assert line["rmse"]["frequency"] < line["rmse"]["unweighted"]
    assert line["weight_error"]["frequency"] < 0.15 < line["weight_error"]["unweighted"]
    assert "tree" not in line["weight_error"]  # it sees y
    assert "frequency" in lines["margins"]["failed"]  # margins do not answer it


def test_every_design_has_its_truth():
    """True weights correct the mean wherever the sample covers the population."""
    assert len(DESIGNS) == 30
    uncovered = {"unseen town", "unseen flag", "cut off"}
    for name, design in DESIGNS.items():
        assert design.sentence.endswith(".")
        draws = [draw_of(name, 6, number) for number in range(4)]
        assert all(len(one.X) == len(one.y) == len(one.ratio) for one in draws)
        if name in uncovered or "q" in draws[0].options or None not in draws[0].truth:
            continue
        left = [
            (np.average(one.y, weights=one.ratio) - one.truth[None]) / one.unit[None]
            for one in draws
        ]
        size = np.mean(
            [len(one.y) * np.mean(one.ratio**2) / one.ratio.mean() ** 2 for one in draws]
        )
        assert abs(np.mean(left)) < 4 * (size / len(draws[0].y)) ** 0.5, name


def made(errors, covers, trust):
    return {
        "errors": [errors],
        "covers": [covers],
        "standard_errors": [1.0],
        "trust": [trust],
        "notes": [],
        "seconds": 0.1,
    }


def design_line(holds, noted, default, best, weights=(0.1, 0.1)):
    """A line of 100 draws in which so many intervals hold, and so many have a note."""
    draws = {k: made(default * (-1) ** k, k < holds, k < noted) for k in range(100)}
    other = {
        k: {"errors": [best * (-1) ** k], "weight_error": weights[1], "seconds": 0.1}
        for k in range(100)
    }
    own = {k: {**one, "weight_error": weights[0]} for k, one in other.items()}
    return line_of({"estimate": draws, "weights": own, "frequency": other})


@pytest.mark.parametrize(
    ("given", "missed"),
    [
        ((95, 0, 1.0, 1.0), []),
        ((95, 5, 1.0, 1.0), []),
        ((95, 6, 1.0, 1.0), ["note without need"]),
        ((50, 80, 1.0, 1.0), []),
        ((50, 79, 1.0, 1.0), ["interval"]),
        ((92, 0, 1.0, 1.0), ["(interval)"]),
        ((95, 0, 1.5, 1.0), []),
        ((95, 0, 1.51, 1.0), ["RMSE"]),
        ((95, 0, 0.3, 0.16), []),
        ((95, 0, 0.31, 0.15), ["RMSE"]),
        ((95, 0, 1.0, 1.0, (0.15, 0.1)), []),
        ((95, 0, 1.0, 1.0, (0.16, 0.1)), ["weights"]),
        ((95, 0, 1.0, 1.0, (0.05, 0.0)), []),
        ((95, 0, 1.0, 1.0, (0.06, 0.0)), ["weights"]),
    ],
)
def test_limits(given, missed):
    assert misses(design_line(*given)) == missed


def test_a_refusal_is_an_interval_that_does_not_hold():
    draws = {0: made(0.0, True, False), 1: {"failed": "No weights.", "seconds": 0.1}}
    line = intervals_of(draws)
    assert (line["holds"], line["refused"]) == (0.5, 1)


def test_averages_leave_small_errors_out_and_count_no_design_below_one():
    lines = {
        "a": design_line(95, 0, 1.2, 1.0),
        "b": design_line(95, 0, 0.5, 1.0),
        "c": design_line(95, 0, 0.2, 0.1),
    }
    assert averages(lines)["rmse"] == pytest.approx(1.1)
    assert ratios(lines["c"])["rmse"][-1]


def test_weight_error_has_no_scale():
    ratio = np.array([1.0, 2.0, 3.0])
    assert weight_error(5 * ratio, ratio) == 0
    assert weight_error(np.ones(3), ratio) == pytest.approx(1 / 3, abs=1e-4)


STORED = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
MISSED = {
    "sixty levels": "a doubt in 7 % of the draws, of levels without sample rows; intervals hold",
    "lognormal spend": "a doubt in 7 % of the draws, of the tail or of a region; intervals hold",
    "steep": "a doubt in 45 % of the draws: 5 % of the population are beyond the sample",
}
"""The designs that miss a limit, with the reason; a miss in brackets may be chance."""


def held_to_be(name):
    mark = pytest.mark.xfail(strict=True, reason=MISSED[name]) if name in MISSED else ()
    return pytest.param(name, marks=mark)


@pytest.mark.parametrize("name", [held_to_be(name) for name in STORED])
def test_the_limits_of_each_design(name):
    assert not [one for one in misses(STORED[name]) if not one.startswith("(")]


@pytest.mark.skipif(not STORED, reason="there was no run yet")
def test_every_design_was_run_and_the_limits_on_average_hold():
    assert list(STORED) == list(DESIGNS)
    assert min(one["draws"] for one in STORED.values()) >= 300
    assert min(one["compared"] for one in STORED.values()) >= 60
    mean = averages(STORED)
    assert max(mean.values()) <= 1.1


def test_the_shell_gives_pythons_numbers():
    asked = [one["doors"] for one in STORED.values() if one["doors"]]
    assert {answer for one in asked for answer in one.values()} <= {"same"}
