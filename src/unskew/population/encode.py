"""Rows to numbers, in two steps.

:class:`ColumnCodes` makes one number of every value, which is all that a tree or a table of
distinct points needs. :class:`FeatureSpace` goes on, with scikit-learn's transformers, to a space
in which distances mean something, which is what clusters and kernels need. Both are learned from
the sample alone, so that the population is still read only once.

===================  ================================  ==========================================
a column of          becomes, as codes                 becomes, in the feature space
===================  ================================  ==========================================
numbers, booleans    the number                        the number, scaled as asked
dates and times      days since the sample's first     the same, scaled as asked
text, categories     its rank among the sample's       one-hot; beyond ``MAX_CATEGORIES`` the
                     categories, in sorted order       rarest in the sample share one column
a missing value      NaN                               the sample's mean, and an indicator column
===================  ================================  ==========================================

A value that only the population has, a category or a missing value that no sample row shows in that
column, makes its row *novel*: no sample row can stand for it. Its code is -1 (NaN if missing) and
its one-hot columns are all zero.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unskew.errors import InputError
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.arrow_bytes import bytes_of_table, table_of_bytes
from unskew.population.kinds import Kind, as_doubles, check_kinds, kind_of

__all__ = ["MAX_CATEGORIES", "ColumnCodes", "Encoded", "FeatureSpace", "Scaling"]

MAX_CATEGORIES = 64
"""How many one-hot columns a column of categories gets at most."""

Scaling = Literal["standard", "range"] | None

_MICROSECONDS_A_DAY = 86_400_000_000
_LARGEST_EXACT = 2**53


class Encoded(NamedTuple):
    """Rows as numbers, and which of them hold a value that only the population has."""

    values: FloatArray
    novel: BoolArray | None
    """None where no row is novel, which is the common case and costs nothing."""


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
    Encoded(values=array([[41.5, -1. ]]), novel=array([ True]))
    """

    def __init__(self, *, dtype: type[np.float64 | np.float32] = np.float64) -> None:
        self.dtype = dtype

    def fit(self, sample: pa.RecordBatch) -> Self:
        """Learn the categories, the origin of time and where values are missing."""
        self.names: list[str] = sample.schema.names
        self.types: list[pa.DataType] = sample.schema.types
        self._check_kinds(sample, side="sample")
        self.columns = [_column_code(column) for column in sample.columns]
        self.has_missing: BoolArray = np.ones(len(self.names), dtype=bool)  # nothing is novel yet
        self.has_missing = _any(np.isnan(self.transform(sample, side="sample").values), axis=0)
        return self

    @property
    def kinds(self) -> list[Kind]:
        """What each column holds."""
        return [kind_of(kind) for kind in self.types]

    def __getstate__(self) -> dict[str, Any]:
        if "types" not in self.__dict__:
            return self.__dict__.copy()
        fields = pa.schema(list(zip(self.names, self.types, strict=True)))
        return {**self.__dict__, "types": bytes_of_table(fields.empty_table())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "types" in state:
            self.types = table_of_bytes(state["types"]).schema.types

    def transform(self, batch: pa.RecordBatch, *, side: str) -> Encoded:
        """Return the codes of ``batch``, whose columns are the sample's in the sample's order.

        ``side`` is "sample" or "population": the error message says where a bad value is.
        """
        self._check_kinds(batch, side)
        values = np.empty((batch.num_rows, len(self.columns)), dtype=self.dtype)
        novel: BoolArray | None = None
        # An overflow becomes infinite, and two of them NaN, which is looked for below.
        with np.errstate(over="ignore", invalid="ignore"):
            for position, (code, column) in enumerate(
                zip(self.columns, batch.columns, strict=True)
            ):
                numbers, unknown = self._encode(code, column, position, side)
                values[:, position] = numbers
                novel = _either(novel, unknown)
            # One sum tells whether anything is missing or infinite; mostly nothing is.
            if not np.isfinite(values.sum()):
                self._check_finite(values, batch, side)
                missing = _any(np.isnan(values[:, ~self.has_missing]), axis=1)
                novel = _either(novel, missing if missing.any() else None)
        return Encoded(values, novel)

    def encode_column(self, column: pa.Array, position: int, *, side: str) -> FloatArray:
        """Return the codes of one column, as :meth:`transform` would; novel values are -1."""
        check_kinds(self.names[position], self.types[position], column.type, side=side)
        code = self.columns[position]
        values = self._encode(code, column, position, side)[0]
        return np.where(np.isnan(values), np.nan, -1.0) if isinstance(code, _EmptyCode) else values

    def n_categories(self, position: int) -> int:
        """Return how many categories the sample has in a column; 0 unless it holds some."""
        code = self.columns[position]
        return len(code.categories) if isinstance(code, _CategoryCode) else 0

    def is_all_missing(self, position: int) -> bool:
        """Whether a column is missing throughout the sample, so that any value at all is novel."""
        return isinstance(self.columns[position], _EmptyCode)

    def is_wide_whole(self, position: int) -> bool:
        """Whether the sample holds whole numbers that may be too wide for floating point."""
        code = self.columns[position]
        return isinstance(code, _NumberCode) and code.whole

    def counts_categories(self, position: int) -> bool:
        """Whether the codes of a column are ranks of categories, and so not to be averaged."""
        return isinstance(self.columns[position], _CategoryCode | _EmptyCode)

    def _encode(
        self, code: _Code, column: pa.Array, position: int, side: str
    ) -> tuple[FloatArray, BoolArray | None]:
        try:
            return code.encode(column)
        except (pa.ArrowException, InputError) as error:
            raise InputError(
                f"Column '{self.names[position]}' of the {side} cannot be used: {error}"
            ) from error

    def is_novel(self, values: FloatArray, column: int) -> BoolArray:
        """Return which codes of a column stand for values that no sample row has."""
        code = self.columns[column]
        if isinstance(code, _EmptyCode):
            return ~np.isnan(values)
        novel = values == -1.0 if isinstance(code, _CategoryCode) else np.zeros(len(values), bool)
        return novel if self.has_missing[column] else novel | np.isnan(values)

    def tell(self, column: int, code: float) -> str:
        """Return a code as a person would write the value."""
        return self.columns[column].tell(code, self.types[column])

    def _check_kinds(self, batch: pa.RecordBatch, side: str) -> None:
        for name, kind, other in zip(self.names, self.types, batch.schema.types, strict=True):
            if kind != other or kind_of(kind) == Kind.OTHER:
                check_kinds(name, kind, other, side=side)

    def _check_finite(self, values: FloatArray, batch: pa.RecordBatch, side: str) -> None:
        for position in np.flatnonzero(np.isinf(values).any(axis=0)):
            row = int(np.flatnonzero(np.isinf(values[:, position]))[0])
            raise InputError(
                f"Column '{self.names[position]}' of the {side} holds "
                f"{batch.column(int(position))[row]}, which is infinity or a value too large for "
                f"{np.dtype(self.dtype)}. Replace it, or rescale the column."
            )


class FeatureSpace:
    """A space of numbers in which the distance between rows means something.

    Parameters
    ----------
    scaling : {"standard", "range", None}
        Numbers and times with mean 0 and variance 1 on the sample, or from 0 to 1 on the sample, or
        as they are.

    Examples
    --------
    >>> sample = pa.record_batch({"age": [30, 40], "town": ["Ulm", "Bonn"]})
    >>> space = FeatureSpace(scaling="standard").fit(sample)
    >>> space.transform(sample, side="sample").values
    array([[-1.,  0.,  1.], [ 1.,  1.,  0.]])
    """

    def __init__(self, *, scaling: Scaling = "standard") -> None:
        self.scaling = scaling

    def fit(self, sample: pa.RecordBatch) -> Self:
        """Learn scales, categories and indicators from the sample."""
        self.codes = ColumnCodes().fit(sample)
        transformer = _feature_transformer(self.codes, self.scaling)
        with np.errstate(over="ignore", invalid="ignore"):  # whoever needs finite points checks
            transformer.fit(self.codes.transform(sample, side="sample").values)
        self._map = _FeatureMap.of(transformer)
        return self

    def transform(self, batch: pa.RecordBatch, *, side: str) -> Encoded:
        """Return the rows of ``batch`` as points of the space."""
        codes = self.codes.transform(batch, side=side)
        with np.errstate(over="ignore", invalid="ignore"):
            return Encoded(self._map.apply(codes.values), codes.novel)

    @property
    def n_features(self) -> int:
        """The dimension of the space."""
        return self._map.n_features


class _OneHot(NamedTuple):
    """One column of categories: which of the one-hot columns each of its codes has, -1 for none."""

    position: int
    codes: FloatArray
    outputs: IntArray
    missing: int
    """The output of a missing value."""

    @property
    def width(self) -> int:
        return int(max(self.outputs.max(initial=-1), self.missing)) + 1

    def of(self, column: FloatArray) -> IntArray:
        """Return each row's one-hot column."""
        if not len(self.codes):
            return np.where(np.isnan(column), self.missing, -1)
        place = np.minimum(np.searchsorted(self.codes, column), len(self.codes) - 1)
        known = np.where(self.codes[place] == column, self.outputs[place], -1)
        return np.where(np.isnan(column), self.missing, known)


class _FeatureMap(NamedTuple):
    """What scikit-learn's transformers have learned, applied as they do, by NumPy alone.

    The map may then travel to machines without scikit-learn.
    """

    numbers: IntArray
    means: FloatArray
    """What stands in for a missing number."""
    shift: FloatArray
    scale: FloatArray
    range_first: bool
    """Whether a number is multiplied and then shifted, as MinMaxScaler does, or the reverse."""
    indicators: IntArray
    one_hots: list[_OneHot]

    @classmethod
    def of(cls, transformer: Any) -> _FeatureMap:
        """Read the map off a fitted ColumnTransformer."""
        parts = {name: (part, columns) for name, part, columns in transformer.transformers_}
        pipeline, numbers = parts["number"]
        means = shift = scale = np.empty(0)
        range_first = False
        if len(numbers):
            imputer, scaler = (step for _, step in pipeline.steps)
            means = imputer.statistics_
            shift, scale = np.zeros(len(numbers)), np.ones(len(numbers))
            range_first = hasattr(scaler, "min_")
            if hasattr(scaler, "scale_"):
                shift, scale = scaler.min_ if range_first else scaler.mean_, scaler.scale_
        one_hot, categories = parts["category"]
        return cls(
            numbers,
            means,
            shift,
            scale,
            range_first,
            parts["missing"][1],
            [
                _one_hot(int(position), known, rare)
                for position, known, rare in zip(
                    categories,
                    getattr(one_hot, "categories_", []),
                    getattr(one_hot, "infrequent_categories_", []),
                    strict=True,
                )
            ],
        )

    @property
    def n_features(self) -> int:
        one_hot_columns = sum(one_hot.width for one_hot in self.one_hots)
        return len(self.numbers) + len(self.indicators) + one_hot_columns

    def apply(self, codes: FloatArray) -> FloatArray:
        """Return the points of rows of codes."""
        points = np.zeros((len(codes), self.n_features))
        numbers = points[:, : len(self.numbers)]
        numbers[:] = codes[:, self.numbers]
        missing = np.isnan(numbers)
        if missing.any():
            np.copyto(numbers, self.means, where=missing)
        if self.range_first:
            numbers *= self.scale
            numbers += self.shift
        else:
            numbers -= self.shift
            numbers /= self.scale
        begin = len(self.numbers) + len(self.indicators)
        points[:, len(self.numbers) : begin] = np.isnan(codes[:, self.indicators])
        for one_hot in self.one_hots:
            output = one_hot.of(codes[:, one_hot.position])
            rows = np.flatnonzero(output >= 0)
            points[rows, begin + output[rows]] = 1.0
            begin += one_hot.width
        return points


def _one_hot(position: int, categories: FloatArray, rare: FloatArray | None) -> _OneHot:
    """Give one-hot columns as OneHotEncoder does: to frequent categories, then one to the rest."""
    is_rare = np.zeros(len(categories), dtype=bool)
    if rare is not None:
        is_rare = np.isin(categories, rare) | (np.isnan(categories) & np.isnan(rare).any())
    outputs = np.where(is_rare, np.count_nonzero(~is_rare), np.cumsum(~is_rare) - 1)
    is_missing = np.isnan(categories)
    missing = int(outputs[is_missing][0]) if is_missing.any() else -1
    return _OneHot(position, categories[~is_missing], outputs[~is_missing], missing)


def _feature_transformer(codes: ColumnCodes, scaling: Scaling) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import MissingIndicator, SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import (
        FunctionTransformer,
        MinMaxScaler,
        OneHotEncoder,
        StandardScaler,
    )

    is_category = np.array([kind == Kind.CATEGORY for kind in codes.kinds])
    scaler = {
        "standard": StandardScaler(),
        "range": MinMaxScaler(),
        None: FunctionTransformer(feature_names_out="one-to-one"),
    }[scaling]
    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), scaler)
    one_hot = OneHotEncoder(
        handle_unknown="ignore", max_categories=MAX_CATEGORIES, sparse_output=False
    )
    return ColumnTransformer(
        [
            ("number", numbers, np.flatnonzero(~is_category)),
            (
                "missing",
                MissingIndicator(features="all"),
                np.flatnonzero(~is_category & codes.has_missing),
            ),
            ("category", one_hot, np.flatnonzero(is_category)),
        ],
        sparse_threshold=0,
    )


