from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from unskew import TreeWeights, diagnose
from unskew.cli.demonstration import auto_weights, demonstrate, summarise


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "unskew.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_the_demonstration_prints_its_table_and_writes_whole_weights(tmp_path):
    output = tmp_path / "weights.parquet"
    result = run("demo", "--draws", "3", "-o", str(output))
    assert result.returncode == 0, result.stderr
    for word in (
        "unweighted",
        "ideal",
        "tree",
        "auto",
        "simulated",
        "made up",
        "effective",
        "cover",
    ):
        assert word in result.stdout
    table = pq.read_table(output)
    weights = table["weight"].to_numpy()
    assert weights.sum() == pytest.approx(table.num_rows)
    assert (weights > 0).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["weights.html", "weights.parquet"]
    page = (tmp_path / "weights.html").read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
    assert "weights.html" in result.stdout
    assert "body_mass_index" in page


def test_without_a_place_its_files_go_to_a_new_temporary_folder(tmp_path):
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    result = run("demo", "--draws", "1", cwd=here, env=environment)
    assert result.returncode == 0, result.stderr
    assert list(here.iterdir()) == []
    (folder,) = temporary.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["weights.html", "weights.parquet"]
    for path in folder.iterdir():
        assert str(path) in result.stdout
    result = run("demo", "--report", str(here / "no" / "r.html"), cwd=here, env=environment)
    assert result.returncode == 2
    assert list(temporary.iterdir()) == [folder]


def test_its_data_can_be_weighed(unskew, tmp_path):
    arguments = ("-o", tmp_path / "w.parquet", "--data", tmp_path / "clinic")
    result = unskew("demo", "--draws", 3, *arguments, "--report", tmp_path / "r.html")
    assert result.code == 0, result.err
    assert {path.name for path in tmp_path.iterdir()} == {"w.parquet", "clinic", "r.html"}
    sample, population = (tmp_path / "clinic" / n for n in ("sample.csv", "population.parquet"))
    again = tmp_path / "again.parquet"
    result = unskew("weigh", sample, population, "--target", "cost", "-o", again)
    assert result.code == 0, result.err
    weights = [pq.read_table(path)["weight"] for path in (again, tmp_path / "w.parquet")]
    np.testing.assert_allclose(*weights, rtol=1e-6)  # the fit is iterative


def test_it_is_repeatable():
    first, second = (list(demonstrate(2)) for _ in range(2))
    assert [draw.errors for draw in first] == [draw.errors for draw in second]


def test_it_is_no_lucky_seed():
    for seed in (11, 12):
        outcomes = {o.method: o for o in summarise(list(demonstrate(12, seed=seed)))}
        for method in ("ideal", "tree", "auto"):
            mean, margin = outcomes[method].change
            assert mean + margin < 0
            assert outcomes[method].better >= 9
        assert outcomes["tree"].effective > outcomes["ideal"].effective


def test_a_draw_is_what_it_says():
    draw = next(demonstrate(1))
    assert len(draw.sample) == len(draw.labels) == len(draw.weights["tree"])
    assert np.ptp(draw.weights["unweighted"]) == 0
    assert draw.covered < 0.95  # its first sample does not reach the population


def test_the_verdict_on_the_automatic_weights_is_good_where_the_sample_reaches_the_population():
    reached = [draw for draw in demonstrate(4) if draw.covered >= 0.95]
    assert len(reached) == 2
    for draw in reached:
        tree = TreeWeights(overlap="ignore").fit(
            draw.sample, draw.labels, population=draw.population
        )
        auto = auto_weights().fit(draw.sample, population=draw.population)
        assert diagnose(draw.sample, draw.population, tree, y=draw.labels).bias_left
        assert not diagnose(draw.sample, draw.population, auto).bias_left


def test_draws_made_in_two_processes_are_the_same():
    alone, together = (list(demonstrate(2, jobs=jobs)) for jobs in (1, 2))
    for first, second in zip(alone, together, strict=True):
        assert first.errors == pytest.approx(second.errors, rel=1e-9)


def test_a_bad_path_is_one_line_and_leaves_nothing(tmp_path):
    result = run("demo", "-o", str(tmp_path / "nowhere" / "w.parquet"))
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "nowhere" in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_is_a_folder(tmp_path):
    result = run("demo", "--draws", "1", "-o", str(tmp_path))
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["demo", "--draws", "0"], ["demo", "--dras"], ["dmeo"]])
def test_bad_invocations(arguments):
    result = run(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_help_and_version():
    assert "demo" in run("--help").stdout
    assert run("--version").stdout.startswith("unskew 0.")


def test_one_draw_a_large_seed_and_a_name_with_brackets(unskew, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = "[red]w.parquet"
    result = unskew("demo", "--draws", 1, "--seed", 2**32 - 1, "-o", output)
    assert result.code == 0, result.err
    assert "nan" not in result.out
    assert output in result.out.replace("\n", "")
    assert unskew("demo", "--seed", 2**33).code == 2


def test_a_reader_that_stops_listening_still_gets_its_file(tmp_path):
    command = f"{sys.executable} -m unskew.cli demo --draws 1 -o w.parquet | head -1"
    result = subprocess.run(
        command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in result.stderr
    assert (tmp_path / "w.parquet").exists()
