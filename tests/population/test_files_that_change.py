"""A file that is written during a pass gives no answer: neither version's rows, nor a mixture."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from tests.population.small_files import table

from unskew import FrequencyWeights, Population, read_sample
from unskew.errors import UnreadableFileError
from unskew.population.summaries import TotalWeight
from unskew.results import Summary

pytestmark = pytest.mark.usefixtures("small_parts")


class Meddling(Summary):
    """Counts, and calls a function once with the first rows."""

    shared = frozenset({"meddle"})

    def __init__(self, meddle) -> None:
        self.meddle = meddle
        self.values: list[float] = []

    def update(self, rows):
        self.meddle()
        self.values += rows.batch.column("a").to_pylist()

    def merge(self, other):
        self.values += other.values


def once(function):
    """Return a function that does its work only in the first call."""
    calls = []
    return lambda: None if calls else (calls.append(1), function())


def write(rows, file) -> None:
    """Write rows so that numbers take the same places, whatever they are."""
    pq.write_table(rows, file, row_group_size=30, use_dictionary=False, compression="none")


def write_files(folder, n_files: int = 3) -> list[str]:
    folder.mkdir(exist_ok=True, parents=True)
    for number in range(n_files):
        write(table(100 * number), folder / f"{number}.parquet")
    return [str(folder / f"{number}.parquet") for number in range(n_files)]


def fill(store) -> None:
    for number in range(3):
        with store.open(f"/b/{number}.parquet", "wb") as file:
            write(table(100 * number), file)


def others() -> pa.Table:
    """Return rows that differ from those of any file, and take as many bytes."""
    return table(0).set_column(0, "a", pa.array(np.arange(100) - 1e6))


def overwrite(path) -> None:
    """Write other rows into a file, in place and of the same size, as if nothing had happened."""
    before = path.stat()
    with open(path, "r+b") as file:
        write(others(), file)
    assert path.stat().st_size == before.st_size
    assert path.stat().st_ino == before.st_ino


def move_over(path) -> None:
    """Put another file of the same size and modification time in a file's place."""
    before = path.stat()
    write(others(), f"{path}.new")
    os.utime(f"{path}.new", ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(f"{path}.new", path)


def overwrite_and_set_back(path) -> None:
    before = path.stat()
    overwrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


FORMS = {
    "file": lambda folder: folder / "1.parquet",
    "folder": lambda folder: folder,
    "glob": lambda folder: f"{folder}/*.parquet",
    "dataset": lambda folder: ds.dataset(folder),
    "another file system": lambda folder: fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem()),
}
CHANGES = [overwrite, move_over, overwrite_and_set_back]


def opened(form, folder, **options):
    data = FORMS[form](folder)
    if isinstance(data, fs.FileSystem):
        return Population("", filesystem=data, **options)
    return Population(data, **options)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_parquet_overwritten_in_place_is_an_error(tmp_path, form, threads):
    write_files(tmp_path)
    meddle = once(lambda: overwrite(tmp_path / "1.parquet"))
    with pytest.raises(
        UnreadableFileError, match=r"1.parquet' (changed while|could not be) .*read"
    ):
        opened(form, tmp_path).reduce(Meddling(meddle), threads=threads)


@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_to_any_file_of_a_folder_shows(tmp_path, change, victim):
    write_files(tmp_path)
    meddle = once(lambda: change(tmp_path / f"{victim}.parquet"))
    with pytest.raises(UnreadableFileError, match=f"{victim}.parquet' changed while it was read"):
        Population(tmp_path).reduce(Meddling(meddle), threads=1)


def test_partitioned_folders(tmp_path):
    for year in (2024, 2025):
        write_files(tmp_path / f"year={year}", 1)
    meddle = once(lambda: overwrite(tmp_path / "year=2025" / "0.parquet"))
    with pytest.raises(UnreadableFileError, match=r"year=2025/0.parquet' changed while it was"):
        Population(tmp_path).reduce(Meddling(meddle))


@pytest.mark.parametrize("form", ["file", "dataset"])
def test_csv(tmp_path, form):
    path = tmp_path / "0.csv"
    path.write_text("a,town\n" + "1,x\n" * 50_000)

    def rewrite():
        with open(path, "r+") as file:
            file.write("a,town\n" + "2,y\n" * 50_000)

    data = ds.dataset(path, format="csv") if form == "dataset" else path
    with pytest.raises(
        UnreadableFileError, match=r"0.csv' changed while it was read: it has another modific"
    ):
        Population(data).reduce(Meddling(once(rewrite)))


def test_objects_in_a_store(store):
    fill(store)
    with pytest.raises(UnreadableFileError, match=r"b/0.parquet' changed while it was read"):
        Population("/b", filesystem=store).reduce(Meddling(once(lambda: fill(store))), threads=1)


def test_a_store_that_tells_only_sizes(store, monkeypatch):
    fill(store)
    tell = type(store).info
    monkeypatch.setattr(
        type(store), "info", lambda self, path: {**tell(self, path), "created": None}
    )

    def rewrite():
        with store.open("/b/0.parquet", "wb") as file:
            write(others(), file)

    with pytest.raises(
        UnreadableFileError, match=r"b/0.parquet' changed while .*: it has another footer"
    ):
        Population("/b", filesystem=store).reduce(Meddling(once(rewrite)), threads=1)


def test_between_two_passes_of_one_population(tmp_path):
    write_files(tmp_path)
    population = Population(tmp_path)
    population.reduce(TotalWeight())
    overwrite(tmp_path / "2.parquet")
    with pytest.raises(UnreadableFileError, match=r"2.parquet' changed"):
        population.reduce(Meddling(lambda: None))
    assert len(Population(tmp_path).reduce(Meddling(lambda: None)).values) == 300


def test_no_weights_of_neither_version(tmp_path, monkeypatch):
    monkeypatch.setattr("unskew.population.progress.SECONDS_BETWEEN", 0.0)
    cells = np.repeat(["x", "y"], 30)
    write(pa.table({"cell": cells}), tmp_path / "u.parquet")

    def turn(_):
        with open(tmp_path / "u.parquet", "r+b") as file:
            write(pa.table({"cell": cells[::-1]}), file)

    population = Population(tmp_path / "u.parquet", progress=turn)
    with pytest.raises(UnreadableFileError, match=r"u.parquet'"):
        FrequencyWeights().fit(pa.table({"cell": ["x", "y"]}), population=population)


def test_a_sample_that_is_written_while_it_is_read(tmp_path, monkeypatch):
    (path,) = write_files(tmp_path, 1)
    read = pq.ParquetFile.read

    def read_and_overwrite(self, **options):
        overwrite(tmp_path / "0.parquet")
        return read(self, **options)

    monkeypatch.setattr(pq.ParquetFile, "read", read_and_overwrite)
    with pytest.raises(UnreadableFileError, match=r"0.parquet' changed while it was read"):
        read_sample(path)
    monkeypatch.undo()
    assert read_sample(path).num_rows == 100


def test_what_does_not_change_the_content_is_no_change(tmp_path):
    write_files(tmp_path)
    path = tmp_path / "1.parquet"

    def touch():
        path.chmod(0o600)
        os.link(path, f"{path}.copy")
        os.utime(path, ns=(0, path.stat().st_mtime_ns))

    assert len(Population(tmp_path).reduce(Meddling(once(touch))).values) == 300
