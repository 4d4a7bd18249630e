"""A PyArrow dataset: partitioned folders, any filesystem that PyArrow knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds

from unskew.errors import InputError
from unskew.population.sources.base import BLOCK_ROWS, Part, Source, parts_of_stream


class DatasetSource(Source):
    """The dataset's fragments, those of Parquet split by row group."""

    def __init__(self, dataset: ds.Dataset) -> None:
        self._dataset = dataset
        self.schema = dataset.schema
        self.n_files = len(dataset.files) if isinstance(dataset, ds.FileSystemDataset) else None

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Yield row groups in the dataset's order, or batches if it is not plain Parquet."""
        try:
            fragments = list(self._dataset.get_fragments())
        except ValueError:  # a dataset with a filter has none to show
            fragments = []
        if not fragments or not all(isinstance(f, ds.ParquetFileFragment) for f in fragments):
            yield from parts_of_stream(
                self._dataset.scanner(columns=list(columns), batch_size=BLOCK_ROWS).to_reader(),
                columns,
            )
            return
        for file, fragment in enumerate(fragments):
            with _naming(fragment):
                _check_columns(fragment, columns)
                pieces = fragment.split_by_row_group()
            for piece in pieces:  # a piece's own count_rows() would count the whole file
                n_rows = piece.row_groups[0].num_rows
                yield Part(n_rows, partial(self._read, piece, list(columns)), file)

    def _read(self, piece: ds.Fragment, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with _naming(piece):
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


class _naming:  # noqa: N801  (reads as a statement)
    """Adds the fragment's path to an error raised while reading it."""

    def __init__(self, fragment: ds.Fragment) -> None:
        self._path = getattr(fragment, "path", "a fragment of the dataset")

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pa.ArrowException | OSError):
            raise InputError(f"'{self._path}' could not be read: {error}") from error
