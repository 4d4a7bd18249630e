"""Regions in the user's own columns and units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from unskew.numerics.empty_boxes import Box, Condition
from unskew.numerics.typing import BoolArray
from unskew.population.encode import ColumnCodes
from unskew.population.kinds import Kind

__all__ = ["Label", "border_text", "describe_box", "describe_unseen", "shortest_between"]


class Label(NamedTuple):
    """The name of a feature of the search: a column, or one value of it."""

    column: str
    value: str | None
    """Of a category; None for the column as a number."""
    format_border: Callable[[float, float], str]
    """Writes a number between two others in the column's units."""


def describe_box(box: Box, labels: Sequence[Label]) -> str:
    """Write a box in the columns' names and units."""
    by_feature: dict[int, list[Condition]] = {}
    for condition in box.conditions:
        by_feature.setdefault(condition.feature, []).append(condition)
    return " and ".join(_describe(labels[f], found, labels) for f, found in by_feature.items())


def _describe(label: Label, conditions: Sequence[Condition], labels: Sequence[Label]) -> str:
    above = next((c for c in conditions if c.above), None)
    below = next((c for c in conditions if not c.above), None)
    if label.value is not None:
        is_or_not = "=" if above is not None else "is not"
        if label.value == "missing":
            return f"{label.column} is{'' if above is not None else ' not'} missing"
        values = [each.value for each in labels if each.column == label.column]
        others = [value for value in values if value not in (label.value, "missing")]
        if above is None and len(others) == 1:
            return f"{label.column} = {others[0]}"
        return f"{label.column} {is_or_not} {label.value}"
    if above is None or below is None:
        only = above or below
        assert only is not None
        border = label.format_border(*only.gap)
        if border in ("true", "false"):
            return f"{label.column} = {'true' if above is not None else 'false'}"
        return f"{label.column} {'>' if above is not None else '≤'} {border}"
    low, high = (label.format_border(*condition.gap) for condition in (above, below))
    return f"{low} < {label.column} ≤ {high}"


def border_text(codes: ColumnCodes, column: int, low: float, high: float) -> str:
    """Write a border between two values of a column, as short as possible."""
    if codes.kinds[column] == Kind.TIME:
        whole_day = float(np.ceil(low))
        return codes.format_value(column, whole_day if low <= whole_day < high else low)
    if pa.types.is_boolean(codes.types[column]):
        return "true"
    return shortest_between(low, high)


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
            return _grouped(number)
    return f"{low:,.17g}"


def _grouped(number: Decimal) -> str:
    if number == 0:
        return "0"
    if 1e-4 <= abs(number) < 1e15:
        return f"{number.normalize():,f}"
    return f"{float(number):g}"


def describe_unseen(codes: ColumnCodes, rows: pa.RecordBatch, column: int, where: BoolArray) -> str:
    """Name the values of a column that no sample row has."""
    name = codes.names[column]
    values = rows.column(column).filter(pa.array(where))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    missing = values.is_null().to_numpy(zero_copy_only=False) | _is_nan(values)
    if missing.all():
        return f"{name} is missing"
    if codes.kinds[column] != Kind.CATEGORY:
        return f"{name} is not missing"
    counts = sorted(values.drop_null().value_counts().to_pylist(), key=lambda c: -c["counts"])
    shown = [str(entry["values"]) for entry in counts]
    if len(shown) > 3:
        shown = [*shown[:3], f"{len(shown) - 3:,} more that the sample lacks"]
    return f"{name} = " + " or ".join(shown) + (" or missing" if missing.any() else "")


def _is_nan(values: pa.Array) -> Any:
    if not pa.types.is_floating(values.type):
        return np.zeros(len(values), dtype=bool)
    return np.isnan(values.to_numpy(zero_copy_only=False))
