from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from unskew.errors import InputError, InputFileError, ParameterError
from unskew.paper.datasets import FOLDER_VARIABLE, PAPER_SETS, available_sets, load
from unskew.paper.printed import TABLE_1

DATASETS = Path(__file__).resolve().parents[3] / "shared" / "datasets"


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)


def test_the_papers_sets_and_its_table_have_the_same_names():
    assert set(PAPER_SETS) == set(TABLE_1)
    assert len(PAPER_SETS) == 9
    assert available_sets() == sorted(PAPER_SETS, key=str.lower)


@pytest.mark.skipif(not DATASETS.exists(), reason="the paper's data sets are not beside the repo")
@pytest.mark.parametrize("name", PAPER_SETS)
def test_each_set_is_the_papers(name):
    data = load(name, DATASETS)
    columns = PAPER_SETS[name].columns + (
        2 if name == "abalone" else 0
    )  # Sex becomes three columns
    assert data.X.shape == (PAPER_SETS[name].rows, columns)
    assert data.n == TABLE_1[name].n
    # The paper's sizes make one row more than bank32nh has.
    assert data.n_test == TABLE_1[name].n_test - (name == "bank32nh")


@pytest.mark.skipif(not DATASETS.exists(), reason="the paper's data sets are not beside the repo")
def test_names_are_known_however_they_are_spelt(monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(DATASETS))
    assert load("CPU_small").name == load("cpu-small").name == "cpu-small"


def test_a_set_of_ones_own(data_folder, made_up):
    assert available_sets(data_folder) == ["toy"]
    data = load("toy", data_folder)
    assert data.X.shape == (160, 2)
    assert (data.n, data.n_test) == (88, 72)
    assert np.array_equal(data.y, made_up()["y"])


