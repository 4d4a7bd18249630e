"""A Polars LazyFrame, executed by the streaming engine of Polars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from unskew.errors import InputError
from unskew.population.sources.base import BLOCK_ROWS, Part, Source, parts_of_stream


class PolarsLazySource(Source):
    """A lazy query, run anew for each pass."""

    ordered = False  # a query has no fixed order; it may differ in each pass

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.schema = frame.collect_schema().to_frame().to_arrow().schema

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Yield the query's batches in order."""
        return parts_of_stream(self._batches(columns), columns)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        from polars import selectors
        from polars.exceptions import PolarsError

        try:
            # By selector: in Polars a plain name that begins with ^ and ends with $ is a pattern.
            frames = self._frame.select(selectors.by_name(*columns)).collect_batches(
                chunk_size=BLOCK_ROWS, maintain_order=True
            )
            for frame in frames:
                yield from frame.to_arrow().to_batches()
        except PolarsError as error:
            raise InputError(f"Polars could not read the population: {error}") from error
