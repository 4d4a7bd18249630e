"""Queries of DuckDB, Ibis and Polars, which the engine runs and returns in Arrow batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from unskew.errors import InputError
from unskew.population.reading import BLOCK_ROWS
from unskew.population.sources.base import StreamedSource


class QuerySource(StreamedSource):
    """A query, run anew for each pass."""

    ordered = False  # a query has no fixed order; it may differ in each pass

    def __init__(self, query: Any, schema: pa.Schema) -> None:
        self._query = query
        self.schema = schema

    @abstractmethod
    def run(self, columns: list[str]) -> Iterable[pa.RecordBatch]:
        """Run the query for these columns."""

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the query as they arrive."""
        try:
            yield from self.run(columns)
        except Exception as error:
            engine = type(self).__name__.removesuffix("Source")
            raise InputError(f"{engine} could not read the population: {error}") from error


class DuckDBSource(QuerySource):
    """A DuckDB relation, in DuckDB's insertion order."""

    def __init__(self, relation: Any) -> None:
        super().__init__(relation, _batches_of_relation(relation.limit(0)).schema)

    def run(self, columns: list[str]) -> pa.RecordBatchReader:
        """Run the query in DuckDB."""
        quoted = ('"' + name.replace('"', '""') + '"' for name in columns)
        return _batches_of_relation(self._query.project(", ".join(quoted)))


class IbisSource(QuerySource):
    """An Ibis table, in the database behind it."""

    def __init__(self, table: Any) -> None:
        super().__init__(table, table.schema().to_pyarrow())

    def run(self, columns: list[str]) -> pa.RecordBatchReader:
        """Run the query in the database."""
        query = self._query.select(columns)
        backend = query.get_backend()
        if hasattr(backend, "_to_duckdb_relation"):
            # Ibis 12 streams from DuckDB with a method that DuckDB 2 has removed.
            return _batches_of_relation(backend._to_duckdb_relation(query))
        return query.to_pyarrow_batches(chunk_size=BLOCK_ROWS)


class PolarsSource(QuerySource):
    """A Polars LazyFrame, executed by the streaming engine of Polars."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame, frame.collect_schema().to_frame().to_arrow().schema)

    def run(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Run the query in Polars."""
        from polars import selectors

        # By position: in Polars a name that begins with ^ and ends with $ is a pattern.
        query = self._query.select(selectors.by_index(*map(self.schema.names.index, columns)))
        for frame in query.collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True):
            yield from frame.to_arrow().to_batches()


def _batches_of_relation(relation: Any) -> pa.RecordBatchReader:
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(BLOCK_ROWS)
    return relation.fetch_arrow_reader(BLOCK_ROWS)  # before DuckDB 1.4
