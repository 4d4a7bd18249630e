"""A PyArrow dataset: partitioned folders, any file system that PyArrow supports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds

from unskew.errors import InputError, InputTypeError
from unskew.population.kinds import can_reconcile
from unskew.population.sources.base import (
    BLOCK_ROWS,
    File,
    FileSource,
    Part,
    Source,
    failed_part,
    parts_of_stream,
)
from unskew.population.sources.storage import reading


def open_dataset(dataset: ds.Dataset) -> Source:
    """Return the source of a dataset: by file if it is plain Parquet, otherwise as a stream."""
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # a filtered dataset cannot list its fragments
        fragments = []
    if fragments and all(isinstance(one, ds.ParquetFileFragment) for one in fragments):
        return ParquetDatasetSource(dataset, fragments)
    return DatasetSource(dataset)


class DatasetSource(Source):
    """Any dataset, in the batches that PyArrow reads."""

    def __init__(self, dataset: ds.Dataset) -> None:
        self._dataset = dataset
        self.schema = dataset.schema

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Yield the batches in the dataset's order."""
        scanner = self._dataset.scanner(columns=list(columns), batch_size=BLOCK_ROWS)
        return parts_of_stream(_batches(scanner.to_reader()), columns)


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    with reading("the population's dataset"):
        yield from reader


class ParquetDatasetSource(FileSource):
    """A dataset of Parquet files, read by row group."""

    def __init__(self, dataset: ds.Dataset, fragments: Sequence[ds.ParquetFileFragment]) -> None:
        self._dataset = dataset
        self.schema = dataset.schema
        self._fragments = fragments
        infos = fragments[0].filesystem.get_file_info([one.path for one in fragments])
        self.files = [File(info.path, info.size, info.mtime_ns) for info in infos]

    def parts_of_file(
        self,
        file: int,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType],  # noqa: ARG002
    ) -> Iterator[Part]:
        """Yield the row groups."""
        fragment = self._fragments[file]
        try:
            with reading(fragment.path, "Parquet"):
                differs = self._check_columns(fragment, columns)
                pieces = fragment.split_by_row_group()
        except InputError as error:
            yield failed_part(file, error)
            return
        for piece in pieces:  # count_rows() of a piece counts the whole file
            n_rows = piece.row_groups[0].num_rows
            yield Part(n_rows, partial(self._read, piece, list(columns), differs), file)

    def _read(
        self, piece: ds.Fragment, columns: list[str], differs: list[str]
    ) -> Iterator[pa.RecordBatch]:
        with reading(piece.path, "Parquet"), _converting(piece.path, differs):
            yield from piece.to_batches(
                schema=self._dataset.schema,
                columns=columns,
                batch_size=BLOCK_ROWS,
                use_threads=False,
            )

    def _check_columns(self, fragment: ds.Fragment, columns: Sequence[str]) -> list[str]:
        """Raise an error if a file lacks a column or has one of an incomparable type.

        PyArrow would silently fill a missing column. Return the columns that PyArrow will convert.
        """
        physical = fragment.physical_schema
        present = {*physical.names, *ds.get_partition_keys(fragment.partition_expression)}
        missing = [name for name in columns if name not in present]
        if missing:
            raise InputError(
                f"'{fragment.path}' lacks column '{missing[0]}', which the dataset has."
            )
        differs = []
        for name in set(columns) & set(physical.names):
            kinds = self.schema.field(name).type, physical.field(name).type
            if kinds[0] != kinds[1] and not can_reconcile(*kinds):
                raise InputTypeError(
                    f"Column '{name}' is of type {kinds[0]} in the dataset and {kinds[1]} in "
                    f"'{fragment.path}'. Write all files with one type."
                )
            if kinds[0] != kinds[1]:
                differs.append(name)
        return sorted(differs)


@contextmanager
def _converting(path: str, columns: Sequence[str]) -> Iterator[None]:
    """Distinguish values that do not fit the dataset's types from a damaged file."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        if not columns:
            raise
        raise InputTypeError(
            f"Column '{columns[0]}' of '{path}' cannot be converted to the dataset's type: "
            f"{error}. Write all files with one type."
        ) from error
