"""Margins counted in the rows of a population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from unskew.errors import InputError, ParameterError
from unskew.population.kinds import Kind, as_doubles, kind_of
from unskew.population.margin_tables import Key
from unskew.population.population import Population
from unskew.population.summaries import RowBlock, Summaries, Summary, Total


class LevelCounts(Summary):
    """How many rows have each combination of values; of one column of numbers, their total."""

    grows = True

    def __init__(self, columns: Key) -> None:
        self.columns = columns
        self.counts: pa.RecordBatch | None = None
        self.total = 0.0
        self.missing = 0

    shared = frozenset({"columns"})

    def update(self, rows: RowBlock) -> None:
        """Count a block."""
        table = pa.Table.from_batches([rows.batch]).select(list(self.columns))
        if len(self.columns) == 1 and kind_of(table.schema.types[0]) == Kind.NUMBER:
            column = as_doubles(table.column(0).combine_chunks())
            values = column.to_numpy(zero_copy_only=False)
            self.missing += int((values != values).sum())
            self.total += float(rows.weight @ values)
            return
        self._add(table.append_column("n", pa.array(rows.weight)))

    def merge(self, other: LevelCounts) -> None:
        """Add the counts of other rows."""
        self.total += other.total
        self.missing += other.missing
        if other.counts is not None:
            self._add(pa.Table.from_batches([other.counts]))

    def _add(self, table: pa.Table) -> None:
        for position, name in enumerate(self.columns):
            column = table.column(position)
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
                table = table.set_column(position, name, column)
        if self.counts is not None:
            table = pa.concat_tables([pa.Table.from_batches([self.counts]), table])
        counted = table.group_by(list(self.columns), use_threads=False).aggregate([("n", "sum")])
        counted = counted.select([*self.columns, "n_sum"]).rename_columns([*self.columns, "n"])
        self.counts = counted.combine_chunks().to_batches()[0]


def count_margins(
    data: Any, margins: Sequence[str | Key]
) -> tuple[dict[Key, dict[Any, float]], dict[str, float], float]:
    """Return counts of categories, totals of numbers and the size of a population, in one pass."""
    population = Population.of(data)
    if isinstance(margins, str) or not len(margins):
        raise ParameterError(f"margins must be a list of columns, or of tuples; got {margins!r}.")
    keys = [key if isinstance(key, tuple) else (key,) for key in margins]
    for name in (name for key in keys for name in key):
        if name not in population.columns:
            raise InputError(
                f"The population lacks column '{name}'. Its columns are "
                f"{', '.join(population.columns)}."
            )
    total, parts = Total(), [LevelCounts(key) for key in keys]
    population.reduce(Summaries([total, *parts]))
    counts: dict[Key, dict[Any, float]] = {}
    totals: dict[str, float] = {}
    for part in parts:
        if part.missing:
            raise InputError(
                f"Column '{part.columns[0]}' of the population has {part.missing} missing numbers, "
                "so that its total is not known."
            )
        if part.counts is None:
            totals[part.columns[0]] = part.total
        else:
            *levels, numbers = (column.to_pylist() for column in part.counts.columns)
            counts[part.columns] = dict(zip(zip(*levels, strict=True), numbers, strict=True))
    return counts, totals, total.mass
