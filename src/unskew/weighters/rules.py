"""How a row's weight is made, apart from the weighter that found out: what travels to the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self

import pyarrow as pa

from unskew.numerics.typing import FloatArray
from unskew.population.summaries import Summary

__all__ = ["Rule", "RuleTotal", "Weighing"]


class Rule(Protocol):
    """The weights of the rows of a batch, whose columns are the sample's in the sample's order."""

    def __call__(self, batch: pa.RecordBatch) -> FloatArray:
        """Return one weight per row, in the scale of the weighter's ``_fit``."""


class RuleTotal(Summary):
    """The sum of the weights that a rule gives to rows, each counted as often as it should."""

    shared = frozenset({"rule"})

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.total = 0.0

    def update(self, batch: pa.RecordBatch, weight: FloatArray) -> None:
        """Weigh the rows of a batch."""
        self.total += float(weight @ self.rule(batch))

    def merge(self, other: Self) -> None:
        """Add the other's sum."""
        self.total += other.total


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
            yield pa.array(self.rule(batch) * self.scale if len(struct) else [], pa.float64())
