"""Any object with the Arrow C stream interface, including PyArrow's record batch reader."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from unskew.population.sources.base import StreamedSource


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
