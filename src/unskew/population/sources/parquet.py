"""Parquet files, read by row group; and PyArrow datasets, which mostly are such files.

One thread reads one row group at a time, which was faster and used less memory than scanning the
files as one PyArrow dataset. The footer of a file is read once when the files are listed, for
columns and row counts, and once per pass, whatever the number of row groups. Folders named
``key=value``, as Hive writes them, are columns too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from unskew.errors import InputError, InputTypeError, UnreadableFileError
from unskew.population.reading import BLOCK_ROWS
from unskew.population.sources.base import File, Part, Source, StreamedSource, Types
from unskew.population.sources.storage import Storage, for_each_file, in_parallel, reading
from unskew.rows.kinds import can_reconcile, is_text

MOST_VALUES_AT_ONCE, MOST_BLOCKS_AT_ONCE = 1 << 22, 4
"""Values, and blocks of rows, that a thread decodes at a time. Measured on 8 columns: one block at
a time takes 1.2 times the processor time of four, which hold 16 MB."""


class ParquetSource(Source):
    """One or more Parquet files with the same columns.

    Parameters
    ----------
    storage : Storage
        The file system and the files.
    keys : Keys, optional
        Columns that the folder names define.
    dataset : pyarrow.Schema, optional
        That of a dataset, which decides on the columns; by default the first file's.
    """

    def __init__(
        self, storage: Storage, *, keys: Keys | None = None, dataset: pa.Schema | None = None
    ) -> None:
        self._storage, self._keys = storage, keys or {}
        self.files, footers = for_each_file(
            lambda file: _Opened(storage, file.path).metadata, storage
        )
        schemas = [footer.schema.to_arrow_schema() for footer in footers]
        first = schemas[0] if dataset is None else dataset
        in_folders = self._keys.get(self.files[0].path, {})
        # A column that the files contain is read from the files, not from the folder names.
        self._key_names = [name for name in in_folders if name not in schemas[0].names]
        for file, schema in zip(self.files, schemas, strict=True):
            if dataset is None:
                check_same(first, self.files[0].path, schema, file.path)
            else:  # PyArrow would silently fill a missing column
                in_files = [name for name in dataset.names if name not in self._key_names]
                check_columns(in_files, dataset, "the dataset", schema, file.path)
        self._groups = [_rows_of_groups(footer) for footer in footers]
        self.n_rows = sum(map(sum, self._groups))
        for name in self._key_names:
            if name not in first.names:
                first = first.append(pa.field(name, in_folders[name].type))
        self.schema = first

    def parts(self, columns: Sequence[str], types: Types, file: int = 0) -> Iterator[Part]:  # noqa: ARG002
        """Yield the row groups; combine small ones."""
        opened = _Opened(self._storage, self.files[file].path)
        for groups, n_rows in _combine_groups(self._groups[file]):
            yield Part(n_rows, partial(self._read, opened, file, groups, list(columns)))

    def check_unchanged(self, file: int = 0) -> None:
        """Compare a file with its version when it was opened."""
        self._storage.check_unchanged(self.files[file])

    def _read(
        self, opened: _Opened, file: int, groups: list[int], columns: list[str]
    ) -> Iterator[pa.RecordBatch]:
        physical = [name for name in columns if name not in self._key_names]
        text = [name for name in physical if is_text(self.schema.field(name).type)]
        with reading(opened.path, "Parquet"):
            rows = _rows_of_groups(opened.metadata)
            if rows != self._groups[file]:
                raise UnreadableFileError(
                    f"'{opened.path}' changed while the population was read: it had "
                    f"{sum(self._groups[file])} rows and now has {sum(rows)}. Read it again when "
                    "no other process writes to it."
                )
            # Read text as Parquet's dictionaries, so that only distinct values are compared.
            batches = opened.reader(text).iter_batches(
                _batch_rows(len(physical)), groups, physical, use_threads=False
            )
            for batch in batches:
                for name in self._key_names:
                    column = constant_column(self._keys[opened.path][name], batch.num_rows)
                    batch = batch.append_column(name, column)
                yield batch.select(columns)


class DatasetSource(StreamedSource):
    """Any dataset, in the batches that PyArrow reads."""

    def __init__(self, dataset: ds.Dataset) -> None:
        self._dataset, self._storage = dataset, None
        self.schema = dataset.schema
        if isinstance(dataset, ds.FileSystemDataset):
            files = [File(path) for path in dataset.files]
            storage = Storage(dataset.filesystem, files)
            self._storage = storage._replace(files=in_parallel(storage.note_version, files))

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the dataset's order."""
        with reading("the population's dataset"):
            yield from self._dataset.scanner(columns=columns, batch_size=BLOCK_ROWS).to_reader()

    def check_unchanged(self, file: int = 0) -> None:  # noqa: ARG002
        """Compare all files with their versions when they were opened."""
        if self._storage is not None:
            in_parallel(self._storage.check_unchanged, self._storage.files)


