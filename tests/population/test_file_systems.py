"""Files anywhere: file systems, layouts, files that break, and what becomes of them."""

from __future__ import annotations

import gzip
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from tests.population.small_files import fill, table, write_files

from unskew import Population, TreeWeights
from unskew.errors import InputError, InputFileError, InputTypeError, ParameterError
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import TotalWeight

pytestmark = pytest.mark.usefixtures("small_parts")


class TestFileSystems:
    def test_every_file_system_gives_the_same_rows(self, tmp_path, store):
        write_files(tmp_path / "u")
        fill(store, "/bucket/u")
        arrow_store = fs.PyFileSystem(fs.FSSpecHandler(store))
        forms = [
            Population(tmp_path / "u"),
            Population((tmp_path / "u").as_uri()),
            Population(f"{tmp_path.as_uri()}/u/*.parquet"),
            Population("u", filesystem=fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())),
            Population("/bucket/u", filesystem=arrow_store),
            Population("/bucket/u", filesystem=store),
            Population("/bucket/u/[0-2].parquet", filesystem=store),
            Population("/bucket/**/?.parquet", filesystem=store),
            Population([f"/bucket/u/{number}.parquet" for number in range(3)], filesystem=store),
        ]
        expected = forms[0].reduce(Reservoir(20, seed=3))
        for population in forms:
            answer = population.reduce(Reservoir(20, seed=3))
            assert answer.rows.to_pylist() == expected.rows.to_pylist()
            assert population.size == population.reduce(TotalWeight()).rows == 300

    def test_csv_on_an_object_store_also_compressed(self, store):
        text = pd.DataFrame(table(0).to_pandas()).to_csv(index=False).encode()
        store.pipe_file("/c/0.csv", text)
        store.pipe_file("/c/1.csv.gz", gzip.compress(text))
        assert Population("/c", filesystem=store).size == 200

    def test_patterns_stay_within_a_folder_unless_told(self, store):
        fill(store, "/g")
        fill(store, "/g/deep/er")
        assert Population("/g/*.parquet", filesystem=store).size == 300
        assert Population("/g/**/*.parquet", filesystem=store).size == 600
        assert Population("/g/*/er/[!0].parquet", filesystem=store).size == 200
        with pytest.raises(InputFileError, match="No file matches the pattern '/g/x"):
            Population("/g/x*.parquet", filesystem=store)

    def test_what_cannot_be_reached_is_named(self, tmp_path, store):
        with pytest.raises(InputError, match="URL 'nowhere://a/b' cannot be reached"):
            Population("nowhere://a/b")
        with pytest.raises(InputFileError, match="'/bucket/x.parquet' does not exist"):
            Population("/bucket/x.parquet", filesystem=store)
        with pytest.raises(ParameterError, match="must be a PyArrow or an fsspec file system"):
            Population("x.parquet", filesystem="s3")
        with pytest.raises(ParameterError, match="filesystem applies only to paths"):
            Population(np.zeros((2, 2)), filesystem=store)
        paths = write_files(tmp_path)
        with pytest.raises(InputError, match="is not on the file system of"):
            Population([paths[0], "mock:///1.parquet"])

    def test_footers_are_read_once_when_found_and_once_a_pass(self, store):
        fill(store, "/many", 40)
        population = Population("/many", filesystem=store)
        assert set(store.opened.values()) == {1}
        assert population.size == 4000
        assert set(store.opened.values()) == {1}
        population.reduce(TotalWeight())  # four row groups in each file
        assert set(store.opened.values()) == {2}

    def test_populations_on_file_systems_can_be_pickled(self, tmp_path):
        write_files(tmp_path)
        local = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        twin = pickle.loads(pickle.dumps(Population("", filesystem=local)))
        assert twin.reduce(TotalWeight()).rows == 300


