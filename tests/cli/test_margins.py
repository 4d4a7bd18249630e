"""Weights and diagnosis from a file of margins instead of rows."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unskew import CalibrationWeights, Margins

EXAMPLES = files("unskew") / "examples" / "census"
SURVEY, MARGINS = str(EXAMPLES / "survey.csv"), str(EXAMPLES / "margins.csv")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def margins_of_the_example():
    joint = {("north", "f"): 1259, ("north", "m"): 1235, ("south", "f"): 1900, ("south", "m"): 1800}
    counts = {
        "sex": {"f": 3159, "m": 3035},
        "age": {"18-34": 1800, "35-59": 2600, "60+": 1794},
        ("region", "sex"): joint,
    }
    return Margins(counts, means={"income": 41_000.0})


@pytest.mark.parametrize("method", ["rake", "propensity", "logit"])
def test_the_weights_are_the_librarys(unskew, method):
    bounds = ["--set", "bounds=(0.05, 12)"] if method == "logit" else []
    result = unskew("weigh", SURVEY, "--margins", MARGINS, "--method", method, *bounds,
                    "--id", "id", "-o", "weights.csv")  # fmt: skip
    assert result.code == 0, result.err
    assert f"300 sample rows weighed against margins by {method}" in result.out
    assert "The weighted sample agrees with the margins and keeps" in result.out
    written = pd.read_csv("weights.csv")
    distance = {"rake": "raking"}.get(method, method)
    expected = CalibrationWeights(distance=distance, bounds=(0.05, 12) if bounds else None)
    survey = pd.read_csv(SURVEY)
    expected.fit(survey, population=margins_of_the_example())
    np.testing.assert_allclose(written["weight"], expected.weights_, rtol=1e-9)
    # The margins are met.
    share = np.average(survey["sex"] == "f", weights=written["weight"])
    assert share == pytest.approx(3159 / 6194)
    assert np.average(survey["income"], weights=written["weight"]) == pytest.approx(41_000)


def test_raking_is_the_default_and_reports_say_what_is_known(unskew):
    result = unskew("weigh", SURVEY, "--margins", MARGINS, "--id", "id", "--target", "buys",
                    "-o", "weights.csv", "--report", "report.html")  # fmt: skip
    assert result.code == 0, result.err
    assert "by rake" in result.out
    result = unskew("diagnose", SURVEY, "--margins", MARGINS, "--target", "buys", "--id", "id",
                    "--weights", "weights.csv", "--report", "report.md")  # fmt: skip
    assert result.code == 0, result.err
    assert "Only margins of the population are known" in result.out
    assert "age = 60+: +0.56, with the weights" in result.out
    page = Path("report.md").read_text(encoding="utf-8")
    assert "margins only" in page
    assert "margins.csv" in page
    assert "AUC" not in page.split("## How it was computed")[0]
    before = unskew("diagnose", SURVEY, "--margins", MARGINS, "--id", "id", "--check")
    assert before.code == 1
    assert "The sample differs from the margins" in before.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give either POPULATION, a file of rows, or --margins"),
        ([SURVEY, "--margins", MARGINS], "both are given"),
        (["--margins", SURVEY], "has the columns variable, category and one of count"),
        (["--margins", "missing.csv"], "The margins file 'missing.csv' does not exist"),
        (["--margins", MARGINS, "--method", "kmm"], "--method kmm asks what these Margins"),
        (["--margins", MARGINS, "--method", "linear"], "--set 'bounds=(0, None)'"),
        (["--margins", MARGINS, "--set", "distance=linear"], "--set distance: use --method"),
        (["--margins", MARGINS, "--population-weight", "n"], "--population-weight is for rows"),
    ],
)
def test_what_cannot_be_is_one_clear_message(unskew, tmp_path, arguments, message):
    result = unskew("weigh", SURVEY, *arguments, "-o", "weights.csv")
    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert "Traceback" not in result.err
    assert not list(tmp_path.iterdir())


def test_rounded_percentages_are_scaled_with_a_note(unskew, tmp_path):
    sample = pd.DataFrame({"sex": list("fffmx"), "age": 1.0, "id": range(5)})
    sample.to_csv("sample.csv", index=False)
    Path("margins.csv").write_text(
        "variable,category,percent\nsex,f,33.3\nsex,m,33.3\nsex,x,33.3\n"
    )
    result = unskew("weigh", "sample.csv", "--margins", "margins.csv", "--id", "id", "-o", "w.csv")
    assert result.code == 0, result.err
    assert result.err.count("add up to 99.9, not 100, as rounded numbers do: they are scaled") == 1
    assert pd.read_csv("w.csv").weight[3:].to_list() == pytest.approx([5 / 3, 5 / 3])


def test_totals_that_differ_are_scaled_if_asked(unskew, tmp_path):
    pd.DataFrame({"sex": list("ffm"), "a": list("xyx"), "id": range(3)}).to_csv(
        "s.csv", index=False
    )
    Path("m.csv").write_text("variable,category,count\nsex,f,60\nsex,m,40\na,x,45\na,y,45\n")
    command = ("weigh", "s.csv", "--margins", "m.csv", "--id", "id", "-o", "w.csv")
    refused = unskew(*command)
    assert refused.code == 2
    assert "or use --reconcile." in refused.err
    result = unskew(*command, "--reconcile")
    assert result.code == 0, result.err
    assert pd.read_csv("w.csv").weight[2] == pytest.approx(3 * 0.4)
