"""A DuckDB relation: DuckDB reads only the requested columns and returns Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from unskew.errors import InputError
from unskew.population.sources.base import BLOCK_ROWS, Part, Source, parts_of_stream


class DuckDBSource(Source):
    """A query, run anew for each pass."""

    ordered = False  # a query has no fixed order; it may differ in each pass

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        self.schema = batches_of(relation.limit(0)).schema

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Yield the query's batches, in DuckDB's insertion order."""
        chosen = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        return parts_of_stream(self._batches(chosen), columns)

    def _batches(self, chosen: str) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches_of(self._relation.project(chosen))
        except Exception as error:
            raise InputError(f"DuckDB could not read the population: {error}") from error


def batches_of(relation: Any) -> pa.RecordBatchReader:
    """Return a relation's rows as a stream of batches."""
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(BLOCK_ROWS)
    return relation.fetch_arrow_reader(BLOCK_ROWS)  # before DuckDB 1.4
