"""``unskew estimate``: the library's numbers, from files."""

from __future__ import annotations

import json
from importlib.resources import files

import pandas as pd
import pytest

from unskew import CalibrationWeights, estimate, read_margins

EXAMPLES = files("unskew") / "examples" / "census"
SURVEY, MARGINS = str(EXAMPLES / "survey.csv"), str(EXAMPLES / "margins.csv")


@pytest.fixture(autouse=True)
def in_a_folder(survey, monkeypatch):
    monkeypatch.chdir(survey)


ARGUMENTS = ("estimate", "answers.csv", "people.parquet", "--target", "spend", "--id", "customer")


def library(**options):
    rows, people = pd.read_csv("answers.csv"), pd.read_parquet("people.parquet")
    weighter = CalibrationWeights(overlap=0.05)
    return estimate(
        rows[list(people)], rows["spend"], population=people, weighter=weighter, **options
    )


def test_the_number_is_the_librarys(unskew):
    result = unskew(*ARGUMENTS)
    assert result.code == 0, result.err
    assert result.out.strip() == str(library())
    found = json.loads(unskew(*ARGUMENTS, "--json", "--outcome", "linear").out)
    assert found["value"] == pytest.approx(library(outcome="linear").value)
    assert found["outcome"] == "linear"


def test_too_little_overlap_is_refused_with_what_to_do(unskew):
    pd.read_csv("answers.csv").query("town != 'Kiel'").to_csv("some.csv", index=False)
    result = unskew("estimate", "some.csv", *ARGUMENTS[2:])
    assert result.code == 3
    assert "town = Kiel" in result.err
    assert "--allow-uncovered 0.3" in result.err
    assert "overlap=" not in result.err


def test_a_refusal_names_the_column_to_leave_out(unskew):
    answers, people = pd.read_csv("answers.csv"), pd.read_parquet("people.parquet")
    answers["street"] = [f"street {row}" for row in range(len(answers))]
    people["street"] = [f"street {row}" for row in range(len(people))]
    answers.query("town != 'Kiel'").to_csv("some.csv", index=False)
    people.to_parquet("streets.parquet")
    result = unskew("estimate", "some.csv", "streets.parquet", *ARGUMENTS[3:])
    assert result.code == 3
    assert "leave it out with --exclude street" in result.err


def test_groups_are_listed_and_written(unskew):
    result = unskew(*ARGUMENTS, "--by", "town", "-o", "towns.csv")
    assert result.code == 0, result.err
    expected = library(by="town")
    assert str(expected) in result.out
    assert "Written: towns.csv" in result.out
    table = pd.read_csv("towns.csv").set_index("town")
    assert table.loc["Ulm", "value"] == pytest.approx(expected["Ulm"].value)
    assert table.loc["Ulm", "low"] == pytest.approx(expected["Ulm"].interval[0])


def test_groups_strata_and_clusters_that_only_the_sample_has(unskew):
    rows = pd.read_csv("answers.csv", dtype={"customer": str})
    rows["wave"] = ["first", "second"] * (len(rows) // 2) + ["first"] * (len(rows) % 2)
    rows["house"] = [row // 2 for row in range(len(rows))]
    rows.to_csv("answers.csv", index=False)
    result = unskew(*ARGUMENTS, "--by", "wave", "--clusters", "house")
    assert result.code == 0, result.err
    assert "The population has no column 'wave'" in result.out
    result = unskew(*ARGUMENTS, "--strata", "wave", "--clusters", "house", "--json")
    assert result.code == 0, result.err
    plain = library().standard_error
    assert json.loads(result.out)["standard_error"] != pytest.approx(plain, rel=1e-6)


def test_strata_that_the_population_has_are_features_as_in_python(unskew):
    for options in ({"strata": "town"}, {"strata": "town", "by": "town"}):
        arguments = [part for name, column in options.items() for part in (f"--{name}", column)]
        result = unskew(*ARGUMENTS, *arguments)
        assert result.code == 0, result.err
        assert str(library(**options)) in result.out


def test_margins_stand_for_the_population(unskew):
    result = unskew("estimate", SURVEY, "--margins", MARGINS, "--target", "buys", "--id", "id",
                    "--json", "-o", "buys.json")  # fmt: skip
    assert result.code == 0, result.err
    rows = pd.read_csv(SURVEY)
    expected = estimate(
        rows.drop(columns=["buys", "id"]), rows["buys"], population=read_margins(MARGINS)
    )
    found = json.loads(result.out)
    assert found["value"] == pytest.approx(expected.value)
    with open("buys.json", encoding="utf-8") as file:
        assert json.load(file) == found


def test_text_gives_proportions_and_a_quantile_is_named(unskew):
    rows = pd.read_csv("answers.csv", dtype={"customer": str})
    rows["spend"] = (rows["spend"] > 150).map({True: "much", False: "little"})
    rows.to_csv("answers.csv", index=False)
    result = unskew(*ARGUMENTS)
    assert result.code == 0, result.err
    assert "much" in result.out
    result = unskew("estimate", "answers.csv", "people.parquet", "--target", "age",
                    "--id", "customer", "--exclude", "spend", "--quantile", "0.5", "--method",
                    "linear", "--set", "bounds=(0, None)")  # fmt: skip
    assert result.code == 0, result.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--target", "cost"], 2, "cost"),
        (["--target", "spend", "--by", "wave"], 2, "wave"),
        (["--target", "spend", "--level", "95"], 2, "level must lie between"),
        (["--target", "spend", "--set", "ridge=1"], 2, "--set is for a method"),
        (["--target", "spend", "-o", "found.txt"], 2, "found.txt"),
        (["--target", "spend", "--statistic", "quantile"], 2, "q is for"),
        (["--target", "spend", "--method", "frequency"], 3, "cells without sample rows"),
    ],
)
def test_bad_input_is_one_line(unskew, arguments, code, message):
    result = unskew("estimate", "answers.csv", "people.parquet", "--id", "customer", *arguments)
    assert result.code == code
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.out == ""


