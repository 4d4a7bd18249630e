"""A PyArrow dataset: partitioned folders, any filesystem that PyArrow knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds

from unskew.errors import InputError, UnreadableFileError
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
    """Return the source for a dataset: by file if it is plain Parquet, otherwise as a stream."""
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # a dataset with a filter has none to show
        fragments = []
    if fragments and all(isinstance(one, ds.ParquetFileFragment) for one in fragments):
        return ParquetDatasetSource(dataset, fragments)
    return DatasetSource(dataset)


class DatasetSource(Source):
    """Any dataset, in batches as PyArrow reads them."""

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
                _check_columns(fragment, columns)
                pieces = fragment.split_by_row_group()
        except UnreadableFileError as error:
            yield failed_part(file, error)
            return
        for piece in pieces:  # a piece's own count_rows() would count the whole file
            n_rows = piece.row_groups[0].num_rows
            yield Part(n_rows, partial(self._read, piece, list(columns)), file)

    def _read(self, piece: ds.Fragment, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with reading(piece.path, "Parquet"):
            yield from piece.to_batches(
                schema=self._dataset.schema,
                columns=columns,
                batch_size=BLOCK_ROWS,
                use_threads=False,
            )


def _check_columns(fragment: ds.Fragment, columns: Sequence[str]) -> None:
    """Refuse a file without a column: PyArrow would fill it with missing values."""
    present = {
        *fragment.physical_schema.names,
        *ds.get_partition_keys(fragment.partition_expression),
    }
    missing = [name for name in columns if name not in present]
    if missing:
        raise InputError(f"'{fragment.path}' lacks column '{missing[0]}', which the dataset has.")
