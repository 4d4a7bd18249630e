"""How the weight of a row is computed, apart from the weighter: what travels to the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_weight_values
from unskew.population.summaries import RowBlock, Summary


class Rule(Protocol):
    """Computes the weights of a batch with the columns that the weighter weighs by, in order."""

    def __call__(self, batch: pa.RecordBatch) -> FloatArray:
        """Return one weight per row, in the scale of the weighter's ``_solve``."""


class RuleTotal(Summary):
    """The sum of the weights that a rule gives to rows, times their design weights."""

    shared = frozenset({"rule"})
    added = ("total",)

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.total = 0.0

    def update(self, rows: RowBlock) -> None:
        """Weigh the rows of a block."""
        self.total += float(rows.weight @ self.rule(rows.batch))


@dataclass(frozen=True)
class Weighing:
    """A rule at work on an executor."""

    rule: Rule
    names: list[str]
    scale: float

    def weigh(self, structs: Iterator[Any]) -> Iterator[pa.Array]:
        """Yield the weights of rows that come as arrays of structs."""
        for struct in structs:
            batch = pa.RecordBatch.from_arrays(struct.flatten(), names=self.names)
            weights = self.rule(batch) * self.scale if len(struct) else np.empty(0)
            check_weight_values(weights, name="A weight in a batch of rows")
            yield pa.array(weights, pa.float64())
