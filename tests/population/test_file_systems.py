"""Files anywhere: file systems, layouts, files that break, and what becomes of them."""

from __future__ import annotations

import gzip
import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from pyarrow import fs

from unskew import (
    InputError,
    InputFileError,
    InputTypeError,
    ParameterError,
    Population,
    SkippedFilesWarning,
    Summary,
    TreeWeights,
    UnreadableFileError,
)
from unskew.population import Reservoir, Total
from unskew.population.summaries import Summaries


def table(start: int, rows: int = 100) -> pa.Table:
    numbers = np.arange(start, start + rows)
    return pa.table({"a": numbers * 0.5, "town": [f"t{number % 7}" for number in numbers]})


def write_files(folder, n_files: int = 3, *, row_group_size: int = 30) -> list[str]:
    folder.mkdir(exist_ok=True, parents=True)
    paths = [folder / f"{number}.parquet" for number in range(n_files)]
    for number, path in enumerate(paths):
        pq.write_table(table(100 * number), path, row_group_size=row_group_size)
    return [str(path) for path in paths]


class CountingStore(MemoryFileSystem):
    """An object store in memory that counts how often each object is opened."""

    protocol = "counting"
    store: dict = {}  # noqa: RUF012  (fsspec's own way)
    pseudo_dirs = [""]  # noqa: RUF012
    opened: Counter = Counter()  # noqa: RUF012

    def _open(self, path, mode="rb", **options):
        if mode == "rb":
            self.opened[path] += 1
        return super()._open(path, mode, **options)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Keep the small row groups of these tests apart."""
    monkeypatch.setattr("unskew.population.sources.parquet.BLOCK_ROWS", 20)


@pytest.fixture
def store():
    CountingStore.store.clear()
    CountingStore.opened.clear()
    return CountingStore(skip_instance_cache=True)


def fill(store, folder: str, n_files: int = 3) -> None:
    for number in range(n_files):
        with store.open(f"{folder}/{number}.parquet", "wb") as file:
            pq.write_table(table(100 * number), file, row_group_size=30)


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
            assert population.size == population.reduce(Total()).rows == 300

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
        population.reduce(Total())  # four row groups in each file
        assert set(store.opened.values()) == {2}

    def test_populations_on_file_systems_can_be_pickled(self, tmp_path):
        write_files(tmp_path)
        local = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        twin = pickle.loads(pickle.dumps(Population("", filesystem=local)))
        assert twin.reduce(Total()).rows == 300


class TestLayouts:
    def test_nested_folders_and_what_lies_about_in_them(self, tmp_path):
        write_files(tmp_path / "a" / "b")
        write_files(tmp_path / "c")
        (tmp_path / "_SUCCESS").write_text("")
        (tmp_path / "c" / ".0.parquet.crc").write_text("x")
        write_files(tmp_path / "_delta_log")
        assert Population(tmp_path).reduce(Total()).rows == 600

    def test_thousands_of_small_files(self, tmp_path):
        for number in range(2000):
            pq.write_table(table(2 * number, 2), tmp_path / f"{number:04d}.parquet")
        answer = Population(tmp_path).reduce(Meddling(None))
        assert answer.values == (np.arange(4000) * 0.5).tolist()

    @pytest.mark.parametrize("block", [1, 65_536])
    def test_a_file_with_thousands_of_row_groups(self, tmp_path, block, monkeypatch):
        monkeypatch.setattr("unskew.population.sources.parquet.BLOCK_ROWS", block)
        pq.write_table(table(0, 6000), tmp_path / "u.parquet", row_group_size=2)
        answer = Population(tmp_path / "u.parquet").reduce(Meddling(None))
        assert answer.values == (np.arange(6000) * 0.5).tolist()

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

    @pytest.mark.parametrize("on_error", ["raise", "skip"])
    def test_mixed_schemas_name_the_file(self, tmp_path, on_error):
        write_files(tmp_path)
        pq.write_table(table(0).drop_columns("town"), tmp_path / "9.parquet")
        with pytest.raises(InputError, match="9.parquet' lacks column 'town'"):
            Population(tmp_path, on_error=on_error)
        pq.write_table(table(0).set_column(0, "a", [["x"] * 100]), tmp_path / "9.parquet")
        with pytest.raises(InputTypeError, match="'a' is of type double .*9.parquet'"):
            Population(tmp_path, on_error=on_error)
        pq.write_table(table(0).append_column("b", [[1] * 100]), tmp_path / "9.parquet")
        with pytest.raises(InputError, match="9.parquet' has column 'b'"):
            Population(tmp_path, on_error=on_error)

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


class Meddling(Summary):
    """Counts, and meddles with the files once the first rows have come."""

    shared = frozenset({"meddle"})

    def __init__(self, meddle) -> None:
        self.meddle = meddle
        self.rows = 0
        self.values: list[float] = []

    def update(self, rows):
        if self.meddle is not None:
            self.meddle()
        self.rows += len(rows)
        self.values += rows.batch.column("a").to_pylist()

    def merge(self, other):
        self.rows += other.rows
        self.values += other.values


def truncate(path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def replace_by_shorter(path) -> None:
    pq.write_table(table(0, 10), path)


MEDDLING = {
    "disappears": lambda path: path.unlink(missing_ok=True),
    "truncated": truncate,
    "replaced": replace_by_shorter,
}


class TestFilesThatBreak:
    @pytest.mark.parametrize("what", MEDDLING)
    @pytest.mark.parametrize("victim", [1, 2])
    def test_while_the_population_is_read(self, tmp_path, what, victim):
        write_files(tmp_path)
        path = tmp_path / f"{victim}.parquet"
        summary = Meddling(lambda: MEDDLING[what](path) if path.exists() else None)
        with pytest.raises(UnreadableFileError, match=f"{victim}.parquet'") as caught:
            Population(tmp_path).reduce(summary, threads=1)
        assert isinstance(caught.value, InputError)
        assert isinstance(caught.value, OSError)

    @pytest.mark.parametrize("what", MEDDLING)
    @pytest.mark.parametrize("threads", [1, 2])
    def test_skipped_whole_and_told_of(self, tmp_path, what, threads):
        write_files(tmp_path, 6)
        path = tmp_path / "5.parquet"
        population = Population(tmp_path, on_error="skip")
        with pytest.warns(SkippedFilesWarning, match="1 of the population's 6 files") as told:
            answer = population.reduce(
                Meddling(lambda: MEDDLING[what](path) if path.exists() else None), threads=threads
            )
        assert list(told[0].message.files) == [str(path)]
        assert list(population.skipped_files) == [str(path)]
        assert answer.rows == population.size == population.mass == 500
        assert answer.values == (np.arange(500) * 0.5).tolist()

    @pytest.mark.parametrize("threads", [1, 2])
    def test_no_row_of_a_half_read_file_counts(self, tmp_path, threads):
        paths = write_files(tmp_path, 4, row_group_size=10)
        content = bytearray((tmp_path / "1.parquet").read_bytes())
        start = pq.ParquetFile(paths[1]).metadata.row_group(6).column(0).data_page_offset
        content[start : start + 40] = b"\xff" * 40  # the seventh row group of ten
        (tmp_path / "1.parquet").write_bytes(bytes(content))
        with pytest.raises(UnreadableFileError, match=r"1.parquet' could not be read as Parquet"):
            Population(tmp_path).reduce(Meddling(None), threads=threads)
        population = Population(tmp_path, on_error="skip")
        with pytest.warns(SkippedFilesWarning, match="1.parquet"):
            answer = population.reduce(Meddling(None), threads=threads)
        kept = [*range(100), *range(200, 400)]
        assert answer.values == (np.array(kept) * 0.5).tolist()
        assert population.size == 300

    @pytest.mark.parametrize("threads", [1, 3])
    def test_rows_that_are_left_out_take_no_other_rows_place(self, tmp_path, threads):
        pq.write_table(table(0, 2000), tmp_path / "0.parquet", row_group_size=100)
        pq.write_table(table(2000, 60), tmp_path / "1.parquet")
        content = bytearray((tmp_path / "0.parquet").read_bytes())
        last = pq.ParquetFile(tmp_path / "0.parquet").metadata.row_group(19)
        start = last.column(0).data_page_offset
        content[start : start + 40] = b"\xff" * 40
        (tmp_path / "0.parquet").write_bytes(bytes(content))
        population = Population(tmp_path, on_error="skip")
        with pytest.warns(SkippedFilesWarning, match="0.parquet"):
            kept = population.reduce(Summaries([Total(), Reservoir(50)]), threads=threads).parts[1]
        # All 50 come of the 60 rows that are left.
        assert len(kept.numbers) == 50
        assert kept.numbers.min() >= 2000

    def test_the_skipped_leave_the_bits_of_the_rest_alone(self, tmp_path):
        random = np.random.default_rng(0)
        for number in range(5):
            rows = pa.table({"a": random.normal(size=1000), "w": random.uniform(size=1000)})
            pq.write_table(rows, tmp_path / f"{number}.parquet", row_group_size=100)
        without = [str(tmp_path / f"{number}.parquet") for number in (0, 1, 3, 4)]
        expected = Population(without, weight="w").reduce(Total())
        (tmp_path / "2.parquet").write_bytes(b"PAR1 and nothing more")
        with pytest.warns(SkippedFilesWarning):
            population = Population(tmp_path, weight="w", on_error="skip")
        assert population.reduce(Total()).mass == expected.mass == population.mass

    def test_found_unreadable_at_once(self, tmp_path):
        write_files(tmp_path)
        truncate(tmp_path / "0.parquet")
        with pytest.raises(UnreadableFileError, match="0.parquet' could not be read as Parquet"):
            Population(tmp_path)
        with pytest.warns(SkippedFilesWarning, match="1 of the population's 3 files"):
            population = Population(tmp_path, on_error="skip")
        assert population.size == 200
        assert list(population.skipped_files) == [str(tmp_path / "0.parquet")]

    def test_named_and_not_there(self, tmp_path):
        paths = [*write_files(tmp_path), str(tmp_path / "gone.parquet")]
        with pytest.raises(InputFileError, match="gone.parquet' does not exist"):
            Population(paths)
        with pytest.warns(SkippedFilesWarning, match="1 of the population's 4 files .*gone"):
            population = Population(paths, on_error="skip")
        assert population.size == 300
        with pytest.raises(InputFileError, match="gone.parquet' does not exist"):
            Population(paths[3:], on_error="skip")

    def test_csv_that_breaks_off(self, tmp_path):
        good = "a,town\n" + "1,x\n" * 10
        (tmp_path / "0.csv").write_text(good)
        (tmp_path / "1.csv").write_text("a,town\n" + "1,x\n" * 1_500_000 + "2\n")
        (tmp_path / "2.csv").write_text(good)
        with pytest.raises(UnreadableFileError, match="1.csv' could not be read as CSV"):
            Population(tmp_path).reduce(Total())
        population = Population(tmp_path, on_error="skip")
        with pytest.warns(SkippedFilesWarning, match="1.csv"):
            assert population.reduce(Total()).rows == 20

    def test_when_nothing_is_left_it_is_an_error(self, tmp_path):
        truncated = write_files(tmp_path, 2)
        population = Population(tmp_path, on_error="skip")
        for path in truncated:
            truncate(tmp_path / path)
        with (
            pytest.warns(SkippedFilesWarning, match="2 of the population's 2 files"),
            pytest.raises(InputError, match="no rows"),
        ):
            population.reduce(Total())
        with pytest.raises(InputError, match="None of the population's files could be read"):
            Population(tmp_path, on_error="skip")

    def test_datasets_skip_too(self, tmp_path):
        paths = write_files(tmp_path)
        dataset = ds.dataset(paths)
        (tmp_path / "1.parquet").unlink()
        with pytest.raises(UnreadableFileError, match="1.parquet"):
            Population(dataset).reduce(Total())
        with pytest.warns(SkippedFilesWarning, match="1.parquet"):
            assert Population(dataset, on_error="skip").reduce(Total()).rows == 200

    @pytest.mark.parametrize("on_error", ["raise", "skip"])
    def test_other_types_in_a_dataset_are_not_skipped(self, tmp_path, on_error):
        paths = write_files(tmp_path)
        for column, words in (
            (pa.array(["x"] * 100), "'a' is of type double in the dataset and string in '.*1.parq"),
            (pa.array([2**60 + 1] * 100), "Column 'a' of '.*1.parquet' cannot be converted"),
        ):
            pq.write_table(table(0).set_column(0, "a", column), tmp_path / "1.parquet")
            population = Population(ds.dataset(paths), on_error=on_error)
            with pytest.raises(InputTypeError, match=words):
                population.reduce(Total())

    @pytest.mark.parametrize("on_error", ["raise", "skip"])
    def test_bad_values_in_csv_are_not_skipped(self, tmp_path, on_error):
        (tmp_path / "0.csv").write_text("a,town\n1,x\n2,y\n")
        (tmp_path / "1.csv").write_text("a,town\n1,x\nold,y\n")
        population = Population(tmp_path, on_error=on_error)
        with pytest.raises(InputError, match=r"1.csv'.*in column 'a':.*'old'") as caught:
            population.reduce(Total())
        assert not isinstance(caught.value, UnreadableFileError)

    def test_bad_values_are_not_skipped(self, tmp_path):
        write_files(tmp_path)
        pq.write_table(
            table(0).set_column(0, "a", pa.array([np.inf] * 100)), tmp_path / "1.parquet"
        )
        sample = table(0).to_pandas()
        with pytest.raises(InputError, match="Column 'a' of the population holds inf"):
            TreeWeights().fit(
                sample, np.arange(100.0), population=Population(tmp_path, on_error="skip")
            )

    def test_what_cannot_be_skipped_is_refused(self, tmp_path):
        write_files(tmp_path)
        with pytest.raises(ParameterError, match="on_error must be 'raise' or 'skip'; got 'drop'"):
            Population(tmp_path, on_error="drop")
        with pytest.raises(ParameterError, match="populations in files"):
            Population(np.zeros((2, 2)), on_error="skip")
        with pytest.raises(ParameterError, match="weight is one entry per row"):
            Population(tmp_path, on_error="skip", weight=np.ones(300))

    def test_nothing_is_said_where_nothing_is_skipped(self, tmp_path):
        write_files(tmp_path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            population = Population(tmp_path, on_error="skip")
            assert population.reduce(Total()).rows == 300
        assert population.skipped_files == {}


def test_an_object_that_disappears_from_the_store(store):
    fill(store, "/gone")
    population = Population("/gone", filesystem=store, on_error="skip")
    store.rm("/gone/1.parquet")
    with pytest.warns(SkippedFilesWarning, match="gone/1.parquet"):
        assert population.reduce(Total()).rows == 200
    population = Population("/gone", filesystem=store)
    store.rm("/gone/2.parquet")
    with pytest.raises(UnreadableFileError, match="gone/2.parquet"):
        population.reduce(Total())
