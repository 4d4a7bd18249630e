"""Rows that arrive one after the other: an Arrow stream, or an iterable of chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from unskew.errors import InputError
from unskew.population.sources.base import StreamedSource
from unskew.rows.kinds import check_kinds
from unskew.rows.tables import as_rows

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
