"""A PyArrow dataset: partitioned folders, any file system that PyArrow supports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from unskew.errors import InputError, InputTypeError, UnreadableFileError
from unskew.population.reading import BLOCK_ROWS
from unskew.population.sources.base import File, Part, Source, StreamedSource, Types, failed_part
from unskew.population.sources.parquet import check_columns
from unskew.population.sources.storage import Storage, in_parallel, reading


def open_dataset(dataset: ds.Dataset) -> Source:
    """Return the source of a dataset: by file if it is plain Parquet, otherwise as a stream."""
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # a filtered dataset cannot list its fragments
        fragments = []
    if fragments and all(isinstance(one, ds.ParquetFileFragment) for one in fragments):
        return ParquetDatasetSource(dataset, fragments)
    return DatasetSource(dataset)


class DatasetSource(StreamedSource):
    """Any dataset, in the batches that PyArrow reads."""

    def __init__(self, dataset: ds.Dataset) -> None:
        self._dataset = dataset
        self.schema = dataset.schema
        self._storage = None
        if isinstance(dataset, ds.FileSystemDataset):
            self._storage = _storage(dataset.filesystem, dataset.files)

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the dataset's order."""
        with reading("the population's dataset"):
            yield from self._dataset.scanner(columns=columns, batch_size=BLOCK_ROWS).to_reader()

    def check_unchanged(self, file: int = 0) -> None:  # noqa: ARG002
        """Compare all files with their versions when they were opened."""
        if self._storage is not None:
            in_parallel(self._storage.check_unchanged, self._storage.files)


class ParquetDatasetSource(Source):
    """A dataset of Parquet files, read by row group."""

    def __init__(self, dataset: ds.Dataset, fragments: Sequence[ds.ParquetFileFragment]) -> None:
        self.schema = dataset.schema
        self._fragments = fragments
        self._storage = _storage(fragments[0].filesystem, [one.path for one in fragments])
        self.files = self._storage.files

    def parts(self, columns: Sequence[str], types: Types, file: int = 0) -> Iterator[Part]:  # noqa: ARG002
        """Yield the row groups."""
        fragment = self._fragments[file]
        try:
            with reading(fragment.path, "Parquet"):
                differs = self._check_columns(fragment, columns)
                pieces = fragment.split_by_row_group()
        except InputError as error:
            yield failed_part(error)
            return
        for piece in pieces:  # count_rows() of a piece counts the whole file
            n_rows = piece.row_groups[0].num_rows
            yield Part(n_rows, partial(self._read, piece, list(columns), differs))

    def check_unchanged(self, file: int = 0) -> None:
        """Compare a file with its version when it was opened."""
        self._storage.check_unchanged(self.files[file])

    def _read(
        self, piece: ds.Fragment, columns: list[str], differs: list[str]
    ) -> Iterator[pa.RecordBatch]:
        with reading(piece.path, "Parquet"):
            try:
                yield from piece.to_batches(
                    schema=self.schema, columns=columns, batch_size=BLOCK_ROWS, use_threads=False
                )
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                if not differs:  # the file is damaged
                    raise
                raise InputTypeError(
                    f"Column '{differs[0]}' of '{piece.path}' cannot be converted to the dataset's "
                    f"type: {error}. Write all files with one type."
                ) from error

    def _check_columns(self, fragment: ds.Fragment, columns: Sequence[str]) -> list[str]:
        """Raise an error if a file lacks a column or has one of an incomparable type.

        PyArrow would silently fill a missing column. Return the columns that PyArrow will convert.
        """
        physical = fragment.physical_schema
        in_folders = set(ds.get_partition_keys(fragment.partition_expression)) - {*physical.names}
        in_file = [name for name in columns if name not in in_folders]
        check_columns(in_file, self.schema, "the dataset", physical, fragment.path)
        return sorted(n for n in in_file if self.schema.field(n).type != physical.field(n).type)


def _storage(filesystem: fs.FileSystem, paths: Sequence[str]) -> Storage:
    """Return the files of a dataset with their versions; a missing file is an error when read."""
    infos = filesystem.get_file_info(list(paths))
    files = [File(info.path, info.size, info.mtime_ns) for info in infos]
    storage = Storage(filesystem, files)

    def note_version(file: File) -> File:
        try:
            return storage.note_version(file)
        except UnreadableFileError:
            return file

    return storage._replace(files=in_parallel(note_version, files))
