"""Rows of this process: tables and arrays in blocks, chunks and Arrow streams as they come."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unskew.errors import InputError
from unskew.numerics.typing import IntArray
from unskew.population.sources.base import Part, Source, StreamedSource, Types
from unskew.rows.kinds import check_kinds
from unskew.rows.tables import Rows, as_rows, table_of_array

MOST_ROWS = 8_192
"""Rows of a part that is already in memory, at most: few, so that small tables use every core."""

WHOLE_ROWS, COSTLY_ROWS = 16_384, 2_048
"""A table of at most so many rows is one part: to start a thread takes longer. For a costly summary
it does not."""


class TableSource(Source):
    """An Arrow table: pandas, Polars, PyArrow or any other that narwhals supports."""

    in_memory = True
    _whole_up_to = WHOLE_ROWS

    def __init__(self, rows: Rows) -> None:
        self._rows: Any = rows.table
        self.schema, self.n_rows = rows.table.schema, len(rows)
        self.named, self.numbered = rows.named, rows.numbered

    def parts(self, columns: Sequence[str], types: Types, file: int = 0) -> Iterator[Part]:  # noqa: ARG002
        """Yield blocks of rows, of one size and an even number: no core waits for the last one."""
        n_rows = len(self._rows)
        step = max(n_rows, 1)
        if n_rows > self._whole_up_to:
            step = math.ceil(n_rows / (2 * math.ceil(n_rows / (2 * MOST_ROWS))))
        for start in range(0, n_rows, step):
            block = self._rows[start : start + step]
            yield Part(len(block), partial(self._read, block, list(columns)))

    def for_costly(self) -> Source:
        """Return the same rows in parts for a summary that takes long."""
        twin = copy.copy(self)
        twin._whole_up_to = COSTLY_ROWS
        return twin

    def take(self, columns: Sequence[str], numbers: IntArray) -> pa.RecordBatch:
        """Return some of the rows."""
        table: pa.Table = self._rows.select(list(columns)).take(pa.array(numbers))
        return table.combine_chunks().to_batches()[0]

    def _read(self, block: Any, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from block.select(columns).to_batches()


class ArraySource(TableSource):
    """A two-dimensional array of numbers, whose columns are matched by position.

    It is converted to Arrow block by block, to avoid a copy of the whole.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__(Rows(table_of_array(array[:0], name="population"), named=False))
        self._rows, self.n_rows = array, len(array)

    def take(self, columns: Sequence[str], numbers: IntArray) -> pa.RecordBatch:
        """Return some of the rows."""
        return next(self._read(self._rows[numbers], list(columns)))

    def _read(self, block: NDArray[Any], columns: list[str]) -> Iterator[pa.RecordBatch]:
        positions = [self.schema.get_field_index(name) for name in columns]
        table = table_of_array(np.take(block, positions, axis=1), name="population")
        yield from table.rename_columns(columns).to_batches()


_NAME = "a chunk of the population"


class ChunkSource(StreamedSource):
    """Chunks that arrive one after the other; an iterator can be read only once."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        iterator = iter(chunks)
        self.rereadable = iterator is not chunks
        try:
            first = next(iterator)
        except StopIteration:
            raise InputError("The population is an iterable without chunks.") from None
        rows = as_rows(first, name=_NAME)
        self.schema = rows.table.schema
        self.named, self.numbered = rows.named, rows.numbered
        # The first chunk of an iterator has been consumed, so put it back in front.
        self._chunks = chunks if self.rereadable else chain([first], iterator)

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield the chunks, checked."""
        for number, chunk in enumerate(self._chunks):
            table = as_rows(chunk, name=_NAME).table
            for name in self.schema.names:
                if name not in table.column_names:
                    raise InputError(f"Chunk {number} of the population lacks column '{name}'.")
                check_kinds(name, self.schema.field(name).type, table.schema.field(name).type)
            if table.num_columns != len(self.schema):
                odd = next(name for name in table.column_names if name not in self.schema.names)
                raise InputError(
                    f"Chunk {number} of the population has an additional column '{odd}'."
                )
            yield from table.to_batches()


class StreamSource(StreamedSource):
    """Batches that arrive one after the other.

    A reader can be read once; any other object is assumed to start a new stream at each request, as
    the Arrow PyCapsule interface specifies.
    """

    def __init__(self, data: Any) -> None:
        self._data = data
        self.rereadable = not isinstance(data, pa.RecordBatchReader)
        self.schema = self.batches([]).schema

    def batches(self, columns: list[str]) -> pa.RecordBatchReader:  # noqa: ARG002
        """Return the reader, or a new one."""
        return pa.RecordBatchReader.from_stream(self._data) if self.rereadable else self._data