class _NumberCode:
    """Numbers and booleans as they are."""

    whole = False
    """Whether the sample holds wide whole numbers; what they are compared with is whole too."""

    def __init__(self, sample: pa.DataType) -> None:
        self.whole = bool(types.is_int64(sample) or types.is_uint64(sample))

    def encode(self, column: pa.Array) -> tuple[FloatArray, None]:
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        wide = types.is_int64(column.type) or types.is_uint64(column.type)
        wide |= self.whole and types.is_floating(column.type)  # so are they read from CSV
        if not types.is_floating(column.type) or types.is_float16(column.type):
            column = as_doubles(column)
        values = column.to_numpy(zero_copy_only=False)
        if wide and ((np.abs(values) >= _LARGEST_EXACT) & ~np.isinf(values)).any():
            raise InputError(
                "it holds whole numbers beyond 2**53, which floating point cannot tell apart. If "
                "they name things, convert them to text."
            )
        return values, None

    def tell(self, code: float, kind: pa.DataType) -> str:
        return str(bool(code)).lower() if types.is_boolean(kind) else f"{code:,.6g}"


class _TimeCode:
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

    def tell(self, code: float, kind: pa.DataType) -> str:
        moment = pa.scalar(self.origin + round(code * _MICROSECONDS_A_DAY), pa.int64())
        if types.is_date(kind) or types.is_timestamp(kind):
            told = str(moment.cast(pa.timestamp("us")))
            return told.removesuffix(".000000").removesuffix(" 00:00:00")
        if types.is_time(kind):
            return str(moment.cast(pa.time64("us"))).removesuffix(".000000")
        return f"{moment.as_py() / _MICROSECONDS_A_DAY:,.6g} days"

    @staticmethod
    def microseconds(column: pa.Array) -> pa.Array:
        kind = column.type
        if types.is_date(kind) or types.is_timestamp(kind):
            common = pa.timestamp("us", tz=getattr(kind, "tz", None))
        else:
            common = pa.time64("us") if types.is_time(kind) else pa.duration("us")
        # From nanoseconds the cast cuts digits off, which is meant; from seconds it may overflow.
        exact = getattr(kind, "unit", None) != "ns"
        return column.cast(common, safe=exact).cast(pa.int64())


