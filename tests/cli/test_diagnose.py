from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from unskew import __version__
from unskew.cli import inputs

ROLES = ("--target", "spend", "--id", "customer")


def test_the_verdict_the_report_and_json(unskew, survey, answers):
    weigh = ("weigh", "answers.csv", "people.parquet", *ROLES)
    result = unskew(*weigh, "-o", "w.csv", "--report", "weigh.html", "--quiet")
    assert (result.code, result.out) == (0, ""), result.err
    arguments = ("diagnose", "answers.csv", "people.parquet", *ROLES, "--weights", "w.csv")
    result = unskew(*arguments, "--report", "report.html")
    assert result.code == 0, result.err
    first, *lines = result.out.splitlines()
    assert first.endswith(".")
    assert any(line.startswith("  age: +0.") and "with the weights" in line for line in lines)
    assert lines[-1] == "Written: report.html"
    for name in ("weigh.html", "report.html"):
        page = (survey / name).read_text(encoding="utf-8")
        assert page.lstrip().lower().startswith("<!doctype html>")
        assert page.rstrip().endswith("</html>")
    result = unskew(*arguments, "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert found["verdict"]["headline"] == first
    assert found["sample_rows"] == len(answers)
    assert found["population_rows"] == 4000
    assert {path.name for path in survey.iterdir()} == {
        "answers.csv", "people.parquet", "w.csv", "weigh.html", "report.html",
    }  # fmt: skip


def test_a_report_says_which_files_it_is_about_in_every_format(unskew, survey):
    weigh = ("weigh", "answers.csv", "people.parquet", *ROLES, "-o", "w.csv", "--quiet")
    assert unskew(*weigh, "--report", "weigh.json").code == 0
    about = json.loads((survey / "weigh.json").read_text(encoding="utf-8"))
    assert about["method"] == "AutoWeights"
    names = {"sample": "answers.csv", "population": "people.parquet", "target": "spend"}
    made = about["provenance"]
    names |= {"title": None, "identifier": "customer", "weights": None}
    assert made == {**names, "date": made["date"], "version": __version__}
    age = datetime.now(UTC) - datetime.fromisoformat(made["date"])
    assert timedelta(0) <= age < timedelta(minutes=5)
    given = ("diagnose", "-", "people.parquet", *ROLES, "--weights", "w.csv", "--quiet")
    rows = (survey / "answers.csv").read_bytes()
    for name in ("report.html", "report.md", "REPORT.HTM"):
        assert unskew(*given, "--report", name, stdin=rows).code == 0
        text = (survey / name).read_text(encoding="utf-8").replace("\\", "")
        names = ("standard input", "people.parquet", "spend", "w.csv", f"by unskew {__version__}")
        assert [part for part in names if part not in text] == []
        assert text.lstrip().startswith("#" if name.endswith(".md") else "<!doctype html>")


def test_weights_are_matched_by_id_whatever_their_order(survey, answers):
    weights = np.arange(1.0, len(answers) + 1)
    written = pd.DataFrame({"customer": answers["customer"], "weight": weights})
    written.sample(frac=1, random_state=0).to_csv("w.csv", index=False)
    rows = inputs.read_rows("answers.csv", "customer")
    identifiers = inputs.row_identifiers(rows, "customer")
    np.testing.assert_array_equal(inputs.read_weights("w.csv", identifiers), weights)
    pd.DataFrame({"row": range(len(answers)), "weight": weights}).to_parquet("w.parquet")
    numbered = inputs.row_identifiers(rows, None)
    np.testing.assert_array_equal(inputs.read_weights("w.parquet", numbered), weights)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w: w.iloc[1:], "of which 1 have no weight, such as '01000'"),
        (lambda w: w.rename(columns={"weight": "w"}), "columns 'customer' and 'weight'"),
        (lambda w: w.rename(columns={"customer": "name"}), "with --id"),
        (lambda w: w.assign(customer="00001"), "does not identify rows"),
        (lambda w: w.assign(weight="heavy"), "must hold numbers"),
        (lambda w: w.assign(weight=-1.0), "not be negative"),
        (lambda w: w.assign(weight=0.0), "zero"),
        (lambda w: w.assign(weight=np.nan), "be finite"),
    ],
)
def test_weights_that_cannot_be_judged(unskew, survey, answers, change, words):
    weights = pd.DataFrame({"customer": answers["customer"], "weight": 1.0})
    change(weights).to_csv("w.csv", index=False)
    result = unskew("diagnose", "answers.csv", "people.parquet", *ROLES, "--weights", "w.csv",
                    "--report", "report.html")  # fmt: skip
    assert result.code == 2
    assert words in result.err
    assert result.err.count("\n") == 1
    assert not (survey / "report.html").exists()


def test_a_narrow_encoding_of_the_terminal_is_no_error(survey, answers, people):
    answers.rename(columns={"age": "age ≤ 99"}).to_csv("answers.csv", index=False)
    people.rename(columns={"age": "age ≤ 99"}).to_parquet("people.parquet")
    command = [sys.executable, "-m", "unskew.cli", "diagnose", "answers.csv", "people.parquet"]
    result = subprocess.run(
        [*command, "--target", "spend", "--id", "customer"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
    )
    assert result.returncode == 0, result.stderr
    assert rb"age \u2264 99" in result.stdout


def test_identifiers_may_be_categories(unskew, survey, answers):
    answers.assign(customer=answers["customer"].astype("category")).to_parquet("answers.parquet")
    roles = ("--target", "spend", "--id", "customer")
    limits = ("--allow-uncovered", "1")
    weighed = unskew(
        "weigh", "answers.parquet", "people.parquet", *roles, *limits, "-o", "w.parquet"
    )
    assert weighed.code == 0, weighed.err
    judged = unskew(
        "diagnose", "answers.parquet", "people.parquet", *roles, "--weights", "w.parquet"
    )
    assert judged.code == 0, judged.err


def test_a_report_names_rows_by_their_id_and_has_the_title_that_is_given(unskew, survey, answers):
    given = ("weigh", "answers.csv", "people.parquet", *ROLES, "-o", "w.csv", "--quiet")
    assert unskew(*given, "--report", "r.json", "--title", "May").code == 0
    about = json.loads((survey / "r.json").read_text(encoding="utf-8"))
    heavy = pd.read_csv("w.csv", dtype={"customer": str}).nlargest(1, "weight").customer.item()
    assert about["weights"]["heaviest"][0]["row"] == heavy
    assert about["provenance"]["title"] == "May"
