"""Rows to numbers, in two steps.

:class:`ColumnCodes` makes one number of every value, which is all that a tree or a table of
distinct points needs. :class:`~unskew.rows.design.Design` goes on to a space in
which distances are meaningful, which clusters and kernels need. Both are learned from the sample
alone, so that the population is still read only once.

===================  ================================  ==========================================
a column of          becomes, as codes                 becomes, in the feature space
===================  ================================  ==========================================
numbers, booleans    the number                        the number, scaled as asked
dates and times      days since the sample's first     the same, scaled as asked
text, categories     its rank among the sample's       one-hot; beyond ``MAX_CATEGORIES`` the
                     categories, in sorted order       rarest in the sample share one column
a missing value      NaN                               the sample's mean, and an indicator column
===================  ================================  ==========================================

A category that no sample row has in that column, or a missing value in a column without missing
sample values, is *unseen*: no sample row can represent the population row. Its code is -1 (NaN if
missing) and its one-hot columns are all zero.

Numbers are compared in the sample's type: where it has single or half precision, those of the
population are rounded to it, as the sample's once were. What the type cannot hold (a fraction
beside integers, a number beyond its range) stays as it is, and no sample row has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unskew.errors import InputError
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.rows.kinds import (
    Kind,
    as_doubles,
    beyond_exact,
    check_kinds,
    in_common_form,
    kind_of,
    precision_of,
    rounded,
)
from unskew.rows.tables import bytes_of_table, table_of_bytes

_MICROSECONDS_A_DAY = 86_400_000_000


class Encoded(NamedTuple):
    """Rows as numbers, and which of them hold a value that no sample row has."""

    values: FloatArray
    unseen: BoolArray | None
    """None where no row holds one, which is the common case and costs nothing."""


class ColumnCodes:
    """One number for every value of every column.

    Parameters
    ----------
    dtype : {numpy.float64, numpy.float32}
        Of the numbers. scikit-learn's trees compare in float32.

    Examples
    --------
    >>> sample = pa.record_batch({"age": [30, None], "town": ["Ulm", "Bonn"]})
    >>> population = pa.record_batch({"age": [41.5], "town": ["Kiel"]})
    >>> codes = ColumnCodes().fit(sample)
    >>> codes.transform(sample, side="sample").values
    array([[30.,  1.], [nan,  0.]])
    >>> codes.transform(population, side="population")
    Encoded(values=array([[41.5, -1. ]]), unseen=array([ True]))
    """

    def __init__(self, *, dtype: type[np.float64 | np.float32] = np.float64) -> None:
        self.dtype = dtype

    def fit(self, sample: pa.RecordBatch) -> Self:
        """Learn the categories, the origin of time and where values are missing."""
        self.fit_transform(sample)
        return self

    def fit_transform(
        self, sample: pa.RecordBatch, *, encoded: pa.RecordBatch | None = None
    ) -> FloatArray:
        """Learn from the sample and return its codes.

        ``encoded`` is the sample with dictionaries of its texts, where there are such.
        """
        self.__dict__.pop("kinds", None)
        self.names: list[str] = sample.schema.names
        self.types: list[pa.DataType] = sample.schema.types
        self._check_kinds(sample, side="sample")
        sample = sample if encoded is None else encoded
        self.columns = [_column_code(column) for column in sample.columns]
        self.has_missing: BoolArray = np.ones(len(self.names), dtype=bool)  # nothing is unseen yet
        values = self.transform(sample, side="sample").values
        self.has_missing = np.zeros(len(self.names), dtype=bool)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isnan(values.sum()):  # one sum shows whether anything is missing
                self.has_missing = np.asarray(np.isnan(values).any(axis=0))
        return values

    def joined(self, other: pa.RecordBatch) -> ColumnCodes:
        """Return codes that treat the sample and other rows alike, for a comparison of the two.

        They know the categories of both, and a column that the sample leaves empty takes its kind
        from the other rows.

        Examples
        --------
        >>> codes = ColumnCodes().fit(pa.record_batch({"town": ["Ulm", "Bonn"]}))
        >>> other = pa.record_batch({"town": ["Kiel", None]})
        >>> codes.joined(other).transform(other, side="population").values
        array([[ 1.], [nan]])
        """
        twin = self.in_precision(self.dtype)
        pairs = list(zip(self.columns, other.columns, strict=True))
        twin.columns = [code.joined(column) for code, column in pairs]
        empty = [isinstance(code, EmptyCode) for code in self.columns]
        kinds = zip(empty, self.types, other.schema.types, strict=True)
        twin.__dict__.pop("kinds", None)
        twin.types = [second if none else first for none, first, second in kinds]
        twin.has_missing = self.has_missing | [not _present(column).all() for _, column in pairs]
        return twin

    def in_precision(self, dtype: type[np.float64 | np.float32]) -> ColumnCodes:
        """Return the same codes in another floating-point type."""
        twin = ColumnCodes(dtype=dtype)  # copy.copy would write and read the types as bytes
        twin.__dict__.update(self.__dict__, dtype=dtype)
        return twin

    def of_rows(self, values: FloatArray) -> ColumnCodes:
        """Return the codes where the sample has only rows with these codes left.

        Every value keeps its number, so that rows of both can stand in one array. What none of
        these rows has is unseen.

        Examples
        --------
        >>> codes = ColumnCodes().fit(pa.record_batch({"town": ["Bonn", "Kiel", "Ulm"]}))
        >>> some = codes.of_rows(np.array([[0.0], [2.0]]))
        >>> some.transform(pa.record_batch({"town": ["Kiel", "Ulm"]}), side="population")
        Encoded(values=array([[-1.], [ 2.]]), unseen=array([ True, False]))
        """
        twin = self.in_precision(self.dtype)
        twin.has_missing = np.asarray(np.isnan(values).any(axis=0))
        pairs = zip(self.columns, values.T, strict=True)
        twin.columns = [_code_of_rows(code, column) for code, column in pairs]
        return twin

    def select(self, positions: Sequence[int]) -> ColumnCodes:
        """Return the codes of some of the columns."""
        twin = self.in_precision(self.dtype)
        twin.__dict__.pop("kinds", None)
        for name in ("names", "types", "columns"):
            setattr(twin, name, [getattr(self, name)[place] for place in positions])
        twin.has_missing = self.has_missing[list(positions)]
        return twin

    @cached_property
    def kinds(self) -> list[Kind]:
        """What each column holds."""
        return [kind_of(kind) for kind in self.types]

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "kinds"}
        if "types" not in state:
            return state
        fields = pa.schema(list(zip(self.names, self.types, strict=True)))
        return {**state, "types": bytes_of_table(fields.empty_table())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "types" in state:
            self.types = table_of_bytes(state["types"]).schema.types

    def transform(self, batch: pa.RecordBatch, *, side: str) -> Encoded:
        """Return the codes of ``batch``, whose columns are the sample's in the sample's order.

        ``side`` is "sample" or "population": the error message says where a bad value is.
        """
        self._check_kinds(batch, side)
        # Trees, for which single precision is, read column by column; all others row by row.
        order: Literal["C", "F"] = "F" if self.dtype == np.float32 else "C"
        values = np.empty((batch.num_rows, len(self.columns)), dtype=self.dtype, order=order)
        unseen: BoolArray | None = None
        # An overflow becomes infinite, and two of them NaN, which is looked for below.
        with np.errstate(over="ignore", invalid="ignore"):
            for position, (code, column) in enumerate(
                zip(self.columns, batch.columns, strict=True)
            ):
                numbers, unknown = self._encode(code, column, position, side)
                values[:, position] = numbers
                unseen = _either(unseen, unknown)
            # One sum shows whether anything is missing or infinite; mostly nothing is.
            if not np.isfinite(values.sum()):
                self.check_finite(values, batch, side=side)
                missing = np.asarray(np.isnan(values[:, ~self.has_missing]).any(axis=1))
                unseen = _either(unseen, missing if missing.any() else None)
        return Encoded(values, unseen)

    def encode_column(self, column: pa.Array, position: int, *, side: str) -> FloatArray:
        """Return the codes of one column, as :meth:`transform` would; unseen values are -1."""
        check_kinds(self.names[position], self.types[position], column.type, side=side)
        code = self.columns[position]
        values = self._encode(code, column, position, side)[0]
        return np.where(np.isnan(values), np.nan, -1.0) if isinstance(code, EmptyCode) else values

    def n_categories(self, position: int) -> int:
        """Return how many codes the categories of a column have; 0 unless it holds some."""
        code = self.columns[position]
        return len(code.categories) if isinstance(code, CategoryCode) else 0

    def category_codes(self, position: int) -> FloatArray:
        """Return the codes of the categories that the sample has in a column, in order."""
        code = self.columns[position]
        if not isinstance(code, CategoryCode):
            return np.empty(0)
        return np.flatnonzero(_present(code.categories)).astype(np.float64)

    def counts_categories(self, position: int) -> bool:
        """Whether the codes of a column are ranks of categories, and so not to be averaged."""
        return isinstance(self.columns[position], CategoryCode | EmptyCode)

    def _encode(
        self, code: _Code, column: pa.Array, position: int, side: str
    ) -> tuple[FloatArray, BoolArray | None]:
        try:
            return code.encode(column)
        except (pa.ArrowException, InputError) as error:
            raise InputError(
                f"Column '{self.names[position]}' of the {side} cannot be used: {error}"
            ) from error

    def is_unseen(self, values: FloatArray, column: int) -> BoolArray:
        """Return which codes of a column represent values that no sample row has."""
        code = self.columns[column]
        if isinstance(code, EmptyCode):
            return ~np.isnan(values)
        unseen = values == -1.0 if isinstance(code, CategoryCode) else np.zeros(len(values), bool)
        return unseen if self.has_missing[column] else unseen | np.isnan(values)

    def format_value(self, column: int, code: float) -> str:
        """Return the value behind a code, as text."""
        if np.isnan(code):
            return "missing"
        return self.columns[column].format_value(code, self.types[column])

    def _check_kinds(self, batch: pa.RecordBatch, side: str) -> None:
        for name, kind, other in zip(self.names, self.types, batch.schema.types, strict=True):
            if kind != other or kind_of(kind) == Kind.OTHER:
                check_kinds(name, kind, other, side=side)

    def check_finite(self, values: Any, batch: pa.RecordBatch, *, side: str) -> None:
        """Refuse infinite codes, naming the column and the value."""
        for position in np.flatnonzero(np.isinf(values).any(axis=0)):
            row = int(np.flatnonzero(np.isinf(values[:, position]))[0])
            raise InputError(
                f"Column '{self.names[position]}' of the {side} holds "
                f"{batch.column(int(position))[row]}, which is infinity or a value too large for "
                f"{np.dtype(self.dtype)}. Replace it, or rescale the column."
            )


class NumberCode:
    """Numbers and booleans as they are."""

    whole = False
    """Whether the sample holds wide whole numbers; what they are compared with is whole too."""

    def __init__(self, sample: pa.DataType) -> None:
        self.whole = bool(types.is_int64(sample) or types.is_uint64(sample))
        self.precision = precision_of(sample)

    def encode(self, column: pa.Array) -> tuple[FloatArray, None]:
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if beyond_exact(column, whole=self.whole):
            raise InputError(
                "it holds whole numbers beyond 2**53, which floating point cannot distinguish. If "
                "they are identifiers, convert them to text."
            )
        if not types.is_floating(column.type):
            column = as_doubles(column)
        return rounded(column.to_numpy(zero_copy_only=False), self.precision), None

    def joined(self, other: pa.Array) -> NumberCode:  # noqa: ARG002
        return self

    def format_value(self, code: float, kind: pa.DataType) -> str:
        return str(bool(code)).lower() if types.is_boolean(kind) else f"{code:,.6g}"


class TimeCode:
    """Days since the sample's first moment: small numbers, which float32 keeps apart."""

    def __init__(self, sample: pa.Array) -> None:
        self.origin = pc.min(self.microseconds(sample)).as_py() or 0

    def encode(self, column: pa.Array) -> tuple[FloatArray, None]:
        try:
            elapsed = pc.subtract_checked(self.microseconds(column), self.origin)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"it holds a moment too far from the sample's first ({error}). Replace it by a "
                "missing value."
            ) from error
        days = elapsed.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return days / _MICROSECONDS_A_DAY, None

    def joined(self, other: pa.Array) -> TimeCode:  # noqa: ARG002
        return self

    def format_value(self, code: float, kind: pa.DataType) -> str:
        moment = pa.scalar(self.origin + round(code * _MICROSECONDS_A_DAY), pa.int64())
        if types.is_date(kind) or types.is_timestamp(kind):
            text = str(moment.cast(pa.timestamp("us")))
            return text.removesuffix(".000000").removesuffix(" 00:00:00")
        if types.is_time(kind):
            return str(moment.cast(pa.time64("us"))).removesuffix(".000000")
        return f"{moment.as_py() / _MICROSECONDS_A_DAY:,.6g} days"

    @staticmethod
    def microseconds(column: pa.Array) -> pa.Array:
        return in_common_form(column).cast(pa.int64())