class _CategoryCode:
    """The rank of a category among the sample's, in sorted order."""

    def __init__(self, sample: pa.Array) -> None:
        indices, values = self._indices_and_values(sample)
        present = values.take(pc.unique(indices.drop_null()))  # a dictionary may list more
        self.categories = pc.unique(present).drop_null().sort()

    def __getstate__(self) -> dict[str, Any]:
        return {"categories": self.categories.to_pylist()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.categories = pa.array(state["categories"], pa.large_string())

    def encode(self, column: pa.Array) -> tuple[FloatArray, BoolArray | None]:
        indices, values = self._indices_and_values(column)
        codes = np.full(len(values) + 1, np.nan)  # the last one serves rows that are missing
        ranks = pc.index_in(values, value_set=self.categories).fill_null(-1)
        codes[:-1] = np.where(_valid(values), ranks.to_numpy(zero_copy_only=False), np.nan)
        numbers = codes[indices.fill_null(len(values)).to_numpy(zero_copy_only=False)]
        unknown: BoolArray = numbers == -1.0
        return numbers, unknown if unknown.any() else None

    def tell(self, code: float, kind: pa.DataType) -> str:  # noqa: ARG002
        return str(self.categories[int(code)])

    @staticmethod
    def _indices_and_values(column: pa.Array) -> tuple[pa.Array, pa.Array]:
        # Only the few distinct values are compared as text, never each row's.
        if not types.is_dictionary(column.type):
            column = column.dictionary_encode()
        values = column.dictionary
        # 1, 1.0, true and 1.00 are one category, however it is stored.
        match kind_of(values.type):
            case Kind.NUMBER:
                numbers = as_doubles(values)
                values = pc.if_else(pc.is_nan(numbers), None, numbers)
            case Kind.TIME:
                values = _TimeCode.microseconds(values)
        return column.indices.cast(pa.int64()), values.cast(pa.large_string())


class _EmptyCode:
    """A column that is missing throughout the sample: any value at all is novel."""

    def encode(self, column: pa.Array) -> tuple[FloatArray, BoolArray | None]:
        present = _valid(column)
        if types.is_floating(column.type):
            present &= ~np.isnan(column.to_numpy(zero_copy_only=False))
        values = np.where(present, 0.0, np.nan)
        return values, present if present.any() else None

    def tell(self, code: float, kind: pa.DataType) -> str:  # noqa: ARG002
        return "missing" if np.isnan(code) else "present"


_Code = _NumberCode | _TimeCode | _CategoryCode | _EmptyCode


def _column_code(sample: pa.Array) -> _Code:
    if _all_missing(sample):
        return _EmptyCode()
    match kind_of(sample.type):
        case Kind.TIME:
            return _TimeCode(sample)
        case Kind.CATEGORY:
            return _CategoryCode(sample)
        case _:
            return _NumberCode(sample.type)


def _all_missing(column: pa.Array) -> bool:
    present = column.drop_null()
    if types.is_floating(column.type):
        present = present.filter(pc.invert(pc.is_nan(present)))
    return len(present) == 0


def _valid(column: pa.Array) -> BoolArray:
    valid: BoolArray = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _any(marks: BoolArray, *, axis: int) -> BoolArray:
    return np.asarray(marks.any(axis=axis))


def _either(left: BoolArray | None, right: BoolArray | None) -> BoolArray | None:
    if left is None or right is None:
        return left if right is None else right
    return left | right
