"""A Polars LazyFrame, run by Polars' streaming engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from unskew.population.sources.base import BLOCK_ROWS, Part, Source, parts_of_stream


class PolarsLazySource(Source):
    """A lazy query, run anew for each pass."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.schema = frame.collect_schema().to_frame().to_arrow().schema

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Yield the query's batches in order."""
        frames = self._frame.select(list(columns)).collect_batches(
            chunk_size=BLOCK_ROWS, maintain_order=True
        )
        batches = (batch for frame in frames for batch in frame.to_arrow().to_batches())
        return parts_of_stream(batches, columns)