def test_nominal_columns_become_indicators(tmp_path, write_set):
    write_set(
        tmp_path, "mixed", {"sex": ["M", "F", "I", "M"], "on": [True, False] * 2, "y": [1] * 4}
    )
    expected = [[0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    assert load("mixed", tmp_path).X.tolist() == expected


def test_the_target_may_stand_anywhere(tmp_path, write_set):
    write_set(tmp_path, "first", {"y": [1.0, 2.0], "x": [3.0, 4.0]}, target="y")
    data = load("first", tmp_path)
    assert data.y.tolist() == [1.0, 2.0]
    assert data.X.tolist() == [[3.0], [4.0]]


def test_the_fingerprint_follows_every_value(data_folder, tmp_path, write_set, made_up):
    changed = made_up()
    changed["a"] = changed["a"].copy()
    changed["a"][7] += 1e-9
    write_set(tmp_path / "other", "toy", changed)
    first, same, other = (
        load("toy", data_folder),
        load("toy", data_folder),
        load("toy", tmp_path / "other"),
    )
    assert first.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("columns", "description", "message"),
    [
        ({"x": [1.0, None], "y": [1.0, 2.0]}, {}, "Column 'x' .* missing"),
        ({"x": [1.0, np.inf], "y": [1.0, 2.0]}, {}, "finite"),
        ({"x": [1.0, 2.0], "y": [1.0, None]}, {}, "target of bad"),
        ({"x": [1.0, 2.0], "y": ["a", "b"]}, {}, "target of bad"),
        ({"y": [1.0, 2.0]}, {}, "feature columns"),
        ({"x": [1.0], "y": [1.0]}, {"rows": 2}, "1 rows; datasets.json expects 2"),
        ({"x": [1.0], "y": [1.0]}, {"features": 2}, "1 features; datasets.json expects 2"),
        ({"x": [1.0], "y": [1.0]}, {"target": "z"}, "no column 'z'"),
        ({"x": [1.0], "y": [1.0]}, {"sha256": "0"}, "sha256 differs"),
        ({"x": [1.0], "y": [1.0]}, {"file": "nowhere.parquet"}, "nowhere.parquet' cannot be read"),
    ],
)
def test_bad_files(tmp_path, columns, description, message, write_set):
    write_set(tmp_path, "bad", columns, **description)
    with pytest.raises(InputError, match=message):
        load("bad", tmp_path)


def test_other_data_under_a_papers_name(tmp_path, write_set, made_up):
    write_set(tmp_path, "housing", made_up(506))
    with pytest.raises(InputError, match="not the paper's housing: feature columns 2, expected 13"):
        load("housing", tmp_path)


@pytest.mark.skipif(not DATASETS.exists(), reason="the paper's data sets are not beside the repo")
def test_a_changed_target_is_noticed(tmp_path, write_set):
    import pyarrow.parquet as pq

    table = pq.read_table(DATASETS / "housing.parquet").to_pandas()
    table.loc[5, "MEDV"] += 1
    write_set(tmp_path, "housing", {name: table[name].to_numpy() for name in table})
    with pytest.raises(InputError, match="not the paper's housing: target mean"):
        load("housing", tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"datasets": [{}]}', '{"datasets": 3}', "{", '"x"'])
def test_a_bad_index(tmp_path, text):
    (tmp_path / "datasets.json").write_text(text)
    with pytest.raises(InputError, match="must be JSON with a list 'datasets'"):
        load("housing", tmp_path)


def test_a_file_that_is_no_parquet(data_folder):
    (data_folder / "toy.parquet").write_text("a,b,y")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        load("toy", data_folder)


def test_folders_that_are_not_there(tmp_path, monkeypatch):
    with pytest.raises(InputFileError, match="nowhere' does not exist"):
        load("housing", tmp_path / "nowhere")
    with pytest.raises(InputFileError, match="has no datasets.json"):
        load("housing", tmp_path)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(InputFileError, match=f"nowhere' \\({FOLDER_VARIABLE}\\)"):
        load("housing")


def test_unknown_sets(data_folder):
    with pytest.raises(ParameterError, match="Unknown data set 'hosing'. Choose from abalone, "):
        load("hosing")
    with pytest.raises(ParameterError, match="has no data set 'housing'. Choose from toy"):
        load("housing", data_folder)


def openml(monkeypatch, fetch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)


def test_without_a_folder_and_without_openml_both_ways_are_told(monkeypatch):
    def fetch(**_):
        raise OSError("no route to host")

    openml(monkeypatch, fetch)
    with pytest.raises(InputError, match="no route to host") as caught:
        load("kin8nm")
    assert "--data" in str(caught.value)
    assert FOLDER_VARIABLE in str(caught.value)
    assert "OpenML" in str(caught.value)


@pytest.mark.skipif(not DATASETS.exists(), reason="the paper's data sets are not beside the repo")
def test_openmls_housing_with_its_categories_is_the_same(monkeypatch):
    frame = pd.read_parquet(DATASETS / "housing.parquet")
    features = frame.drop(columns="MEDV")
    for name in ("CHAS", "RAD"):  # OpenML calls these nominal
        features[name] = features[name].astype(int).astype(str).astype("category")
    asked = []

    def fetch(**arguments):
        asked.append(arguments["data_id"])
        return SimpleNamespace(data=features, target=frame["MEDV"])

    openml(monkeypatch, fetch)
    ours, theirs = load("housing", DATASETS), load("housing")
    assert asked == [531]
    assert np.array_equal(ours.X, theirs.X)
    assert theirs.source == "OpenML 531"
    assert ours.fingerprint == theirs.fingerprint


def test_what_openml_gives_is_checked(monkeypatch, made_up):
    columns = made_up(506)
    frame = pd.DataFrame({"a": columns["a"]})
    target = pd.Series(columns["y"], name="y")
    openml(monkeypatch, lambda **_: SimpleNamespace(data=frame, target=target))
    with pytest.raises(InputError, match="'OpenML 531' is not the paper's housing: feat"):
        load("housing")


@pytest.mark.skipif(not DATASETS.exists(), reason="the paper's data sets are not beside the repo")
def test_the_folders_own_statistics_are_those_that_are_checked():
    entries = json.loads((DATASETS / "datasets.json").read_text())["datasets"]
    for entry in entries:
        known, stats = PAPER_SETS[entry["paper_name"]], entry["target_stats"]
        assert known.openml in entry["openml_ids"]
        assert (known.rows, known.columns) == (entry["rows"], entry["features"])
        assert known[3:] == (stats["mean"], stats["std"], stats["min"], stats["max"])
