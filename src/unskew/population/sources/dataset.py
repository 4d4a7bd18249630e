"""A PyArrow dataset: partitioned folders, any filesystem that PyArrow knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds

from unskew.errors import InputError
from unskew.population.sources.base import BLOCK_ROWS, Part, Source


class DatasetSource(Source):
    """The dataset's fragments, those of Parquet split by row group."""

    def __init__(self, dataset: ds.Dataset) -> None:
        self._dataset = dataset
        self.schema = dataset.schema

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Yield the fragments in the dataset's order."""
        for fragment in self._dataset.get_fragments():
            for n_rows, piece in _pieces(fragment):
                yield Part(n_rows, partial(self._read, piece, list(columns)))

    def _read(self, piece: ds.Fragment, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with _naming(piece):
            yield from piece.to_batches(
                schema=self._dataset.schema,
                columns=columns,
                batch_size=BLOCK_ROWS,
                use_threads=False,
            )


def _pieces(fragment: ds.Fragment) -> list[tuple[int, ds.Fragment]]:
    with _naming(fragment):
        if isinstance(fragment, ds.ParquetFileFragment):
            # A piece's own count_rows() would count the whole file.
            return [(p.row_groups[0].num_rows, p) for p in fragment.split_by_row_group()]
        return [(fragment.count_rows(), fragment)]


class _naming:  # noqa: N801  (reads as a statement)
    """Adds the fragment's path to an error raised while reading it."""

    def __init__(self, fragment: ds.Fragment) -> None:
        self._path = getattr(fragment, "path", "a fragment of the dataset")

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pa.ArrowException | OSError):
            raise InputError(f"'{self._path}' could not be read: {error}") from error
