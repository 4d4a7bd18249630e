"""Parquet files, read by row group.

One thread reads one row group at a time, which was faster and used less memory than scanning the
files as one PyArrow dataset. The footer of a file is read once when the files are listed, for
columns and row counts, and once per pass, whatever the number of row groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from unskew.errors import InputError, InputTypeError, UnreadableFileError
from unskew.population.kinds import can_reconcile, is_text
from unskew.population.sources.base import BLOCK_ROWS, File, FileSource, Part
from unskew.population.sources.hive import Keys
from unskew.population.sources.storage import Storage, for_each_file, reading


class ParquetSource(FileSource):
    """One or more Parquet files with the same columns.

    Parameters
    ----------
    storage : Storage
        The file system and the files.
    skip : bool
        Whether to leave out unreadable files.
    keys : Keys, optional
        Columns that the folder names define.
    """

    def __init__(self, storage: Storage, *, skip: bool = False, keys: Keys | None = None) -> None:
        self._storage = storage
        self.files, footers, self.unreadable = for_each_file(self._footer, storage, skip=skip)
        first = footers[0].schema
        for file, footer in zip(self.files, footers, strict=True):
            if not footer.schema.equals(first):
                check_same(first, self.files[0].path, footer.schema, file.path)
        self._groups = [footer.rows_of_groups for footer in footers]
        self.n_rows = sum(map(sum, self._groups))
        self.schema = first
        # A column that the files contain is read from the files, not from the folder names.
        self._keys = [] if keys is None else [f for f in keys.schema if f.name not in first.names]
        self._key_values = keys
        for field in self._keys:
            self.schema = self.schema.append(field)

    def _footer(self, file: File) -> _Footer:
        with _Opened(self._storage, file.path) as opened:
            return opened.footer

    def parts_of_file(
        self,
        file: int,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType],  # noqa: ARG002
    ) -> Iterator[Part]:
        """Yield the row groups; combine small ones."""
        in_folders = {field.name for field in self._keys}
        physical = [name for name in columns if name not in in_folders]
        text = [name for name in physical if is_text(self.schema.field(name).type)]
        opened = _Opened(self._storage, self.files[file].path)
        for groups, n_rows in _combine_groups(self._groups[file]):
            read = partial(self._read, opened, file, groups, list(columns), physical, text)
            yield Part(n_rows, read, file)

    def _read(
        self,
        opened: _Opened,
        file: int,
        groups: list[int],
        columns: list[str],
        physical: list[str],
        text: list[str],
    ) -> Iterator[pa.RecordBatch]:
        path = self.files[file].path
        with reading(path, "Parquet"):
            rows = opened.footer.rows_of_groups
            if rows != self._groups[file]:
                raise UnreadableFileError(
                    f"'{path}' changed while the population was read: it had "
                    f"{sum(self._groups[file])} rows and now has {sum(rows)}. Read it again when "
                    "no other process writes to it."
                )
            # Read text as Parquet's dictionaries, so that only distinct values are compared.
            batches = opened.reader(text).iter_batches(
                BLOCK_ROWS, groups, physical, use_threads=False
            )
            for batch in batches:
                yield (
                    self._with_keys(batch, path).select(columns)
                    if self._keys
                    else batch.select(columns)
                )

    def _with_keys(self, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
        assert self._key_values is not None
        for field in self._keys:
            column = self._key_values.column(path, field.name, batch.num_rows)
            batch = batch.append_column(field.name, column)
        return batch


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


class _Footer(NamedTuple):
    schema: pa.Schema
    rows_of_groups: list[int]
    metadata: pq.FileMetaData


class _Opened:
    """A file that is opened on first use and shared by the readers of its row groups.

    It closes when the last of them is deleted.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._lock = Lock()
        self._source: Any = None
        self._footer: _Footer | None = None

    @property
    def footer(self) -> _Footer:
        """The schema, the row counts of the row groups and the metadata."""
        with self._lock, reading(self._path, "Parquet"):
            if self._footer is None:
                self._source = self._storage.filesystem.open_input_file(self._path)
                file = pq.ParquetFile(self._source)
                groups = map(file.metadata.row_group, range(file.num_row_groups))
                rows = [group.num_rows for group in groups]
                self._footer = _Footer(file.schema_arrow, rows, file.metadata)
        return self._footer

    def reader(self, text: list[str]) -> pq.ParquetFile:
        """Return a new reader, because threads cannot share one."""
        metadata = self.footer.metadata
        return pq.ParquetFile(
            self._source,
            metadata=metadata,
            read_dictionary=text,
            page_checksum_verification=True,
            pre_buffer=not self._storage.is_local,  # few large requests instead of many small ones
        )

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        if self._source is not None:
            self._source.close()


def check_same(first: pa.Schema, first_path: str, other: pa.Schema, path: str) -> None:
    """Raise an error if a file has other columns than the first."""
    for name in first.names:
        if name not in other.names:
            raise InputError(f"'{path}' lacks column '{name}', which '{first_path}' has.")
        kinds = first.field(name).type, other.field(name).type
        if kinds[0] != kinds[1] and not can_reconcile(*kinds):
            raise InputTypeError(
                f"Column '{name}' is of type {kinds[0]} in '{first_path}' and {kinds[1]} in "
                f"'{path}'. Write both files with one type."
            )
    for name in other.names:
        if name not in first.names:
            raise InputError(f"'{path}' has column '{name}', which '{first_path}' lacks.")
