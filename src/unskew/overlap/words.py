"""Regions in the user's own columns and units."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from unskew.numerics.empty_boxes import Box, Condition
from unskew.numerics.typing import BoolArray
from unskew.population.encode import ColumnCodes
from unskew.population.kinds import Kind


class Label(NamedTuple):
    """A feature of the search: a column, or one value of it."""

    column: int
    value: str | None = None
    """Of a category, or "missing"; None for the column as a number."""


def describe_box(codes: ColumnCodes, box: Box, labels: Sequence[Label]) -> str:
    """Write a box in the columns' names and units."""
    by_feature: dict[int, list[Condition]] = {}
    for condition in box.conditions:
        by_feature.setdefault(condition.feature, []).append(condition)
    return " and ".join(_describe(codes, labels, f, found) for f, found in by_feature.items())


def _describe(
    codes: ColumnCodes, labels: Sequence[Label], feature: int, conditions: Sequence[Condition]
) -> str:
    column, value = labels[feature]
    name, above = codes.names[column], any(condition.above for condition in conditions)
    if value == "missing":
        return f"{name} is {'' if above else 'not '}missing"
    if value is not None:
        values = [label.value for label in labels if label.column == column]
        others = [other for other in values if other not in (value, "missing")]
        if not above and len(others) == 1:
            return f"{name} = {others[0]}"
        return f"{name} {'=' if above else 'is not'} {value}"
    if pa.types.is_boolean(codes.types[column]):
        return f"{name} = {'true' if above else 'false'}"
    low, high = (
        [
            _border(codes, column, *condition.gap)
            for condition in conditions
            if condition.above == side
        ]
        for side in (True, False)
    )
    if low and high:
        return f"{low[0]} < {name} ≤ {high[0]}"
    return f"{name} > {low[0]}" if low else f"{name} ≤ {high[0]}"


def _border(codes: ColumnCodes, column: int, low: float, high: float) -> str:
    """Write a border between two values of a column, as short as possible."""
    if codes.kinds[column] != Kind.TIME:
        return shortest_between(low, high)
    whole_day = float(np.ceil(low))
    return codes.format_value(column, whole_day if low <= whole_day < high else low)


def shortest_between(low: float, high: float) -> str:
    """Return the shortest decimal number b with low ≤ b < high."""
    largest = max(abs(low), abs(high))
    if not high > low or not np.isfinite(largest) or largest == 0:
        return f"{low:,.6g}"
    top = int(np.floor(np.log10(largest)))
    for digits in range(-top, 16 - top):
        step = Decimal(1).scaleb(-digits)
        number = (Decimal(low) / step).to_integral_value(ROUND_CEILING) * step
        if number < Decimal(high):
            if 1e-4 <= abs(number) < 1e15:
                return f"{number.normalize():,f}"
            return f"{float(number):zg}"
    return f"{low:,.17g}"


def describe_unseen(codes: ColumnCodes, rows: pa.RecordBatch, column: int, where: BoolArray) -> str:
    """Name the values of a column that no sample row has."""
    name = codes.names[column]
    values = rows.column(column).filter(pa.array(where))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    missing = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    if missing.all():
        return f"{name} is missing"
    if codes.kinds[column] != Kind.CATEGORY:
        return f"{name} is not missing"
    counts = sorted(values.drop_null().value_counts().to_pylist(), key=lambda c: -c["counts"])
    shown = [str(entry["values"]) for entry in counts]
    if len(shown) > 3:
        shown = [*shown[:3], f"{len(shown) - 3:,} more that the sample lacks"]
    return f"{name} = " + " or ".join(shown) + (" or missing" if missing.any() else "")
