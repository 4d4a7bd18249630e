"""The kinds of columns (numbers, categories, times), and which types can be compared.

An Arrow type is how values are stored; a kind is what they mean. A sample read by pandas and a
population in Parquet often differ in type and rarely in kind.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unskew.errors import InputTypeError, TypeMismatchError
from unskew.numerics.typing import FloatArray

AnyRows = TypeVar("AnyRows", pa.Table, pa.RecordBatch)
_LARGEST_EXACT = 2**53


class Kind(StrEnum):
    """The kind of a column; the value completes the sentence "this column holds …"."""

    NUMBER = "numbers"
    CATEGORY = "text or categories"
    TIME = "dates or times"
    EMPTY = "only missing values"
    OTHER = "values that cannot be compared"


def kind_of(kind: pa.DataType) -> Kind:
    """Return the kind of a column of this Arrow type.

    Examples
    --------
    >>> kind_of(pa.int8()), kind_of(pa.bool_()), kind_of(pa.large_string())
    (<Kind.NUMBER: 'numbers'>, <Kind.NUMBER: 'numbers'>, <Kind.CATEGORY: 'text or categories'>)
    """
    if types.is_dictionary(kind):
        return Kind.OTHER if kind_of(kind.value_type) == Kind.OTHER else Kind.CATEGORY
    if is_text(kind):
        return Kind.CATEGORY
    if types.is_temporal(kind):
        return Kind.OTHER if types.is_interval(kind) else Kind.TIME
    if types.is_primitive(kind) or types.is_decimal(kind):
        return Kind.NUMBER
    return Kind.EMPTY if types.is_null(kind) else Kind.OTHER


def is_text(kind: pa.DataType) -> bool:
    """Return whether this is one of Arrow's text types."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def as_doubles(column: pa.Array) -> pa.Array:
    """Convert numbers to the nearest doubles.

    Examples
    --------
    >>> from decimal import Decimal
    >>> as_doubles(pa.array([Decimal("0.3")])).to_pylist()
    [0.3]
    """
    if types.is_decimal(column.type):
        # Arrow's own cast scales in floating point and sometimes misses the nearest double.
        column = column.cast(pa.large_string())
    return column.cast(pa.float64(), safe=False)


def beyond_exact(column: pa.Array, *, whole: bool) -> bool:
    """Whether whole numbers are too large for doubles; ``whole`` is what the sample holds."""
    if types.is_int64(column.type) or types.is_uint64(column.type):
        low, high = pc.min_max(column).as_py().values()
        return low is not None and max(-low, high) >= _LARGEST_EXACT
    if not (whole and types.is_floating(column.type)):  # so are they read from CSV
        return False
    values = column.to_numpy(zero_copy_only=False)
    return bool(((np.abs(values) >= _LARGEST_EXACT) & ~np.isinf(values)).any())


def precision_of(kind: pa.DataType) -> str:
    """Return the floating-point type that is narrower than a double; empty if this is none.

    Examples
    --------
    >>> precision_of(pa.float32()), precision_of(pa.int8()), precision_of(pa.float64())
    ('float32', '', '')
    """
    if types.is_dictionary(kind):
        kind = kind.value_type
    narrow = types.is_float16(kind) or types.is_float32(kind)
    return f"float{kind.bit_width}" if narrow else ""


def rounded(values: FloatArray, precision: str) -> FloatArray:
    """Round numbers to a narrower type, all but those beyond its range.

    Examples
    --------
    >>> rounded(np.array([0.1, 1e300]), "float32").tolist()
    [0.10000000149011612, 1e+300]
    """
    if not precision or values.dtype.itemsize <= np.dtype(precision).itemsize:
        return values
    with np.errstate(over="ignore"):
        narrow: FloatArray = values.astype(precision)
        beyond = np.isinf(narrow) & np.isfinite(values)
        return np.where(beyond, values, narrow) if beyond.any() else narrow


def in_common_form(column: pa.Array) -> pa.Array:
    """Convert a column to the common type of all types that can be compared with it.

    Examples
    --------
    >>> in_common_form(pa.array([True])).type, in_common_form(pa.array([1], pa.date32())).type
    (DataType(double), TimestampType(timestamp[us]))
    """
    common = _common_type(column.type)
    if common is None:
        return column
    if common == pa.float64():
        return as_doubles(column)
    # From nanoseconds the cast cuts digits off, which is meant; from seconds it may overflow.
    return column.cast(common, safe=getattr(column.type, "unit", None) != "ns")


def _common_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type in which this type is compared with others; None if it cannot be compared."""
    match kind_of(kind):
        case Kind.NUMBER:
            return pa.float64()
        case Kind.CATEGORY:
            return pa.large_string()
        case Kind.EMPTY:
            return pa.null()
        case Kind.OTHER:
            return None
    if types.is_time(kind) or types.is_duration(kind):
        return pa.time64("us") if types.is_time(kind) else pa.duration("us")
    # Zoned and naive timestamps are not comparable; dates are naive.
    return pa.timestamp("us", tz=None if getattr(kind, "tz", None) is None else "UTC")


def without_views(rows: AnyRows) -> AnyRows:
    """Convert Arrow's string views to plain strings, because Arrow cannot filter views yet."""
    for position, kind in enumerate(rows.schema.types):
        if types.is_string_view(kind):
            text = rows.column(position).cast(pa.large_string())
            rows = rows.set_column(position, rows.schema.names[position], text)
    return rows


def reading_type(sample: pa.DataType) -> pa.DataType | None:
    """Return the type as which to read an untyped (CSV) column, given the sample's type."""
    match kind_of(sample):
        case Kind.CATEGORY:
            return pa.string()
        case Kind.NUMBER:
            return pa.bool_() if types.is_boolean(sample) else pa.float64()
        case Kind.TIME:
            return pa.timestamp("us", tz=sample.tz) if types.is_timestamp(sample) else sample
        case _:
            return None


def can_reconcile(sample: pa.DataType, population: pa.DataType) -> bool:
    """Return whether values of these two types can be compared.

    Examples
    --------
    >>> can_reconcile(pa.int64(), pa.float32()), can_reconcile(pa.int64(), pa.string())
    (True, False)
    """
    # Compare categories by value: a dictionary in one table is often plain in the other.
    one, other = (
        _common_type(kind.value_type if types.is_dictionary(kind) else kind)
        for kind in (sample, population)
    )
    if one is None or other is None:
        return False
    return one == other or pa.null() in (one, other)


def check_kinds(
    column: str, sample: pa.DataType, other: pa.DataType, *, side: str = "population"
) -> None:
    """Raise an error if a column has incomparable types in the sample and on the other side."""
    if can_reconcile(sample, other):
        return
    for place, kind in (("sample", sample), (side, other)):
        if kind_of(kind) == Kind.OTHER:
            raise InputTypeError(
                f"Column '{column}' of the {place} is of type {kind}, which unskew cannot compare. "
                "Convert it to numbers, text or dates, or leave it out."
            )
    raise TypeMismatchError(
        f"Column '{column}' holds {_words(sample)} in the sample (type {sample}) and "
        f"{_words(other)} in the {side} (type {other}). Convert one of them."
    )


def _words(kind: pa.DataType) -> str:
    """Return what a column of this type holds; of categories, whether they are text."""
    if types.is_dictionary(kind) and kind_of(kind.value_type) != Kind.CATEGORY:
        return f"categories that are {kind_of(kind.value_type)}"
    return kind_of(kind)
