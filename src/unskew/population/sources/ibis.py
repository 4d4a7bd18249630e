"""An Ibis table: the database behind it runs the query and returns Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from unskew.errors import InputError
from unskew.population.sources.base import BLOCK_ROWS, Part, Source, parts_of_stream
from unskew.population.sources.duckdb import batches_of


class IbisSource(Source):
    """A query, run anew for each pass."""

    ordered = False  # a query has no fixed order; it may differ in each pass

    def __init__(self, table: Any) -> None:
        self._table = table
        self.schema = table.schema().to_pyarrow()

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Yield the batches of the query as they arrive."""
        return parts_of_stream(self._batches(list(columns)), columns)

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        try:
            query = self._table.select(columns)
            backend = query.get_backend()
            if hasattr(backend, "_to_duckdb_relation"):
                # Ibis 12 streams from DuckDB with a method that DuckDB 2 has removed.
                yield from batches_of(backend._to_duckdb_relation(query))
            else:
                yield from query.to_pyarrow_batches(chunk_size=BLOCK_ROWS)
        except Exception as error:
            raise InputError(f"Ibis could not read the population: {error}") from error
