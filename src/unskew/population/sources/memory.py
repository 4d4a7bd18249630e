"""Tables and arrays in memory, in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unskew.population.rows import Rows, table_of_array
from unskew.population.sources.base import Part, Source, Types

BLOCK_ROWS_IN_MEMORY = 8_192
"""Rows of a part that is already in memory: few, so that small tables use every core too."""


class TableSource(Source):
    """An Arrow table: pandas, Polars, PyArrow or any other that narwhals supports."""

    def __init__(self, rows: Rows) -> None:
        self._rows: Any = rows.table
        self.schema, self.named, self.n_rows = rows.table.schema, rows.named, len(rows)

    def parts(self, columns: Sequence[str], types: Types, file: int = 0) -> Iterator[Part]:  # noqa: ARG002
        """Yield blocks of rows."""
        for start in range(0, len(self._rows), BLOCK_ROWS_IN_MEMORY):
            block = self._rows[start : start + BLOCK_ROWS_IN_MEMORY]
            yield Part(len(block), partial(self._read, block, list(columns)))

    def _read(self, block: Any, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from block.select(columns).to_batches()


class ArraySource(TableSource):
    """A two-dimensional array of numbers, whose columns are matched by position.

    It is converted to Arrow block by block, to avoid a copy of the whole.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__(Rows(table_of_array(array[:0], name="population"), named=False))
        self._rows, self.n_rows = array, len(array)

    def _read(self, block: NDArray[Any], columns: list[str]) -> Iterator[pa.RecordBatch]:
        positions = [self.schema.get_field_index(name) for name in columns]
        table = table_of_array(np.take(block, positions, axis=1), name="population")
        yield from table.rename_columns(columns).to_batches()
