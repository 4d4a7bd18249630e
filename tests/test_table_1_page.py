"""The page on Table 1 is what the committed results make of it."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs" / "table_1.py").exists(), reason="runs in the repository only"
)


@pytest.fixture
def generator(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    yield importlib.import_module("docs.table_1")
    sys.modules.pop("docs.table_1")


def test_the_page_is_up_to_date(generator):
    assert generator.page() == generator.PAGE.read_text(encoding="utf-8")


def test_the_committed_results_are_a_full_run(generator):
    rows = json.loads((generator.RESULTS / "results.json").read_text())
    ranged = [r for r in rows if (r["scaling"], r["mechanism"]) == ("range", "logistic")]
    assert len(ranged) == 9 * 3 * 4
    assert {row["mechanism"] for row in rows} == {"logistic", "quadratic", "threshold", "label"}
    assert {row["scaling"] for row in rows} == {"range", "standard"}
    assert all(row["draws"] >= 30 for row in rows)


def test_results_of_two_folders_are_put_together(generator, tmp_path, monkeypatch):
    run = {"settings": {"seed": 0}, "calls": [1], "seconds": {"a": 1.0}, "warnings": {}}
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "figure.png").write_text(name)
        contents = {"results": [name], "differences": [], "averages": [name], "run": run}
        for key, value in contents.items():
            (folder / f"{key}.json").write_text(json.dumps(value))
    monkeypatch.setattr(generator, "RESULTS", tmp_path / "docs")
    generator.take_over([tmp_path / "first", tmp_path / "second"])
    taken = {
        key: json.loads((tmp_path / "docs" / f"{key}.json").read_text())
        for key in ("results", "averages", "run")
    }
    assert taken["results"] == taken["averages"] == ["first", "second"]
    assert taken["run"] == {**run, "calls": [1, 1], "seconds": {"a": 2.0}}
    assert (tmp_path / "docs" / "figure.png").read_text() == "first"