class CategoryCode:
    """The rank of a category among the sample's, in sorted order."""

    def __init__(self, sample: pa.Array) -> None:
        self.precision = precision_of(sample.type)
        indices, values = self._indices_and_values(sample)
        counts = np.bincount(indices.drop_null().to_numpy(), minlength=len(values))
        present = values.filter(pa.array(counts > 0))  # a dictionary may list more
        self.categories = pc.unique(present).drop_null().sort()

    def __getstate__(self) -> dict[str, Any]:
        return {"categories": self.categories.to_pylist(), "precision": self.precision}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.categories = pa.array(state["categories"], pa.large_string())
        self.precision = state["precision"]

    def encode(self, column: pa.Array) -> tuple[FloatArray, BoolArray | None]:
        indices, values = self._indices_and_values(column)
        codes = np.full(len(values) + 1, np.nan)  # the last one serves rows that are missing
        ranks = pc.index_in(values, value_set=self.categories).fill_null(-1)
        codes[:-1] = np.where(_present(values), ranks.to_numpy(zero_copy_only=False), np.nan)
        indices = indices.fill_null(len(values)) if indices.null_count else indices
        numbers = codes[indices.to_numpy()]
        unknown: BoolArray = numbers == -1.0
        return numbers, unknown if unknown.any() else None

    def joined(self, other: pa.Array) -> CategoryCode:
        both = pa.concat_arrays([self.categories, CategoryCode(other).categories])
        return self._with(pc.unique(both).drop_null().sort())

    def of_rows(self, codes: FloatArray) -> CategoryCode:
        counts = np.bincount(
            codes[~np.isnan(codes)].astype(np.int64), minlength=len(self.categories)
        )
        if counts.all():
            return self
        # A null is no category, and keeps the place of one.
        return self._with(pc.if_else(pa.array(counts > 0), self.categories, None))

    def _with(self, categories: pa.Array) -> CategoryCode:
        twin = CategoryCode.__new__(CategoryCode)
        twin.categories, twin.precision = categories, self.precision
        return twin

    def format_value(self, code: float, kind: pa.DataType) -> str:  # noqa: ARG002
        return str(self.categories[int(code)])

    def _indices_and_values(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        # Only the few distinct values are compared as text, never each row's.
        if not types.is_dictionary(column.type):
            column = column.dictionary_encode()
        values = column.dictionary
        # 1, 1.0, true and 1.00 are one category, however it is stored.
        match kind_of(values.type):
            case Kind.NUMBER:
                numbers = as_doubles(values).to_numpy(zero_copy_only=False)
                numbers = rounded(numbers, self.precision).astype(np.float64)
                values = pa.array(numbers, from_pandas=True)
            case Kind.TIME:
                values = TimeCode.microseconds(values)
        return column.indices.cast(pa.int64()), values.cast(pa.large_string())


class EmptyCode:
    """A column that is missing throughout the sample: any value at all is unseen."""

    def encode(self, column: pa.Array) -> tuple[FloatArray, BoolArray | None]:
        present = _present(column)
        values = np.where(present, 0.0, np.nan)
        return values, present if present.any() else None

    def joined(self, other: pa.Array) -> _Code:
        return _column_code(other)

    def format_value(self, code: float, kind: pa.DataType) -> str:  # noqa: ARG002
        return "present"


_Code = NumberCode | TimeCode | CategoryCode | EmptyCode


def _column_code(sample: pa.Array) -> _Code:
    if not _present(sample).any():
        return EmptyCode()
    match kind_of(sample.type):
        case Kind.TIME:
            return TimeCode(sample)
        case Kind.CATEGORY:
            return CategoryCode(sample)
        case _:
            return NumberCode(sample.type)


def _code_of_rows(code: _Code, values: FloatArray) -> _Code:
    """Return the code of a column of which only rows with these values are left."""
    if np.isnan(values).all():
        return EmptyCode()
    return code.of_rows(values) if isinstance(code, CategoryCode) else code


def _present(column: pa.Array) -> BoolArray:
    present: BoolArray = np.ones(len(column), dtype=bool)
    if column.null_count:
        present = column.is_valid().to_numpy(zero_copy_only=False)
    if types.is_floating(column.type):
        present &= ~np.isnan(column.to_numpy(zero_copy_only=False))
    return present


def _either(left: BoolArray | None, right: BoolArray | None) -> BoolArray | None:
    if left is None or right is None:
        return left if right is None else right
    return left | right
