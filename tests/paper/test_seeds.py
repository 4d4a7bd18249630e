"""Several seeds of the paper's experiment: their mean, their spread, their agreement with print."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unskew.paper import results
from unskew.paper.printed import COLUMNS, TABLE_1
from unskew.paper.seeds import SeededRuns, ceiling, comparison, order_kept, pairs, seeds_table


def row(name, method, error, total="paper"):
    printed = TABLE_1[name].nmse[method]
    return {
        "set": name,
        "method": method,
        "scaling": "range",
        "mechanism": "logistic",
        "total": total,
        "nmse_mean": error,
        "nmse_sd": 0.01,
        "ess": 50.0,
        "m": 100,
        "paper_nmse_mean": printed.mean,
        "paper_nmse_sd": printed.sd,
    }


@pytest.fixture
def runs():
    """Three seeds whose errors are the printed ones, and 10 % below and above them."""
    reports = [
        {
            "seed": seed,
            "run": {"draws": 10},
            "results": [
                row(name, method, factor * TABLE_1[name].nmse[method].mean)
                for name in TABLE_1
                for method in COLUMNS
            ],
        }
        for seed, factor in ((0, 0.9), (1, 1.1), (2, 1.0))
    ]
    return SeededRuns(reports)


def test_the_mean_of_seeds_around_the_printed_table_is_the_printed_table(runs):
    assert runs.mean == pytest.approx(runs.printed)
    key = "housing", "KMM"
    assert runs.spread[key] == pytest.approx(0.1 * TABLE_1["housing"].nmse["KMM"].mean)
    assert len(comparison(runs).rows) == 36
    assert comparison(runs).rows[0][-2:] == ("+0%", "50%")


def test_agreement_of_each_seed_and_of_their_mean(runs):
    first, second, _, mean = seeds_table(runs).rows
    assert first[:4] == ("seed 0", "1.00", "1.00", "9 of 9")
    assert first[4:] == second[4:] == ("10.0%",) * 4
    assert mean == ("**mean table**", "1.00", "1.00", "9 of 9", *("0.0%",) * 4)
    assert pairs(runs)["pairs"] == "1.00 (1.00 to 1.00)"
    assert ceiling(runs) == "1.00"
    assert order_kept(runs) == (54, 54)


def test_differences_from_unweighted_are_paired_by_seed(runs):
    found = {(one["set"], one["method"]): one for one in runs.against_unweighted("paper")}
    plain, ideal = (TABLE_1["abalone"].nmse[name].mean for name in ("Unweighted", "Ideal"))
    one = found["abalone", "Ideal"]
    assert one["difference"] == pytest.approx(ideal - plain)
    assert one["high"] + one["low"] == pytest.approx(2 * one["difference"])
    assert found["abalone", "Unweighted"]["low"] == 0.0


def test_directions_of_several_seeds_are_put_together():
    """Against Student's interval of one sample of them all, of equal seed means."""
    random = np.random.default_rng(0)
    change = random.normal(size=(5, 10))
    change -= change.mean(axis=1, keepdims=True) - 0.3
    averages = [
        {"directions": 10, "nmse_mean": 1.0, "nmse_sd": 0.5, **results._interval(seed)}
        for seed in change
    ]
    runs = SeededRuns([{"seed": k, "averages": [one]} for k, one in enumerate(averages)])
    (joined,) = runs.averaged()
    assert joined["directions"] == 50
    assert joined["difference"] == pytest.approx(0.3)
    whole = results._interval(change.ravel())
    # 45 degrees of freedom within seeds, 49 in one sample.
    assert joined["high"] == pytest.approx(whole["high"], rel=0.05)


def test_what_was_stored_is_read(runs, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"round": "table", "reports": runs.reports}))
    assert SeededRuns.from_file(path).mean == pytest.approx(runs.mean)
    assert SeededRuns.from_file(path).run == {"draws": 10}
