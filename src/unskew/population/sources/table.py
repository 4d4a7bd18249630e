"""A table in memory: pandas, Polars, PyArrow or any other that narwhals supports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from unskew.population.rows import Rows
from unskew.population.sources.base import BLOCK_ROWS_IN_MEMORY, Part, Source


class TableSource(Source):
    """An Arrow table, cut into blocks of rows."""

    def __init__(self, rows: Rows) -> None:
        self._table = rows.table
        self.schema = rows.table.schema
        self.n_rows = rows.table.num_rows
        self.named = rows.named

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Yield blocks of rows."""
        table = self._table.select(list(columns))
        for start in range(0, table.num_rows, BLOCK_ROWS_IN_MEMORY):
            block = table.slice(start, BLOCK_ROWS_IN_MEMORY)
            yield Part(block.num_rows, block.to_batches().__iter__)
