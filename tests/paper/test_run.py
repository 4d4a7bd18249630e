from __future__ import annotations

import json
import os

import numpy as np
import pytest

from unskew import HistogramWeights
from unskew.errors import InputError, ParameterError, UnskewError
from unskew.paper.datasets import DataSet
from unskew.paper.methods import METHODS, ComparedWeights
from unskew.paper.protocol import Case, DrawOutcome, MethodScores, Plan, choose_directions
from unskew.paper.results import report_on
from unskew.paper.run import FILE_NAME, Records, run


@pytest.fixture
def toy(made_up) -> DataSet:
    columns = made_up()
    X = np.column_stack([columns["a"], columns["b"]])
    return DataSet("toy", X, columns["y"], n=90, n_test=70, source="made up")


SMALL = {
    "draws": 3,
    "directions": 2,
    "choosing_draws": 2,
    "scalings": ("range", "standard"),
    "mechanisms": ("logistic", "threshold"),
}


@pytest.fixture
def plan(toy) -> Plan:
    return Plan(sets=(toy,), **SMALL)


def test_one_job_and_two_give_the_same(plan, tmp_path):
    one, two = (run(plan, tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    first, second = report_on(plan, one), report_on(plan, two)
    assert first.results == second.results
    assert first.differences == second.differences
    assert first.averages == second.averages
    # Two scalings of logistic selection and one of the other; three totals; four methods.
    assert len(first.results) == (2 + 1) * 3 * 4


def test_a_second_run_makes_nothing_and_a_longer_one_only_what_is_missing(plan, toy, tmp_path):
    made = []
    run(plan, tmp_path, progress=lambda finished: made.append(finished))
    assert made[-1].missing == 0
    assert made[-1].share == pytest.approx(1.0)
    size = (tmp_path / FILE_NAME).stat().st_size
    made.clear()
    run(plan, tmp_path, progress=lambda finished: made.append(finished))
    assert made == []
    assert (tmp_path / FILE_NAME).stat().st_size == size
    longer = Plan(sets=(toy,), **{**SMALL, "draws": 4})
    kept = run(longer, tmp_path, progress=lambda finished: made.append(finished))
    assert {finished.case.draw for finished in made} == {3}
    assert len(made) == 2 + 1
    assert (tmp_path / FILE_NAME).stat().st_size > size
    fresh = run(longer, tmp_path / "fresh")
    assert report_on(longer, kept).results == report_on(longer, fresh).results


def test_a_run_that_was_killed_in_the_middle_of_a_line_goes_on(plan, tmp_path):
    whole = report_on(plan, run(plan, tmp_path / "whole")).results
    content = (tmp_path / "whole" / FILE_NAME).read_bytes()
    for cut in (0, 10, len(content) // 2, len(content) - 3):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / FILE_NAME).write_bytes(content[:cut])
        assert report_on(plan, run(plan, folder)).results == whole


def test_one_line_adds_a_method(plan, toy, tmp_path):
    run(plan, tmp_path)
    made = []
    histogram = ComparedWeights(lambda _: HistogramWeights())
    more = Plan(sets=(toy,), methods={**METHODS, "Histogram": histogram}, **SMALL)
    kept = run(more, tmp_path, jobs=2, progress=lambda finished: made.append(finished))
    assert made  # in processes of their own, which must be given the new method
    assert {row["method"] for row in report_on(more, kept).results} == {*METHODS, "Histogram"}
    lines = (tmp_path / FILE_NAME).read_text().splitlines()
    added = [json.loads(line) for line in lines][-len(made) - 1 : -1]
    assert all(set(entry["methods"]) == {"Histogram"} for entry in added)


def test_further_methods_are_in_the_average_alone(plan, toy, tmp_path):
    further = {"Histogram": ComparedWeights(lambda _: HistogramWeights())}
    small = {**SMALL, "mechanisms": ("logistic",), "scalings": ("range",), "totals": ("paper",)}
    plan = Plan(sets=(toy,), further=further, **small)
    kept = run(plan, tmp_path)
    report = report_on(plan, kept)
    assert {row["method"] for row in report.results} == set(METHODS)
    assert {row["method"] for row in report.averages} == {*METHODS, "Histogram"}
    with_it = [case for case, each in kept.outcomes.items() if "Histogram" in each.methods]
    assert sorted(with_it) == [Case("toy", "range", "logistic", w, 0) for w in range(2)]


def test_a_killed_worker_process_is_reported(toy, tmp_path):
    deadly = ComparedWeights(lambda _: os._exit(1))
    plan = Plan(sets=(toy,), draws=1, mechanisms=("label",), methods={**METHODS, "Deadly": deadly})
    with pytest.raises(UnskewError, match="worker process was killed"):
        run(plan, tmp_path, jobs=2)


def test_other_settings_are_not_mixed(plan, toy, tmp_path):
    run(plan, tmp_path)
    content = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(InputError, match="made with seed = 0, not 1"):
        run(Plan(sets=(toy,), seed=1), tmp_path)
    other = DataSet("toy", toy.X + 1, toy.y, n=90, n_test=70, source="elsewhere")
    with pytest.raises(InputError, match="other data for toy than those of 'elsewhere'"):
        run(Plan(sets=(other,)), tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == content


@pytest.mark.parametrize("text", ["3\n", '{"a": 1}\n', '{"case": [1], "methods": {}}\n', "[]\n"])
def test_a_file_of_something_else_is_refused(plan, tmp_path, text):
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(InputError, match="not a file of finished draws"):
        run(plan, tmp_path)


def test_an_output_that_cannot_be_written(plan, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        run(plan, tmp_path / "file")
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        run(plan, tmp_path)


def test_the_direction_with_the_largest_mean_gain_of_ideal_is_chosen(toy):
    plan = Plan(sets=(toy,), choosing_draws=2, directions=3)
    errors = [[(0.9, 0.5), (0.9, 0.9)], [(0.8, 0.5), (0.8, 0.5)], [(0.5, 0.9), (0.6, 0.5)]]

    def outcome(unweighted, ideal):
        scores = {
            "Unweighted": MethodScores(1, {"paper": unweighted}),
            "Ideal": MethodScores(1, {"paper": ideal}),
        }
        return DrawOutcome(1, 1, 1, scores)

    outcomes = {
        Case("toy", "range", "logistic", number, draw): outcome(*pair)
        for number, pairs in enumerate(errors)
        for draw, pair in enumerate(pairs)
    }
    assert choose_directions(plan, outcomes) == {("toy", "range"): 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": 0}, "draws must be 1 or more; got 0"),
        ({"averaging_draws": -1}, "averaging_draws must be 0 or more"),
        ({"sets": ()}, "sets is empty"),
        ({"scalings": ("rang",)}, "scalings: 'rang' is unknown. Choose from range, standard"),
        ({"mechanisms": ("x",)}, "mechanisms: 'x'"),
        ({"totals": ("x",)}, "totals: 'x'"),
        ({"learner": "x"}, "learner: 'x'"),
        ({"methods": {"Ideal": METHODS["Ideal"]}}, "methods lacks Unweighted"),
    ],
)
def test_bad_plans(toy, arguments, message):
    with pytest.raises(ParameterError, match=message):
        Plan(**{"sets": (toy,), **arguments})


def test_no_jobs(plan, tmp_path):
    with pytest.raises(ParameterError, match="jobs must be 1 or more"):
        run(plan, tmp_path, jobs=0)


def test_records_know_what_they_lack(tmp_path):
    records = Records(tmp_path, {})
    case = Case("toy", "range", "logistic", 0, 0)
    wanted = {"A": ["paper", "sample"], "B": ["paper"]}
    assert records.lacks(case, wanted) == wanted
    records.add(case, DrawOutcome(1, 1, 1, {"A": MethodScores(1.0, {"paper": 0.5})}))
    assert records.lacks(case, wanted) == {"A": ["sample"], "B": ["paper"]}
    records.add(case, DrawOutcome(1, 1, 1, {"A": MethodScores(1.0, {"sample": 0.4})}))
    assert records.lacks(case, wanted) == {"B": ["paper"]}
    records.close()
    again = Records(tmp_path, {})
    assert again.outcomes[case].methods["A"].nmse == {"paper": 0.5, "sample": 0.4}
    again.close()
