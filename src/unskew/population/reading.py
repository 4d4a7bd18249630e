"""How batches of rows reach a summary: which columns, under which names, with which weights.

This part of a pass runs where the rows are. It needs only NumPy and PyArrow, so an engine can send
it to machines that have nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.errors import InputError, InputTypeError
from unskew.numerics.cores import keep_freed_memory
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.numerics.weight_vectors import check_weight_values
from unskew.population.summaries import Summary
from unskew.rows.kinds import Kind, as_doubles, kind_of, without_views
from unskew.rows.tables import RowBlock

BLOCK_ROWS = 65_536
"""Rows in a batch: large enough that Python's share vanishes, small enough for the cache."""


@dataclass
class PassTotals:
    """Totals of the passes over a population; its matched copies share them."""

    started: bool = False
    whole: bool = False
    rows: int = 0
    mass: float = 0.0
    selected: int = 0

    def add(self, other: PassTotals) -> None:
        """Add the totals of another part."""
        self.rows += other.rows
        self.mass += other.mass
        self.selected += other.selected

    def check(self) -> None:
        """Refuse a population without rows, or whose weights count for nothing."""
        if not self.rows:
            raise InputError("The population has no rows.")
        if self.mass == 0:
            raise InputError("The population's weight is zero on every row, so no row would count.")
        if not isfinite(self.mass):
            raise InputError(
                "The population's weight adds up to infinity. Divide it by its largest entry."
            )


@dataclass(frozen=True)
class Reading:
    """The columns of a population and their roles.

    Attributes
    ----------
    columns : sequence of str
        The columns that describe a row, as the engine calls them.
    names : sequence of str
        The same as the sample calls them.
    weight, selected : str, ndarray or None
        A column, or one entry per row.
    """

    columns: Sequence[str]
    names: Sequence[str]
    weight: Any
    selected: Any

    @property
    def all_columns(self) -> list[str]:
        """Every column that has to be read."""
        roles = [role for role in (self.weight, self.selected) if isinstance(role, str)]
        return [*self.columns, *(role for role in roles if role not in self.columns)]

    def read(self, summary: Summary, batches: Iterable[pa.RecordBatch], start: int) -> PassTotals:
        """Update a summary with batches whose first row has the number ``start``."""
        keep_freed_memory()
        seen = PassTotals()
        for batch in batches:
            for offset in range(0, batch.num_rows, BLOCK_ROWS):
                block = without_views(batch.slice(offset, BLOCK_ROWS))
                numbers = slice(start + seen.rows, start + seen.rows + block.num_rows)
                rows = RowBlock(
                    block.select(self.columns).rename_columns(self.names),
                    self._weights(block, numbers),
                    self._marks(block, numbers),
                    numbers.start,
                    unweighted=self.weight is None,
                )
                seen.rows += len(rows)
                seen.mass += rows.mass
                seen.selected += 0 if rows.selected is None else int(rows.selected.sum())
                summary.update(rows)
        return seen

    def check_length(self, n_rows: int, *, at_least: bool = False) -> None:
        """Refuse weights or marks that are not one per row."""
        for name, values in (("weight", self.weight), ("selected", self.selected)):
            if values is None or isinstance(values, str):
                continue
            if len(values) < n_rows or (len(values) > n_rows and not at_least):
                more = " or more" if at_least else ""
                raise InputError(
                    f"{name} has {len(values)} entries for the population's {n_rows}{more} rows; "
                    "give one per row, or the name of a column."
                )

    def _weights(self, block: pa.RecordBatch, rows: slice) -> FloatArray:
        if self.weight is None:
            return _ones()[: block.num_rows]
        if not isinstance(self.weight, str):
            self.check_length(rows.stop, at_least=True)
            return self.weight[rows]
        name = f"The population's weight column '{self.weight}'"
        column = block.column(self.weight)
        if kind_of(column.type) not in (Kind.NUMBER, Kind.EMPTY):
            raise InputTypeError(f"{name} holds {kind_of(column.type)}; it must hold numbers.")
        weight = as_doubles(column).to_numpy(zero_copy_only=False)
        check_weight_values(weight, name=name, start=rows.start)
        return weight

    def _marks(self, block: pa.RecordBatch, rows: slice) -> BoolArray | None:
        if self.selected is None or not isinstance(self.selected, str):
            return None if self.selected is None else self.selected[rows]
        column = block.column(self.selected)
        if kind_of(column.type) != Kind.NUMBER:
            raise InputTypeError(
                f"The column '{self.selected}' given as selected holds {kind_of(column.type)}; it "
                "must be true or false for each row."
            )
        if column.null_count:
            raise InputError(f"The column '{self.selected}' given as selected has missing values.")
        marks = as_doubles(column).to_numpy(zero_copy_only=False)
        return as_marks(marks, f"The column '{self.selected}'")


@cache
def _ones() -> FloatArray:
    """Return the weights of the rows of a block without weights, which all blocks share."""
    ones = np.ones(BLOCK_ROWS)
    ones.flags.writeable = False
    return ones


def in_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine batches to blocks, where an engine hands over fewer rows at a time.

    Measured on batches of 10,000 rows, which is what Spark does: cells, sums and reservoirs of
    blocks take half of the time, and combining a twentieth of it.
    """
    waiting: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        if n_rows + batch.num_rows > BLOCK_ROWS:
            yield from combined(waiting)
            waiting, n_rows = [], 0
        waiting.append(batch)
        n_rows += batch.num_rows
    yield from combined(waiting)


def combined(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine batches that follow each other and have the same types."""
    # Chunks may store a column in different types, and only equal types can be combined.
    for _, alike in groupby(batches, key=lambda batch: str(batch.schema)):
        same = list(alike)
        if any(pa.types.is_dictionary(kind) for kind in same[0].schema.types):
            yield from same  # their combined dictionaries may be too large for their codes
        else:
            yield from pa.Table.from_batches(same).combine_chunks().to_batches()


def as_marks(values: Any, name: str) -> BoolArray:
    """Return zeros and ones as booleans; anything else is an error."""
    if values.dtype != bool and not np.isin(values, (0, 1)).all():
        raise InputError(f"{name} must be true or false for each row.")
    return np.asarray(values, dtype=bool)
