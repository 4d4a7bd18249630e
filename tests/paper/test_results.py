from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from unskew.paper.datasets import DataSet
from unskew.paper.methods import METHODS
from unskew.paper.printed import TABLE_1, agreement, rank_correlation
from unskew.paper.protocol import SCALINGS, Case, DrawOutcome, MethodScores, Plan
from unskew.paper.results import average_table, markdown, paper_table, report_on, tables, verdict
from unskew.paper.run import Kept
from unskew.paper.seeds import between_seeds, over_seeds
from unskew.paper.selection import MECHANISMS

FIELDS = [
    *("set", "scaling", "total", "mechanism", "method", "nmse_mean", "nmse_sd", "draws"),
    *("m", "n", "n_test", "ess", "paper_nmse_mean", "paper_nmse_sd"),
]


@pytest.fixture(scope="module")
def plan() -> Plan:
    rows = np.zeros((506, 1))
    sets = tuple(
        DataSet(name, rows, rows[:, 0], 300, 206, "made up") for name in ("housing", "toy")
    )
    return Plan(
        sets=sets,
        draws=6,
        directions=4,
        choosing_draws=3,
        averaging_draws=2,
        scalings=tuple(SCALINGS),
        mechanisms=tuple(MECHANISMS),
    )


@pytest.fixture(scope="module")
def errors(plan) -> dict:
    """A random error for whatever the plan could ask for."""
    random = np.random.default_rng(0)
    return {
        (Case(name, scaling, mechanism, number, draw), method, total): random.uniform()
        for name in ("housing", "toy")
        for scaling in plan.scalings
        for mechanism in plan.mechanisms
        for number in (range(4) if mechanism == "logistic" else (None,))
        for draw in range(6)
        for method in METHODS
        for total in plan.totals
    }


@pytest.fixture(scope="module")
def report(plan, errors):
    outcomes = {
        case: DrawOutcome(
            m=100 + case.draw,
            n=300,
            n_test=206,
            methods={
                method: MethodScores(
                    ess=50.0 + case.draw,
                    nmse={total: errors[case, method, total] for total in plan.totals},
                )
                for method in METHODS
            },
        )
        for case in {case for case, _, _ in errors}
    }
    return report_on(plan, Kept(outcomes, []))


def over_draws(errors, row, n_draws=6):
    name = (row["set"], row["scaling"], row["mechanism"], row["direction"])
    return np.array(
        [errors[Case(*name, draw), row["method"], row["total"]] for draw in range(n_draws)]
    )


def test_results_are_means_and_standard_deviations_over_draws(report, errors):
    assert len(report.results) == 2 * (2 + 3) * 3 * 4
    for row in report.results:
        assert list(row)[: len(FIELDS)] == FIELDS
        values = over_draws(errors, row)
        assert row["nmse_mean"] == pytest.approx(values.mean())
        assert row["nmse_sd"] == pytest.approx(np.sqrt(((values - values.mean()) ** 2).sum() / 5))
        assert (row["draws"], row["m"], row["n"], row["n_test"]) == (6, 102, 300, 206)
        assert row["ess"] == 52.5


def test_the_papers_figures_stand_where_they_apply(report):
    for row in report.results:
        applies = (row["set"], row["total"], row["mechanism"]) == ("housing", "paper", "logistic")
        printed = TABLE_1["housing"].nmse[row["method"]] if applies else (None, None)
        assert (row["paper_nmse_mean"], row["paper_nmse_sd"]) == printed


def test_differences_have_students_interval(report, errors):
    keys = ("set", "scaling", "total", "mechanism", "method")
    rows = {tuple(row[key] for key in keys): row for row in report.results}
    assert len(report.differences) == 2 * (2 + 3) * 3 * 3
    for change in report.differences:
        key = tuple(change[k] for k in keys[:-1])
        values = over_draws(errors, rows[*key, change["method"]])
        paired = values - over_draws(errors, rows[*key, "Unweighted"])
        interval = stats.ttest_1samp(paired, 0.0).confidence_interval(0.95)
        assert change["difference"] == pytest.approx(paired.mean())
        assert (change["low"], change["high"]) == pytest.approx(tuple(interval))
        assert (change["better"], change["of"]) == ((paired < 0).sum(), 6)


