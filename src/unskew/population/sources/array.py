"""A NumPy array of numbers, converted to Arrow block by block to avoid a copy of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unskew.population.rows import table_of_array
from unskew.population.sources.base import BLOCK_ROWS_IN_MEMORY, Part, Source


class ArraySource(Source):
    """A two-dimensional array of numbers, whose columns are matched by position."""

    named = False

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.schema = table_of_array(array[:0], name="population").schema
        self.n_rows = len(array)

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Yield blocks of rows."""
        positions = [self.schema.get_field_index(name) for name in columns]
        for start in range(0, len(self._array), BLOCK_ROWS_IN_MEMORY):
            block = self._array[start : start + BLOCK_ROWS_IN_MEMORY]
            yield Part(len(block), partial(self._read, block, positions, list(columns)))

    @staticmethod
    def _read(
        block: NDArray[Any], positions: list[int], columns: list[str]
    ) -> Iterator[pa.RecordBatch]:
        table = table_of_array(np.take(block, positions, axis=1), name="population")
        yield from table.rename_columns(columns).to_batches()
