from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unskew.cli import main
from unskew.cli.outputs import print_table
from unskew.paper.results import paper_table
from unskew.paper.run import FILE_NAME

DATASETS = Path(__file__).resolve().parents[3] / "shared" / "datasets"
FIELDS = {
    *("set", "scaling", "total", "mechanism", "method", "nmse_mean", "nmse_sd", "draws"),
    *("m", "n", "n_test", "ess", "paper_nmse_mean", "paper_nmse_sd"),
}
FILES = {
    *("results.json", "differences.json", "averages.json", "run.json", "table.md", "figure.png"),
    FILE_NAME,
}


def command(*arguments) -> list[str]:
    return [sys.executable, "-m", "unskew.cli", "reproduce", *map(str, arguments)]


def run(*arguments, timeout=None, **variables):
    environment = {**os.environ, "UNSKEW_DATA": "", **variables}
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=timeout,
    )


def test_the_whole_path_on_made_up_data(data_folder, tmp_path):
    output = tmp_path / "deep" / "output"
    panels = ("--scaling", "range", "--scaling", "standard")
    panels += ("--mechanism", "logistic", "--mechanism", "label", "--reading", "scaled-by-all")
    result = run("--data", data_folder, "--draws", 2, "--jobs", 1, *panels, "-o", output)
    assert result.returncode == 0, result.stderr
    assert {path.name for path in output.iterdir()} == FILES
    assert "Clustered" in result.stdout
    assert "not in the data folder: abalone, " in result.stdout
    rows = json.loads((output / "results.json").read_text())
    assert all(set(row) >= FIELDS for row in rows)
    assert {row["set"] for row in rows} == {"toy"}
    assert {row["scaling"] for row in rows} == {"range", "standard"}
    assert {row["total"] for row in rows} == {"paper", "sample", "population"}
    assert {row["method"] for row in rows} == {"Unweighted", "Ideal", "Clustered", "KMM"}
    assert {row["mechanism"] for row in rows} == {"logistic", "label"}
    assert "scaled_by=all" in json.loads((output / "run.json").read_text())["settings"]["reading"]
    assert all(row["paper_nmse_mean"] is None for row in rows)
    assert (output / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "| toy |" in (output / "table.md").read_text()


def test_several_processes_end_with_the_command(data_folder, tmp_path):
    options = ("--draws", 1, "--jobs", 2, "--mechanism", "label", "--scaling", "range")
    # Idle workers that nobody stops wait for five minutes.
    result = run("--data", data_folder, *options, "-o", tmp_path / "output", timeout=240)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(not DATASETS.exists(), reason="the paper's data sets are not beside the repo")
def test_housing_beside_the_papers_figures(tmp_path):
    options = ("--sets", "housing", "--draws", 3, "--jobs", 2, "--scaling", "range")
    result = run(*options, "--mechanism", "logistic", "-o", tmp_path, UNSKEW_DATA=str(DATASETS))
    assert result.returncode == 0, result.stderr
    assert "0.482±0.042" in result.stdout  # printed for Clustered
    rows = json.loads((tmp_path / "results.json").read_text())
    error = {row["method"]: row["nmse_mean"] for row in rows if row["total"] == "paper"}
    assert error["Ideal"] < error["Unweighted"]  # by the choice of w
    assert all(0.1 < value < 1.2 for value in error.values())
    assert {row["n"] for row in rows} == {300}
    assert {row["n_test"] for row in rows} == {206}


def test_the_table_fits_a_narrow_terminal():
    from rich.console import Console

    rows = [
        {
            **dict.fromkeys(("nmse_mean", "nmse_sd", "paper_nmse_mean", "paper_nmse_sd"), 0.1234),
            "set": "cal-housing",
            "method": "Unweighted",
            "scaling": "standard",
            "m": 9500,
            "mechanism": "logistic",
            "total": total,
            "ess": 9500.0,
        }
        for total in ("paper", "sample", "population")
    ]
    console = Console(width=80, file=io.StringIO(), record=True)
    print_table(paper_table(rows, "standard"), console)
    text = console.export_text()
    assert "…" not in text
    for word in ("cal-housing", "Unweighted", "0.123±0.123", "+0.000", "100%"):
        assert word in text


def test_killed_and_taken_up_again(data_folder, tmp_path):
    options = ("--data", data_folder, "--draws", 6, "--jobs", 1, "--mechanism", "logistic")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = subprocess.Popen(
        command(*options, "-o", killed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    kept = killed / FILE_NAME
    patience = time.monotonic() + 60
    while not kept.exists() or kept.read_bytes().count(b'"case"') < 5:
        assert process.poll() is None, "it was done before it could be killed"
        assert time.monotonic() < patience
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (killed / "results.json").exists()
    made = kept.read_bytes()
    assert run(*options, "-o", killed).returncode == 0
    assert kept.read_bytes().startswith(made)
    assert run(*options, "-o", whole).returncode == 0
    assert (killed / "results.json").read_text() == (whole / "results.json").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--draws", 0], ["draws"]),
        (["--jobs", 0], ["jobs"]),
        (["--seed", -1], ["seed"]),
        (["--sets", "hosing"], ["hosing", "toy"]),
        (["--scaling", "rang"], ["rang", "range, standard"]),
        (["--total", "sum", "--total", "paper"], ["sum", "population"]),
        (["--total", "sample"], ["--total must include paper"]),
        (["--mechanism", "magic"], ["magic", "threshold"]),
        (["--reading", "mine"], ["mine", "any-size"]),
        (["--data", "nowhere"], ["nowhere"]),
    ],
)
def test_bad_invocations(data_folder, tmp_path, monkeypatch, capsys, arguments, words):
    output = tmp_path / "output"
    given = ["reproduce", "--data", data_folder, "-o", output, *arguments]
    monkeypatch.setattr(sys, "argv", ["unskew", *map(str, given)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    for word in words:
        assert word in message
    assert not output.exists()


def test_what_stands_in_the_output_folder_is_respected(data_folder, tmp_path):
    (tmp_path / "file").write_text("mine")
    options = ("--data", data_folder, "--draws", 1, "--jobs", 1, "--mechanism", "label")
    result = run(*options, "-o", tmp_path / "file")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "cannot be written" in result.stderr
    assert (tmp_path / "file").read_text() == "mine"
    assert run(*options, "-o", tmp_path / "folder").returncode == 0
    result = run(*options, "-o", tmp_path / "folder", "--seed", 5)
    assert result.returncode == 2
    assert "seed = 0, not 5" in result.stderr
    assert "Traceback" not in result.stderr
