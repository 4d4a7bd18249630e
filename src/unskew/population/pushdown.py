"""Counts where the rows are: cells as one aggregation that the population's own engine runs.

Reading rows in batches is the rule. Where an engine cannot hand over its rows, or is far away,
cells can be counted there instead: a row's cell becomes an expression, the engine groups by it, and
only the counts travel. The expression must send every row where the encoder and the partition would
send it, to the last bit, although an engine compares in double precision and scikit-learn's trees
in single. So borders are moved: "the float32 next to x is at most t" is "x is at most b" for one
double b, and likewise for moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unskew.errors import InputError, InputTypeError, ParameterError
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.encode import ColumnCodes
from unskew.population.kinds import Kind, is_text, kind_of
from unskew.population.summaries import CellCounts, Summaries, Summary, Total

__all__ = ["CodeTests", "PushedCounts", "count_in_engine", "tree_key"]

_EPOCH = datetime(1970, 1, 1)


class PushedCounts(NamedTuple):
    """What the engine has counted, besides the cells."""

    rows: int
    mass: float
    selected: int


class CodeTests:
    """Tests of a row's codes, as expressions over the population's own columns.

    Parameters
    ----------
    encoder : ColumnCodes
        Whose codes are tested.
    columns : list of str
        The population's names of the encoder's columns.
    schema : pyarrow.Schema
        The population's.
    """

    def __init__(self, encoder: ColumnCodes, columns: Sequence[str], schema: pa.Schema) -> None:
        self._encoder = encoder
        self._columns = columns
        self._types = [schema.field(name).type for name in columns]
        for name, kind, other in zip(encoder.names, self._types, encoder.types, strict=True):
            _check_type(name, kind, other)

    def at_most(self, position: int, threshold: float) -> nw.Expr:
        """Return whether the code is at most ``threshold``; false or null where it is missing."""
        column, kind = nw.col(self._columns[position]), self._types[position]
        code = self._encoder.columns[position]
        if np.isinf(threshold):  # a tree's way to part missing values from all others
            return ~self.missing(position) if threshold > 0 else _never(column)
        if self._encoder.is_all_missing(position):  # every value has the code 0
            return ~self.missing(position) if threshold >= 0 else _never(column)
        if is_text(kind) or types.is_dictionary(kind):
            categories = code.categories.to_pylist()  # type: ignore[union-attr]
            below = categories[: max(0, int(np.floor(threshold)) + 1)]
            return column.cast(nw.String).is_in(below) if below else _never(column)
        if types.is_boolean(kind):
            if threshold >= 1:
                return ~column.is_null()
            return ~column if threshold >= 0 else _never(column)
        if kind_of(kind) == Kind.TIME:
            return _moment_at_most(column, kind, self._last_moment(code.origin, threshold))  # type: ignore[union-attr]
        return column.cast(nw.Float64) <= nw.lit(self._last_number(threshold), nw.Float64)

    def missing(self, position: int) -> nw.Expr:
        """Return whether the value is missing, which NaN is too."""
        column = nw.col(self._columns[position])
        if types.is_floating(self._types[position]):
            return column.is_null() | column.is_nan()
        return column.is_null()

    def novel(self) -> nw.Expr:
        """Return whether the row holds a value that no sample row has."""
        found = nw.lit(False)
        for position, kind in enumerate(self._types):
            if self._encoder.is_all_missing(position):
                found = found | ~self.missing(position)
                continue
            if not self._encoder.has_missing[position]:
                found = found | self.missing(position)
            if is_text(kind) or types.is_dictionary(kind):
                last = len(self._encoder.columns[position].categories) - 1  # type: ignore[union-attr]
                known = self.at_most(position, last)
                found = found | (~known & ~self.missing(position))
        return found

    def refused(self) -> dict[str, nw.Expr]:
        """Return, by column, which rows hold a number that the encoder would refuse."""
        tests = {}
        for position, kind in enumerate(self._types):
            column = nw.col(self._columns[position])
            if self._encoder.is_all_missing(position):
                continue
            if types.is_floating(kind):
                largest = float(np.finfo(self._encoder.dtype).max)
                value = column.cast(nw.Float64)
                limit = self._last_number(largest)
                if self._encoder.is_wide_whole(position):
                    limit = 2.0**53 - 1
                beyond = (value > limit) | (value < -limit)
                tests[self._encoder.names[position]] = beyond & ~self.missing(position)
            elif types.is_int64(kind) or types.is_uint64(kind):
                value = column.cast(nw.Float64)
                tests[self._encoder.names[position]] = (value >= 2.0**53) | (value <= -(2.0**53))
        return tests

    def _last_number(self, threshold: float) -> float:
        """Return the largest double whose code is at most ``threshold``."""
        if self._encoder.dtype is np.float64:
            return float(threshold)
        with np.errstate(over="ignore"):
            below = np.float32(threshold)
            if float(below) > threshold:
                below = np.nextafter(below, np.float32(-np.inf))
            above = np.nextafter(below, np.float32(np.inf))
            if np.isinf(above):  # beyond, single precision is infinite
                above = np.float64(2.0**128)
            # Between two neighbours the nearer one is taken, half-way the even one.
            border = (float(below) + float(above)) / 2
            # As doubles: NumPy would round the threshold to single precision to compare.
            fits = float(np.float32(border)) <= threshold
            return border if fits else float(np.nextafter(border, -np.inf))

    def _last_moment(self, origin: int, threshold: float) -> int:
        """Return the last microsecond whose code is at most ``threshold``."""
        low, high = -(2**62), 2**62  # the code grows with the moment, so bisection finds it
        while high - low > 1:
            middle = (low + high) // 2
            days = float(self._encoder.dtype((middle - origin) / 86_400_000_000))
            low, high = (middle, high) if days <= threshold else (low, middle)
        return low


def _check_type(name: str, kind: pa.DataType, sample: pa.DataType) -> None:
    plain = is_text(kind) or (types.is_dictionary(kind) and is_text(kind.value_type))
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    moment = types.is_date(kind) or (
        types.is_timestamp(kind) and kind.tz is None and kind.unit != "ns"
    )
    in_sample = kind_of(sample)
    fits = (
        (plain and in_sample == Kind.CATEGORY and not _has_numbers(sample))
        or (number and in_sample == Kind.NUMBER)
        or (moment and in_sample == Kind.TIME)
    )
    if not fits:
        raise InputError(
            f"Column '{name}' (type {kind} in the population, {sample} in the sample) cannot be "
            "compared within the engine. Convert it there to text, double precision, or a date or "
            "moment without a zone, or read the population with pushdown=False."
        )


def _has_numbers(sample: pa.DataType) -> bool:
    return bool(types.is_dictionary(sample) and not is_text(sample.value_type))


def _never(column: nw.Expr) -> nw.Expr:
    return column.is_null() & ~column.is_null()


def _moment_at_most(column: nw.Expr, kind: pa.DataType, last: int) -> nw.Expr:
    try:
        moment = _EPOCH + timedelta(microseconds=last)
        border = moment.date() if types.is_date(kind) else moment
    except OverflowError:  # before or after all that can be written as a date
        return ~column.is_null() if last > 0 else _never(column)
    return column <= nw.lit(border)


def count_in_engine(
    summary: Summary,
    frame: Any,
    *,
    columns: Sequence[str],
    schema: pa.Schema,
    weight: str | None,
    selected: str | None,
) -> PushedCounts:
    """Answer ``summary`` by aggregations that the frame's engine runs.

    Parameters
    ----------
    summary : CellCounts, Total, or several of them
        Empty; it is filled. Any other question needs the rows.
    frame : a lazy frame that narwhals knows
    columns : list of str
        The population's names of the sample's columns.
    schema : pyarrow.Schema
        Of the frame.
    weight, selected : str, optional
        Columns of design weights, and of marks of the sample's rows.
    """
    lazy = nw.from_native(frame).lazy()
    _check_roles(schema, weight, selected)
    seen = _count_all(lazy, schema, weight, selected)
    for part in summary.parts if isinstance(summary, Summaries) else [summary]:
        if isinstance(part, Total):
            part.rows, part.mass = seen.rows, seen.mass
        elif isinstance(part, CellCounts) and getattr(part.locator, "is_countable", False):
            _count_cells(part, part.locator, lazy, columns, schema, weight)
        else:
            asked = type(getattr(part, "locator", part)).__name__
            raise ParameterError(
                f"pushdown=True counts cells of columns or of a tree; {asked} needs the rows "
                "themselves. Use TreeWeights, HistogramWeights or FrequencyWeights, or "
                "pushdown=False."
            )
    return seen


def _check_roles(schema: pa.Schema, weight: str | None, selected: str | None) -> None:
    """Refuse the columns that reading would refuse: an engine might make numbers of text."""
    for role, column, wanted in (
        ("weight", weight, "numbers"),
        ("selected", selected, "true or false for each row"),
    ):
        if column is None:
            continue
        kind = kind_of(schema.field(column).type)
        if kind != Kind.NUMBER:
            raise InputTypeError(
                f"The column '{column}' given as {role} holds {kind}; it must hold {wanted}."
            )


def _count_all(
    lazy: Any, schema: pa.Schema, weight: str | None, selected: str | None
) -> PushedCounts:
    asked = [nw.len().alias("rows")]
    if weight is not None:
        value = nw.col(weight).cast(nw.Float64)
        bad = value.is_null() | value.is_nan() | (value < 0) | (value > np.finfo(float).max)
        asked += [value.sum().alias("mass"), bad.cast(nw.Int64).sum().alias("bad")]
    if selected is not None:
        mark = nw.col(selected)
        if not types.is_boolean(schema.field(selected).type):
            mark = mark.cast(nw.Float64) == 1
        asked.append(mark.cast(nw.Int64).sum().alias("selected"))
        asked.append(_no_mark(selected, schema).cast(nw.Int64).sum().alias("no mark"))
    row = _collected(lazy.select(*asked)).to_pylist()[0]
    if row.get("bad"):
        raise InputError(
            f"The population's weight column '{weight}' has {row['bad']} entries that are "
            "negative, missing or infinite."
        )
    if row.get("no mark"):
        raise InputError(
            f"The column '{selected}' given as selected has {row['no mark']} entries that are "
            "missing, or neither true nor false."
        )
    mass = float(row["rows"]) if weight is None else float(row["mass"] or 0.0)
    return PushedCounts(int(row["rows"]), mass, int(row.get("selected") or 0))


def _no_mark(selected: str, schema: pa.Schema) -> nw.Expr:
    """Return whether an entry is neither true nor false."""
    if types.is_boolean(schema.field(selected).type):
        return nw.col(selected).is_null()
    value = nw.col(selected).cast(nw.Float64)
    return value.is_null() | ~((value == 0) | (value == 1))


def _count_cells(
    counts: CellCounts,
    locator: Any,
    lazy: Any,
    columns: Sequence[str],
    schema: pa.Schema,
    weight: str | None,
) -> None:
    tests = CodeTests(locator.encoder, columns, schema)
    keys = {f"key{number}": key for number, key in enumerate(locator.keys(tests))}
    refused = {f"refused{number}": test for number, test in enumerate(tests.refused().values())}
    prepared = lazy.select(
        *(key.alias(name) for name, key in keys.items()),
        tests.novel().cast(nw.Int64).alias("novel"),
        *(test.cast(nw.Int64).alias(name) for name, test in refused.items()),
        (nw.lit(1.0) if weight is None else nw.col(weight).cast(nw.Float64)).alias("weight"),
    )
    grouped = prepared.group_by([*keys, "novel"]).agg(
        nw.col("weight").sum(), *(nw.col(name).sum() for name in refused)
    )
    found = _collected(grouped)
    for name, column in zip(tests.refused(), refused, strict=True):
        if (pc.sum(found.column(column)).as_py() or 0) > 0:
            raise InputError(
                f"Column '{name}' of the population holds infinity, a value too large for "
                f"{np.dtype(locator.encoder.dtype)}, or whole numbers beyond 2**53. Replace them, "
                "or convert whole numbers that name things to text."
            )
    mass = found.column("weight").to_numpy().astype(np.float64)
    codes = np.column_stack([found.column(name).to_numpy() for name in keys]).astype(np.int64)
    cells, uncovered = locator.cells_of_keys(codes)
    uncovered = uncovered | found.column("novel").to_numpy().astype(bool)
    counts.mass = float(mass.sum())
    counts.uncovered = float(mass[uncovered].sum())
    if counts.uncovered and locator.empty == "merge":
        raise InputError(
            f"{counts.uncovered / counts.mass:.1%} of the population lies in cells without sample "
            'rows, or holds values that no sample row has. empty="merge" looks for the sample row '
            'nearest to each of them, for which the rows must be read: use empty="drop", or '
            "pushdown=False."
        )
    counts.counts += np.bincount(
        cells[~uncovered], weights=mass[~uncovered], minlength=len(counts.counts)
    )


def _collected(lazy: Any) -> pa.Table:
    try:
        return lazy.collect(backend="pyarrow").to_native()
    except Exception as error:
        raise InputError(f"The population's engine could not count its rows: {error}") from error


def tree_key(
    tests: CodeTests,
    feature: IntArray,
    threshold: FloatArray,
    left: IntArray,
    right: IntArray,
    missing_left: BoolArray,
) -> nw.Expr:
    """Return the number of the leaf in which a row ends.

    A missing value goes where the tree learned to send it, as in scikit-learn.
    """

    def below(node: int) -> Any:
        if left[node] < 0:
            return nw.lit(node)
        goes_left = tests.at_most(int(feature[node]), float(threshold[node]))
        if missing_left[node]:
            goes_left = goes_left | tests.missing(int(feature[node]))
        return nw.when(goes_left).then(below(int(left[node]))).otherwise(below(int(right[node])))

    return below(0)
