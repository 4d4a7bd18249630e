"""Queries of DuckDB, Ibis, Polars and Dask, which the engine runs, in Arrow batches.

Of Dask, a few partitions at a time are computed, each by one thread of unskew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from unskew.errors import InputError
from unskew.numerics.cores import available_cores, in_order
from unskew.population.reading import BLOCK_ROWS
from unskew.population.sources.base import StreamedSource
from unskew.rows.kinds import check_kinds
from unskew.rows.tables import as_rows


class QuerySource(StreamedSource):
    """A query, run anew for each pass; ``run`` returns the batches of some of its columns."""

    ordered = False  # a query has no fixed order; it may differ in each pass

    def __init__(
        self,
        engine: str,
        query: Any,
        schema: pa.Schema,
        run: Callable[[Any, list[str]], Iterable[pa.RecordBatch]],
    ) -> None:
        self.engine, self.schema = engine, schema
        self._query, self._run = query, run

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the query as they arrive."""
        try:
            yield from self._run(self._query, columns)
        except Exception as error:
            raise InputError(f"{self.engine} could not read the population: {error}") from error


def duckdb_source(relation: Any) -> QuerySource:
    """Return the source of a DuckDB relation, in DuckDB's insertion order."""
    schema = _batches_of_relation(relation.limit(0)).schema
    return QuerySource("DuckDB", relation, schema, _run_duckdb)


def _run_duckdb(relation: Any, columns: list[str]) -> pa.RecordBatchReader:
    quoted = ('"' + name.replace('"', '""') + '"' for name in columns)
    return _batches_of_relation(relation.project(", ".join(quoted)))


def _batches_of_relation(relation: Any) -> pa.RecordBatchReader:
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(BLOCK_ROWS)
    return relation.fetch_arrow_reader(BLOCK_ROWS)  # before DuckDB 1.4


def ibis_source(table: Any) -> QuerySource:
    """Return the source of an Ibis table, in the database behind it."""
    return QuerySource("Ibis", table, table.schema().to_pyarrow(), _run_ibis)


def _run_ibis(table: Any, columns: list[str]) -> pa.RecordBatchReader:
    query = table.select(columns)
    backend = query.get_backend()
    if hasattr(backend, "_to_duckdb_relation"):
        # Ibis 12 streams from DuckDB with a method that DuckDB 2 has removed.
        return _batches_of_relation(backend._to_duckdb_relation(query))
    return query.to_pyarrow_batches(chunk_size=BLOCK_ROWS)


def polars_source(frame: Any) -> QuerySource:
    """Return the source of a Polars LazyFrame, executed by the streaming engine of Polars."""
    schema = frame.collect_schema().to_frame().to_arrow().schema
    return QuerySource("Polars", frame, schema, _run_polars)


def _run_polars(frame: Any, columns: list[str]) -> Iterator[pa.RecordBatch]:
    from polars import selectors

    # By position: in Polars a name that begins with ^ and ends with $ is a pattern.
    names = frame.collect_schema().names()
    query = frame.select(selectors.by_index(*map(names.index, columns)))
    for batch in query.collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True):
        yield from batch.to_arrow().to_batches()


class DaskSource(StreamedSource):
    """The partitions of the frame in order; at most one per core is in memory."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        empty = as_rows(frame._meta, name="population")
        self.schema = empty.table.schema
        self.named, self.numbered = empty.named, empty.numbered

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the partitions as they are computed."""
        labels = [self._frame.columns[self.schema.names.index(name)] for name in columns]
        work = enumerate(self._frame[labels].to_delayed())
        for table in in_order(self._computed, work, available_cores(), ahead=0):
            for name in columns:
                check_kinds(name, self.schema.field(name).type, table.schema.field(name).type)
            yield from table.to_batches()

    def _computed(self, work: tuple[int, Any]) -> pa.Table:
        number, partition = work
        try:
            # In this thread: unskew runs the threads, and each holds one partition.
            frame = partition.compute(scheduler="synchronous")
        except Exception as error:
            raise InputError(
                f"Dask could not compute partition {number} of the population: {error}"
            ) from error
        return as_rows(frame, name=f"partition {number} of the population").table