def open_dataset(dataset: ds.Dataset) -> Source:
    """Return the source of a dataset: by file if it is plain Parquet, otherwise as a stream."""
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # a filtered dataset cannot list its fragments
        fragments = []
    if not fragments or not all(isinstance(one, ds.ParquetFileFragment) for one in fragments):
        return DatasetSource(dataset)
    keys: Keys = {}
    for one in fragments:
        values = ds.get_partition_keys(one.partition_expression)
        kinds = {name: dataset.schema.field(name).type for name in values}
        plain = {n: getattr(kind, "value_type", kind) for n, kind in kinds.items()}
        keys[one.path] = {name: pa.scalar(values[name], plain[name]) for name in values}
    storage = Storage(fragments[0].filesystem, [File(one.path) for one in fragments])
    return ParquetSource(storage, keys=keys, dataset=dataset.schema)


def _batch_rows(n_columns: int) -> int:
    """Return how many rows to decode at a time: some blocks, where columns are few."""
    n_blocks = MOST_VALUES_AT_ONCE // (BLOCK_ROWS * max(1, n_columns))
    return BLOCK_ROWS * int(min(max(n_blocks, 1), MOST_BLOCKS_AT_ONCE))


def _combine_groups(rows_of_groups: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    groups: list[int] = []
    n_rows = 0
    for group, rows in enumerate(rows_of_groups):
        if groups and n_rows + rows > BLOCK_ROWS:
            yield groups, n_rows
            groups, n_rows = [], 0
        groups.append(group)
        n_rows += rows
    if n_rows:
        yield groups, n_rows


def _rows_of_groups(footer: pq.FileMetaData) -> list[int]:
    return [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]


class _Opened:
    """A file that is opened on first use and shared by the readers of its row groups.

    It closes when the last of them is deleted.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        self.path = path
        self._storage = storage
        self._lock = Lock()
        self._source: Any = None
        self._metadata: pq.FileMetaData | None = None

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer of the file."""
        with self._lock, reading(self.path, "Parquet"):
            if self._metadata is None:
                self._source = self._storage.filesystem.open_input_file(self.path)
                self._metadata = pq.ParquetFile(self._source).metadata
        return self._metadata

    def reader(self, text: list[str]) -> pq.ParquetFile:
        """Return a new reader, because threads cannot share one."""
        metadata = self.metadata
        return pq.ParquetFile(
            self._source,
            metadata=metadata,
            read_dictionary=text,
            page_checksum_verification=True,
            pre_buffer=not self._storage.is_local,  # few large requests instead of many small ones
        )


def check_same(first: pa.Schema, first_path: str, other: pa.Schema, path: str) -> None:
    """Raise an error if a file has other columns than the first."""
    if other.equals(first):
        return
    check_columns(first.names, first, f"'{first_path}'", other, path)
    for name in other.names:
        if name not in first.names:
            raise InputError(f"'{path}' has column '{name}', which '{first_path}' lacks.")


def check_columns(
    columns: Iterable[str], first: pa.Schema, place: str, other: pa.Schema, path: str
) -> None:
    """Raise an error if a file lacks a column that ``place`` has, or if the types differ."""
    for name in columns:
        if name not in other.names:
            raise InputError(f"'{path}' lacks column '{name}', which {place} has.")
        kinds = first.field(name).type, other.field(name).type
        if kinds[0] != kinds[1] and not can_reconcile(*kinds):
            raise InputTypeError(
                f"Column '{name}' is of type {kinds[0]} in {place} and {kinds[1]} in '{path}'. "
                "Write all files with one type."
            )


_MISSING = "__HIVE_DEFAULT_PARTITION__"


Keys: TypeAlias = dict[str, dict[str, pa.Scalar]]
"""By path of the file: the columns that the names of its folders define, and their values."""


def constant_column(value: pa.Scalar, n_rows: int) -> pa.Array:
    """Return a column of a file that is constant."""
    if is_text(value.type) and value.is_valid:  # a dictionary: only one string is compared
        only = pa.array([value.as_py()], value.type)
        return pa.DictionaryArray.from_arrays(np.zeros(n_rows, dtype=np.int8), only)
    return pa.repeat(value, n_rows)


def partitions(files: Sequence[File], folder: str) -> Keys:
    """Return the columns that the folders below ``folder`` define.

    As in PyArrow, a column whose values are all integers is an integer column; any other is text.

    Examples
    --------
    >>> keys = partitions([File("u/year=2024/a.parquet"), File("u/year=2025/a.parquet")], "u")
    >>> keys["u/year=2025/a.parquet"]
    {'year': <pyarrow.Int64Scalar: 2025>}
    """
    found = {
        file.path: _path_values(PurePosixPath(file.path).relative_to(folder)) for file in files
    }
    names = list(found[files[0].path])
    for path, values in found.items():
        if list(values) != names:
            raise InputError(
                f"'{path}' is in folders that define the columns {list(values)}, but "
                f"'{files[0].path}' in folders that define {names}; they must be the same."
            )
    for name in names:
        column = pa.array([values[name] for values in found.values()], pa.string())
        present = column.drop_null()
        if len(present) and pc.all(pc.match_substring_regex(present, r"^-?\d{1,18}$")).as_py():
            column = column.cast(pa.int64())
        for values, value in zip(found.values(), column, strict=True):
            values[name] = value
    return found


def _path_values(path: PurePosixPath) -> dict[str, Any]:
    pairs = [part.partition("=") for part in path.parent.parts if "=" in part]
    return {unquote(name): None if text == _MISSING else unquote(text) for name, _, text in pairs}