def test_averages_are_over_the_means_of_all_directions(report, errors):
    assert len(report.averages) == 2 * 2 * 4
    for row in report.averages:
        cases = [[Case(row["set"], "range", "logistic", w, d) for d in range(2)] for w in range(4)]
        means, base = (
            np.array([[errors[case, method, row["total"]] for case in w] for w in cases]).mean(1)
            for method in (row["method"], "Unweighted")
        )
        assert row["nmse_mean"] == pytest.approx(means.mean())
        assert row["nmse_sd"] == pytest.approx(means.std(ddof=1))
        if row["method"] != "Unweighted":
            interval = stats.ttest_1samp(means - base, 0.0).confidence_interval(0.95)
            assert (row["low"], row["high"]) == pytest.approx(tuple(interval))


def as_printed(factor=1.0):
    return [
        {
            "set": name,
            "scaling": "range",
            "total": "paper",
            "mechanism": "logistic",
            "method": method,
            "nmse_mean": factor * printed.mean,
            "nmse_sd": printed.sd,
            "m": row.m,
            "ess": row.m / 2,
            "paper_nmse_mean": printed.mean,
            "paper_nmse_sd": printed.sd,
        }
        for name, row in TABLE_1.items()
        for method, printed in row.nmse.items()
    ]


def test_the_printed_table_agrees_with_itself():
    found = agreement(as_printed(), "range")
    assert (found["cells"], found["sets"], found["clustered_better"]) == (36, 9, 9)
    assert found["spearman"] == pytest.approx(1.0)
    assert found["without_kmm"] == pytest.approx(1.0)
    assert found["deviations"] == dict.fromkeys(METHODS, 0.0)
    off = agreement(as_printed(1.25), "range")["deviations"]
    assert list(off.values()) == pytest.approx([0.25] * 4)
    assert agreement(as_printed(), "standard")["cells"] == 0


def test_one_column_can_be_left_out_of_the_rank_correlation():
    """By hand: the ranks (1, 2, 3, 4) and (1, 2, 4, 3) correlate by 1 - 6 · 2 / (4 · 15)."""
    first = {("a", "Ideal"): 0.1, ("b", "Ideal"): 0.2, ("c", "Ideal"): 0.3, ("a", "KMM"): 0.4}
    second = {**first, ("c", "Ideal"): 0.5}
    assert rank_correlation(first, second) == pytest.approx(0.8)
    assert rank_correlation(first, second, without="KMM") == pytest.approx(1.0)
    assert between_seeds([first, second, first]) == pytest.approx([0.8, 1.0, 0.8])
    mean, spread = over_seeds([first, second])
    assert mean["c", "Ideal"] == pytest.approx(0.4)
    assert spread["c", "Ideal"] == pytest.approx(0.2 / np.sqrt(2))
    assert spread["a", "KMM"] == 0.0


def test_tables_show_what_there_is(plan, report):
    shown = tables(plan, report)
    # Beside the paper and at two totals, for two scalings; over all w at two; three mechanisms.
    assert len(shown) == 2 * 3 + 2 + 3
    for table in shown:
        assert all(len(row) == len(table.headings) for row in table.rows)
        assert "nan" not in markdown(table)
    first = paper_table(as_printed(1.1), "range")
    assert len(first.rows) == 36
    assert first.rows[0][:5] == (
        *("abalone", "Unweighted", "0.719±0.019", "0.654±0.019", "+0.065"),
    )
    assert "Unweighted 10%, Ideal 10%" in verdict(as_printed(1.1), "range")
    words = "1.00, without KMM 1.00. Clustered is better than Unweighted on 9 of 9"
    assert words in verdict(as_printed(), "range")


def test_averages_under_two_scalings_are_not_mixed(report):
    other = [{**row, "scaling": "standard", "nmse_mean": 9.0} for row in report.averages]
    alone, among = (
        average_table(rows, "range", "paper")
        for rows in (report.averages, [*report.averages, *other])
    )
    assert alone == among


def test_one_draw_has_no_spread(plan, errors):
    one = Plan(sets=plan.sets[:1], draws=1, choosing_draws=1, directions=1, scalings=plan.scalings)
    outcomes = {
        Case("housing", scaling, "logistic", 0, 0): DrawOutcome(
            10, 300, 206, {m: MethodScores(5.0, dict.fromkeys(plan.totals, 0.5)) for m in METHODS}
        )
        for scaling in plan.scalings
    }
    report = report_on(one, Kept(outcomes, []))
    assert report.results[0]["nmse_sd"] is None
    assert report.differences[0]["low"] is None
    assert "±" not in markdown(tables(one, report)[1])