class TestLayouts:
    def test_nested_folders_and_what_lies_about_in_them(self, tmp_path):
        write_files(tmp_path / "a" / "b")
        write_files(tmp_path / "c")
        (tmp_path / "_SUCCESS").write_text("")
        (tmp_path / "c" / ".0.parquet.crc").write_text("x")
        write_files(tmp_path / "_delta_log")
        assert Population(tmp_path).reduce(TotalWeight()).rows == 600

    def test_thousands_of_small_files(self, tmp_path):
        for number in range(2000):
            pq.write_table(table(2 * number, 2), tmp_path / f"{number:04d}.parquet")
        answer = Population(tmp_path).reduce(Reservoir(5000))
        assert answer.rows.column("a").to_pylist() == (np.arange(4000) * 0.5).tolist()

    @pytest.mark.parametrize("block", [1, 65_536])
    def test_a_file_with_thousands_of_row_groups(self, tmp_path, block, monkeypatch):
        monkeypatch.setattr("unskew.population.sources.parquet.BLOCK_ROWS", block)
        pq.write_table(table(0, 6000), tmp_path / "u.parquet", row_group_size=2)
        answer = Population(tmp_path / "u.parquet").reduce(Reservoir(7000))
        assert answer.rows.column("a").to_pylist() == (np.arange(6000) * 0.5).tolist()

    def test_hive_partitions(self, tmp_path):
        rows = table(0, 60).to_pandas()
        rows["year"] = np.arange(60) % 3 + 2000
        rows["land"] = np.array(["D E", "F=R", None], dtype=object)[np.arange(60) // 20]
        ds.write_dataset(
            pa.Table.from_pandas(rows, preserve_index=False),
            tmp_path,
            format="parquet",
            partitioning=["year", "land"],
            partitioning_flavor="hive",
        )
        population = Population(tmp_path)
        assert population.columns == ["a", "town", "year", "land"]
        found = population.reduce(Reservoir(100)).rows.to_pandas().sort_values("a")
        assert found["year"].tolist() == rows["year"].tolist()
        assert found["land"].fillna("").tolist() == rows["land"].fillna("").tolist()
        labels = np.arange(60.0)
        expected = TreeWeights(min_samples_leaf=2).fit(rows, labels, population=rows)
        weighter = TreeWeights(min_samples_leaf=2).fit(rows, labels, population=tmp_path)
        assert np.array_equal(weighter.population_counts_, expected.population_counts_)
        by_arrow = ds.dataset(tmp_path, partitioning="hive")
        weighter = TreeWeights(min_samples_leaf=2).fit(rows, labels, population=by_arrow)
        assert np.array_equal(weighter.population_counts_, expected.population_counts_)

    def test_hive_columns_alone_and_columns_that_files_hold_themselves(self, tmp_path):
        write_files(tmp_path / "a" / "year=2024")
        chosen = Population(tmp_path / "a", columns=["year"]).reduce(Reservoir(1000))
        assert set(chosen.rows.column("year").to_pylist()) == {2024}
        (tmp_path / "b" / "a=7").mkdir(parents=True)
        pq.write_table(table(0), tmp_path / "b" / "a=7" / "0.parquet")
        own = Population(tmp_path / "b").reduce(Reservoir(1000)).rows
        assert own.column("a").to_pylist() == table(0).column("a").to_pylist()

    def test_folders_that_name_different_columns(self, tmp_path):
        write_files(tmp_path / "year=2024")
        write_files(tmp_path / "land=DE")
        with pytest.raises(InputError, match=r"year=2024/0.parquet' is in folders that define"):
            Population(tmp_path)

    def test_mixed_schemas_name_the_file(self, tmp_path):
        write_files(tmp_path)
        pq.write_table(table(0).drop_columns("town"), tmp_path / "9.parquet")
        with pytest.raises(InputError, match="9.parquet' lacks column 'town'"):
            Population(tmp_path)
        pq.write_table(table(0).set_column(0, "a", [["x"] * 100]), tmp_path / "9.parquet")
        with pytest.raises(InputTypeError, match="'a' is of type double .*9.parquet'"):
            Population(tmp_path)
        pq.write_table(table(0).append_column("b", [[1] * 100]), tmp_path / "9.parquet")
        with pytest.raises(InputError, match="9.parquet' has column 'b'"):
            Population(tmp_path)

    def test_a_folder_of_both_formats(self, tmp_path):
        write_files(tmp_path)
        (tmp_path / "9.csv").write_text("a,town\n1,x\n")
        with pytest.raises(InputError, match="folder '.*' mixes Parquet and CSV files"):
            Population(tmp_path)

    def test_csv_in_folders_that_name_columns(self, tmp_path):
        for land in ("DE", "FR"):
            (tmp_path / f"land={land}").mkdir()
            (tmp_path / f"land={land}" / "0.csv").write_text("a,town\n1,x\n")
        with pytest.raises(InputError, match="land=DE/0.csv' is in a folder that defines the colu"):
            Population(tmp_path)
        assert Population(f"{tmp_path}/*/0.csv").columns == ["a", "town"]
        for land in ("DE", "FR"):
            (tmp_path / f"land={land}" / "0.csv").write_text("a,land\n1,x\n")
        assert Population(tmp_path).columns == ["a", "land"]

    def test_a_file_named_twice(self, tmp_path, store, monkeypatch):
        paths = write_files(tmp_path)
        for again in (paths[1], f"{tmp_path}/../{tmp_path.name}/1.parquet"):
            with pytest.raises(InputError, match="1.parquet' is matched twice"):
                Population([f"{tmp_path}/*.parquet", again])
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match="0.parquet' is matched twice"):
            Population([paths[0], "0.parquet"])
        fill(store, "/u")
        with pytest.raises(InputError, match="u/0.parquet' is matched twice"):
            Population(["/u/0.parquet", "/u/*.parquet"], filesystem=store)
