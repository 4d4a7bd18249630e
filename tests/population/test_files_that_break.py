"""Files anywhere: file systems, layouts, files that break, and what becomes of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.population.small_files import fill, table, write_files

from unskew import Population
from unskew.errors import (
    InputError,
    InputFileError,
    InputTypeError,
    ParameterError,
    UnreadableFileError,
)
from unskew.population.summaries import TotalWeight
from unskew.results import Summary

pytestmark = pytest.mark.usefixtures("small_parts")


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

    @pytest.mark.parametrize("threads", [1, 2])
    def test_a_half_read_file_is_an_error(self, tmp_path, threads):
        paths = write_files(tmp_path, 4, row_group_size=10)
        content = bytearray((tmp_path / "1.parquet").read_bytes())
        start = pq.ParquetFile(paths[1]).metadata.row_group(6).column(0).data_page_offset
        content[start : start + 40] = b"\xff" * 40  # the seventh row group of ten
        (tmp_path / "1.parquet").write_bytes(bytes(content))
        with pytest.raises(UnreadableFileError, match=r"1.parquet' could not be read as Parquet"):
            Population(tmp_path).reduce(Meddling(None), threads=threads)

    def test_found_unreadable_at_once(self, tmp_path):
        write_files(tmp_path)
        truncate(tmp_path / "0.parquet")
        with pytest.raises(UnreadableFileError, match="0.parquet' could not be read as Parquet"):
            Population(tmp_path)

    def test_named_and_not_there(self, tmp_path):
        paths = [*write_files(tmp_path), str(tmp_path / "gone.parquet")]
        with pytest.raises(InputFileError, match="gone.parquet' does not exist"):
            Population(paths)

    def test_csv_that_breaks_off(self, tmp_path):
        good = "a,town\n" + "1,x\n" * 10
        (tmp_path / "0.csv").write_text(good)
        (tmp_path / "1.csv").write_text("a,town\n" + "1,x\n" * 1_500_000 + "2\n")
        (tmp_path / "2.csv").write_text(good)
        with pytest.raises(UnreadableFileError, match="1.csv' could not be read as CSV"):
            Population(tmp_path).reduce(TotalWeight())

    def test_datasets(self, tmp_path):
        dataset = ds.dataset(write_files(tmp_path))
        (tmp_path / "1.parquet").unlink()
        with pytest.raises(UnreadableFileError, match="1.parquet"):
            Population(dataset).reduce(TotalWeight())

    def test_other_types_in_a_dataset(self, tmp_path):
        paths = write_files(tmp_path)
        other = table(0).set_column(0, "a", pa.array(["x"] * 100))
        pq.write_table(other, tmp_path / "1.parquet")
        words = "'a' is of type double in the dataset and string in '.*1.parq"
        with pytest.raises(InputTypeError, match=words):
            Population(ds.dataset(paths)).reduce(TotalWeight())

    def test_bad_values_in_csv(self, tmp_path):
        (tmp_path / "0.csv").write_text("a,town\n1,x\n2,y\n")
        (tmp_path / "1.csv").write_text("a,town\n1,x\nold,y\n")
        with pytest.raises(InputError, match=r"1.csv'.*in column 'a':.*'old'") as caught:
            Population(tmp_path).reduce(TotalWeight())
        assert not isinstance(caught.value, UnreadableFileError)

    def test_skipping_files_was_removed(self, tmp_path):
        write_files(tmp_path)
        with pytest.raises(ParameterError, match="on_error was removed. List the files"):
            Population(tmp_path, on_error="skip")


def test_an_object_that_disappears_from_the_store(store):
    fill(store, "/gone")
    population = Population("/gone", filesystem=store)
    store.rm("/gone/2.parquet")
    with pytest.raises(UnreadableFileError, match="gone/2.parquet"):
        population.reduce(TotalWeight())
