"""Tables and arrays in memory, in blocks of rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unskew.numerics.typing import IntArray
from unskew.population.sources.base import Part, Source, Types
from unskew.rows.tables import Rows, table_of_array

MOST_ROWS = 8_192
"""Rows of a part that is already in memory, at most: few, so that small tables use every core."""

WHOLE_ROWS, COSTLY_ROWS = 16_384, 2_048
"""A table of at most so many rows is one part: to start a thread takes longer. For a costly summary
it does not."""


class TableSource(Source):
    """An Arrow table: pandas, Polars, PyArrow or any other that narwhals supports."""

    in_memory = True
    _whole_up_to = WHOLE_ROWS

    def __init__(self, rows: Rows) -> None:
        self._rows: Any = rows.table
        self.schema, self.n_rows = rows.table.schema, len(rows)
        self.named, self.numbered = rows.named, rows.numbered

    def parts(self, columns: Sequence[str], types: Types, file: int = 0) -> Iterator[Part]:  # noqa: ARG002
        """Yield blocks of rows, of one size and an even number: no core waits for the last one."""
        n_rows = len(self._rows)
        step = max(n_rows, 1)
        if n_rows > self._whole_up_to:
            step = math.ceil(n_rows / (2 * math.ceil(n_rows / (2 * MOST_ROWS))))
        for start in range(0, n_rows, step):
            block = self._rows[start : start + step]
            yield Part(len(block), partial(self._read, block, list(columns)))

    def for_costly(self) -> Source:
        """Return the same rows in parts for a summary that takes long."""
        twin = copy.copy(self)
        twin._whole_up_to = COSTLY_ROWS
        return twin

    def take(self, columns: Sequence[str], numbers: IntArray) -> pa.RecordBatch:
        """Return some of the rows."""
        table: pa.Table = self._rows.select(list(columns)).take(pa.array(numbers))
        return table.combine_chunks().to_batches()[0]

    def _read(self, block: Any, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from block.select(columns).to_batches()


class ArraySource(TableSource):
    """A two-dimensional array of numbers, whose columns are matched by position.

    It is converted to Arrow block by block, to avoid a copy of the whole.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__(Rows(table_of_array(array[:0], name="population"), named=False))
        self._rows, self.n_rows = array, len(array)

    def take(self, columns: Sequence[str], numbers: IntArray) -> pa.RecordBatch:
        """Return some of the rows."""
        return next(self._read(self._rows[numbers], list(columns)))

    def _read(self, block: NDArray[Any], columns: list[str]) -> Iterator[pa.RecordBatch]:
        positions = [self.schema.get_field_index(name) for name in columns]
        table = table_of_array(np.take(block, positions, axis=1), name="population")
        yield from table.rename_columns(columns).to_batches()
