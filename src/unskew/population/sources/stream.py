"""Any object with the Arrow C stream interface, including PyArrow's record batch reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from unskew.population.sources.base import Part, Source, parts_of_stream


class StreamSource(Source):
    """Batches that arrive one after the other.

    A reader can be read once; any other object is assumed to start a new stream at each request, as
    the Arrow PyCapsule interface specifies.
    """

    def __init__(self, data: Any) -> None:
        self._data = data
        self.rereadable = not isinstance(data, pa.RecordBatchReader)
        self.schema = self._open().schema

    def _open(self) -> pa.RecordBatchReader:
        if isinstance(self._data, pa.RecordBatchReader):
            return self._data
        return pa.RecordBatchReader.from_stream(self._data)

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Yield the batches as they arrive."""
        return parts_of_stream(self._open(), columns)
