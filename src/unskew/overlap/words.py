"""Regions in the user's own columns and units."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unskew.errors import UnseenValueWarning
from unskew.numerics.empty_boxes import Box, Condition
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind

_SHOWN = 5
"""How many values of a column a warning names."""


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
    name, counts = codes.names[column], count_unseen(codes, rows, column, where)
    missing = counts.pop("missing", 0)
    if not counts:
        return f"{name} is missing"
    if list(counts) == ["not missing"]:
        return f"{name} is not missing"
    shown = list(counts)
    if len(shown) > 3:
        shown = [*shown[:3], f"{len(shown) - 3:,} more that the sample lacks"]
    return f"{name} = " + " or ".join(shown) + (" or missing" if missing else "")


def count_unseen(
    codes: ColumnCodes, rows: pa.RecordBatch, column: int, where: BoolArray
) -> dict[str, int]:
    """Return the values that a column has on some rows and how often, the most frequent first.

    "missing" is one of them; where the sample has no value at all, "not missing" is the other.
    """
    values = rows.column(column).filter(pa.array(where))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    present = values.filter(pc.invert(values.is_null(nan_is_null=True)))
    missing = len(values) - len(present)
    counts = {"missing": missing} if missing else {}
    numbers = codes.kinds[column] != Kind.CATEGORY
    if numbers and codes.counts_categories(column):
        return (
            counts if missing == len(values) else {**counts, "not missing": len(values) - missing}
        )
    entries = sorted(present.value_counts().to_pylist(), key=lambda c: -c["counts"])
    shown = partial(codes.format_value, column) if numbers else str
    return counts | {shown(entry["values"]): entry["counts"] for entry in entries}


def warn_of_unseen(
    codes: ColumnCodes, rows: pa.RecordBatch, weights: FloatArray, how: str, *, what: str = "weight"
) -> UnseenValueWarning | None:
    """Return a warning of new rows with values that no sample row has, or None without such rows.

    ``how`` states how they were weighed. ``weights`` may be other numbers that rows get; ``what``
    says what they are.
    """
    values, unseen = codes.transform(rows, side="new rows")
    if unseen is None:
        return None
    found = {}
    for column, name in enumerate(codes.names):
        where = codes.is_unseen(values[:, column], column)
        if where.any():
            found[name] = count_unseen(codes, rows, column, where)
    named = []
    for name, counts in found.items():
        shown = [f"{value} ({number:,} rows)" for value, number in counts.items()]
        more = [f"{len(shown) - _SHOWN:,} more"] if len(shown) > _SHOWN else []
        named.append(f"column '{name}': {', '.join(shown[:_SHOWN] + more)}")
    low, high = weights[unseen].min(), weights[unseen].max()
    given = f"{what} {low:.4g}" if low == high else f"{what}s from {low:.4g} to {high:.4g}"
    message = (
        f"{int(unseen.sum()):,} of {len(weights):,} new rows hold values that no sample row has "
        f"({'; '.join(named)}). They get {given}, which no row like them supports: {how}."
    )
    return UnseenValueWarning(message, found)
