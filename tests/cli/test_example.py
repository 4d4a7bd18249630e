"""``unskew example`` writes data that the other commands read; codes are categories."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unskew.cli.example import _STORIES

START = Path(__file__).resolve().parents[2] / "docs" / "start.md"
ROLES = ("--target", "single_shift", "--id", "id", "--population-weight", "weight")
CODES = ("--categories", "region")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("example")


@pytest.mark.parametrize("name", list(_STORIES))
def test_an_example_is_written_with_its_licence_and_a_command_that_runs(name, folder, unskew):
    result = unskew("example", name, folder / name)
    assert result.code == 0
    held = {
        path.name.removesuffix(".gz") for path in (files("unskew") / "examples" / name).iterdir()
    }
    assert {path.name for path in (folder / name).iterdir()} == held
    assert name != "vacancies" or "LICENSE.txt" in held
    command = result.out.partition("Try: unskew ")[2].split()
    assert command == _STORIES[name][1].format(folder / name).split()[1:]
    estimated = unskew(*command)
    assert estimated.code == 0, estimated.err
    assert name != "vacancies" or "70.4 %" in estimated.out  # as nonprobsvy prints it


@pytest.mark.skipif(not START.exists(), reason="runs in the repository only")
@pytest.mark.parametrize("name", list(_STORIES))
def test_the_tutorial_has_the_command_that_is_printed(name):
    shown = " ".join(START.read_text(encoding="utf-8").replace("\\\n", " ").split())
    assert f"unskew example {name}" in shown
    assert _STORIES[name][1].format(name) in shown


def test_an_example_that_does_not_exist_is_refused(unskew):
    assert unskew("example", "nothing").code == 2


def test_an_example_replaces_no_file_of_yours(tmp_path, unskew):
    (tmp_path / "survey.csv").write_text("mine")
    result = unskew("example", "census", tmp_path)
    assert result.code == 2
    assert f"'{tmp_path / 'survey.csv'}'" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["survey.csv"]
    assert unskew("example", "census", tmp_path / "twice").code == 0
    assert unskew("example", "census", tmp_path / "twice").code == 0


def test_codes_are_categories_for_new_rows_too(folder, unskew):
    place = folder / "vacancies"
    assert unskew("example", "vacancies", place).code == 0
    sample, weighter = place / "register.csv", folder / "w.skops"
    weigh = ("weigh", sample, place / "survey.csv", *ROLES, "--method", "rake", "--no-verdict")
    outputs = [folder / f"{number}.csv" for number in range(2)]
    assert unskew(*weigh, *CODES, "--save", weighter, "-o", outputs[0]).code == 0
    found, everyone = (
        pd.read_csv(place / name, dtype={"region": str})["region"] == "02"
        for name in ("register.csv", "survey.csv")
    )
    weights, design = pd.read_csv(outputs[0])["weight"], pd.read_csv(place / "survey.csv")["weight"]
    share = np.average(everyone, weights=design)
    assert np.average(found, weights=weights) == pytest.approx(share, rel=1e-6)
    assert abs(found.mean() - share) > 0.001
    assert unskew("apply", weighter, sample, "--id", "id", *CODES, "-o", outputs[1]).code == 0
    pd.testing.assert_frame_equal(*map(pd.read_csv, outputs))


def test_categories_name_columns_of_the_sample(folder, unskew):
    files = [folder / "vacancies" / name for name in ("register.csv", "survey.csv")]
    assert unskew("example", "vacancies", folder / "vacancies").code == 0
    result = unskew("estimate", *files, *ROLES, "--categories", "regio")
    assert result.code == 2
    assert "--categories names 'regio'" in result.err
    assert "'region'" in result.err
