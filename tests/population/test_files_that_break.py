"""Files anywhere: file systems, layouts, files that break, and what becomes of them."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.population.small_files import fill, table, write_files

from unskew import Population, TreeWeights
from unskew.errors import (
    InputError,
    InputFileError,
    InputTypeError,
    ParameterError,
    SkippedFilesWarning,
    UnreadableFileError,
)
from unskew.population import Reservoir, TotalWeight
from unskew.population.summaries import Summaries
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
            kept = population.reduce(
                Summaries([TotalWeight(), Reservoir(50)]), threads=threads
            ).parts[1]
        # All 50 come of the 60 rows that are left.
        assert len(kept.numbers) == 50
        assert kept.numbers.min() >= 2000

    def test_the_skipped_leave_the_bits_of_the_rest_alone(self, tmp_path):
        random = np.random.default_rng(0)
        for number in range(5):
            rows = pa.table({"a": random.normal(size=1000), "w": random.uniform(size=1000)})
            pq.write_table(rows, tmp_path / f"{number}.parquet", row_group_size=100)
        without = [str(tmp_path / f"{number}.parquet") for number in (0, 1, 3, 4)]
        expected = Population(without, weight="w").reduce(TotalWeight())
        (tmp_path / "2.parquet").write_bytes(b"PAR1 and nothing more")
        with pytest.warns(SkippedFilesWarning):
            population = Population(tmp_path, weight="w", on_error="skip")
        assert population.reduce(TotalWeight()).mass == expected.mass == population.mass

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
            Population(tmp_path).reduce(TotalWeight())
        population = Population(tmp_path, on_error="skip")
        with pytest.warns(SkippedFilesWarning, match="1.csv"):
            assert population.reduce(TotalWeight()).rows == 20

    def test_when_nothing_is_left_it_is_an_error(self, tmp_path):
        truncated = write_files(tmp_path, 2)
        population = Population(tmp_path, on_error="skip")
        for path in truncated:
            truncate(tmp_path / path)
        with (
            pytest.warns(SkippedFilesWarning, match="2 of the population's 2 files"),
            pytest.raises(InputError, match="no rows"),
        ):
            population.reduce(TotalWeight())
        with pytest.raises(InputError, match="None of the population's files could be read"):
            Population(tmp_path, on_error="skip")

    def test_datasets_skip_too(self, tmp_path):
        paths = write_files(tmp_path)
        dataset = ds.dataset(paths)
        (tmp_path / "1.parquet").unlink()
        with pytest.raises(UnreadableFileError, match="1.parquet"):
            Population(dataset).reduce(TotalWeight())
        with pytest.warns(SkippedFilesWarning, match="1.parquet"):
            assert Population(dataset, on_error="skip").reduce(TotalWeight()).rows == 200

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
                population.reduce(TotalWeight())

    @pytest.mark.parametrize("on_error", ["raise", "skip"])
    def test_bad_values_in_csv_are_not_skipped(self, tmp_path, on_error):
        (tmp_path / "0.csv").write_text("a,town\n1,x\n2,y\n")
        (tmp_path / "1.csv").write_text("a,town\n1,x\nold,y\n")
        population = Population(tmp_path, on_error=on_error)
        with pytest.raises(InputError, match=r"1.csv'.*in column 'a':.*'old'") as caught:
            population.reduce(TotalWeight())
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
            assert population.reduce(TotalWeight()).rows == 300
        assert population.skipped_files == {}


def test_an_object_that_disappears_from_the_store(store):
    fill(store, "/gone")
    population = Population("/gone", filesystem=store, on_error="skip")
    store.rm("/gone/1.parquet")
    with pytest.warns(SkippedFilesWarning, match="gone/1.parquet"):
        assert population.reduce(TotalWeight()).rows == 200
    population = Population("/gone", filesystem=store)
    store.rm("/gone/2.parquet")
    with pytest.raises(UnreadableFileError, match="gone/2.parquet"):
        population.reduce(TotalWeight())