def test_replicates_are_columns_of_the_weights(unskew):
    result = unskew("weigh", "answers.csv", "people.parquet", "--target", "spend",
                    "--id", "customer", "--method", "rake", "--replicates", "20",
                    "--no-verdict", "-o", "weights.parquet")  # fmt: skip
    assert result.code == 0, result.err
    table = pd.read_parquet("weights.parquet")
    assert list(table)[:3] == ["customer", "weight", "weight_1"]
    assert table.shape[1] == 22
    assert table["weight_20"].sum() == pytest.approx(table["weight"].sum())


def test_sensitivity_is_the_librarys(unskew):
    result = unskew(*ARGUMENTS, "--sensitivity", "--threshold", "30", "--odds", "1.5")
    assert result.code == 0, result.err
    expected = library()
    found = expected.sensitivity(odds=1.5, threshold=30)
    assert result.out.strip() == f"{expected}\n{found}"
    out = unskew(*ARGUMENTS, "--sensitivity", "--odds", "1.5", "--odds", "2", "--json").out
    shown = json.loads(out)["sensitivity"]
    expected = expected.sensitivity(odds=[1.5, 2])
    assert [row["odds"] for row in shown["bounds"]] == [1.5, 2.0]
    assert shown["bounds"][0]["sharp"] == pytest.approx(expected.bounds[0].sharp)
    assert shown["sentence"] == expected.sentence


def test_sensitivity_of_each_group(unskew):
    arguments = (*ARGUMENTS, "--by", "town", "--sensitivity", "--odds", "2")
    result = unskew(*arguments, "-o", "towns.csv")
    assert result.code == 0, result.err
    expected = library(by="town")["Ulm"].sensitivity(odds=2)
    assert f"Ulm: {expected}" in result.out
    table = pd.read_csv("towns.csv").set_index("town")
    assert table.loc["Ulm", "breakdown_odds"] == pytest.approx(expected.breakdown)
    found = json.loads(unskew(*arguments, "--json").out)
    assert all(one["sensitivity"]["bounds"][0]["odds"] == 2 for one in found["estimates"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--odds", "2"), "--odds is for --sensitivity"),
        (("--threshold", "2"), "--threshold is for --sensitivity"),
        (("--sensitivity", "--odds", "0.5"), "odds must be at least 1"),
    ],
)
def test_what_sensitivity_refuses(unskew, options, message):
    result = unskew(*ARGUMENTS, *options)
    assert result.code == 2
    assert message in " ".join(result.err.split())


@pytest.mark.parametrize("command", ["estimate", "estimate --json", "diagnose --check", "weigh"])
def test_a_category_that_no_sample_row_has_is_named_by_every_command(unskew, command):
    people = pd.read_parquet("people.parquet")
    people["town"] = people["town"].where(people.index % 24 > 0, "Trier")  # 4.2 %
    people.to_parquet("people.parquet")
    name, *options = command.split()
    options += ["-o", "weights.csv"] if name == "weigh" else []
    result = unskew(name, *ARGUMENTS[1:], *options)
    assert result.code == (1 if name == "diagnose" else 0), result.err
    assert "town = Trier: 4.2 % of the population" in result.out
    if "--json" in options:
        assert any("town = Trier" in note for note in json.loads(result.out)["notes"])


def test_columns_may_name_the_groups_too(unskew, survey, people):
    people.drop(columns="town").to_parquet("few.parquet")
    for population in ("people.parquet", "few.parquet"):
        given = ("estimate", "answers.csv", population, "--target", "spend", "--id", "customer",
                 "--by", "town", "--json")  # fmt: skip
        both, one = (unskew(*given, "--columns", names) for names in ("age,town", "age"))
        assert both.code == 0, both.err
        assert both.out == one.out


def test_one_value_beyond_all_others_is_left_out_and_named(unskew):
    people = pd.read_parquet("people.parquet")
    people["income"] = people["income"].astype(float)
    people.loc[people.index[5], "income"] = 1e12  # as 999999999999 for an unknown one
    people.to_parquet("people.parquet")
    result = unskew(*ARGUMENTS, "--json")
    assert result.code == 0, result.err
    assert any("'income' is not matched" in note for note in json.loads(result.out)["notes"])
