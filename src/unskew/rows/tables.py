"""Rows in memory: convert any table or array to an Arrow table.

All of unskew works on Arrow tables. Arrow keeps types and missing values, every dataframe library
and engine supports it, and NumPy columns are converted without a copy. A function or a model that
was made for a pandas frame gets a pandas frame again (:class:`Form`), whichever engine the rows
come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import PurePath
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from narwhals.dependencies import is_duckdb_relation
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from unskew.errors import InputError, InputTypeError, MismatchError
from unskew.numerics.cores import in_order, n_threads
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.rows.kinds import is_text, without_views

_MANY_VALUES = 100_000
"""For fewer, it is not worth starting threads."""


class ColumnLabels(NamedTuple):
    """The columns of a table, and what the caller calls them.

    Attributes
    ----------
    names : list of str
    named : bool
        Whether they have names. Columns of an array are called ``x0``, ``x1``, … and are matched by
        position.
    numbered : bool
        Whether their labels are whole numbers, as in pandas: 3 is called ``x3``.
    """

    names: list[str]
    named: bool
    numbered: bool

    @classmethod
    def from_labels(cls, labels: Sequence[Any], *, name: str) -> ColumnLabels:
        """Return those of a dataframe; ``name`` is the argument's, for the message."""
        is_text = [isinstance(label, str) for label in labels]
        if any(is_text) and not all(is_text):
            raise InputTypeError(
                f"{name} has column labels that are text and others that are not; make them all "
                "text."
            )
        if all(isinstance(one, Integral) and not isinstance(one, bool) for one in labels):
            return cls([f"x{label}" for label in labels], named=False, numbered=True)
        return cls(list(map(str, labels)), named=True, numbered=False)

    def columns_in(self, other: ColumnLabels) -> dict[str, str] | None:
        """Return the other's column of the same label for each of these; None goes by position.

        Names meet names, and whole numbers meet whole numbers, also where a file holds them as
        text. Anything else is matched by position, for which numbers must be 0, 1, 2, … in order.

        Examples
        --------
        >>> swapped = ColumnLabels.from_labels([1, 0], name="X")
        >>> swapped.columns_in(ColumnLabels(["0", "1"], named=True, numbered=False))
        {'x1': '1', 'x0': '0'}
        """
        sides = (self, other)
        # Without the x of numbers, they are as a file would hold them.
        own, others = ([one[side.numbered :] for one in side.names] for side in sides)
        whole = all(one.removeprefix("-").isdecimal() for one in [*own, *others])
        if all(side.named or (side.numbered and whole) for side in sides):
            at = dict(zip(others, other.names, strict=True))
            return {n: at[key] for n, key in zip(self.names, own, strict=True) if key in at}
        for side, labels in zip(sides, (own, others), strict=True):
            if side.numbered and labels != [str(place) for place in range(len(labels))]:
                raise MismatchError(
                    f"The columns of one table are labelled {', '.join(labels[:10])}, and those of "
                    "the other have other labels or none. They are matched by position only where "
                    "the labels are 0, 1, 2, … in order: give both tables the same labels."
                )
        return None


@dataclass(frozen=True)
class Rows:
    """A table, and whether its columns have names or whole numbers (:class:`ColumnLabels`)."""

    table: pa.Table
    named: bool
    numbered: bool = False

    @property
    def labels(self) -> ColumnLabels:
        """What the columns are called."""
        return ColumnLabels(self.table.column_names, self.named, self.numbered)

    @cached_property
    def batch(self) -> pa.RecordBatch:
        """All the rows as one record batch."""
        batches = self.table.combine_chunks().to_batches()
        if len(batches) > 1:
            raise InputError(
                "A column holds more text than one Arrow string array can (2 GB). Convert it to "
                "large_string or to categories."
            )
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self.table.schema)

    @cached_property
    def encoded(self) -> pa.RecordBatch:
        """The same with each text stored once: a dictionary, and a place in it for each row."""
        large = self.batch.num_rows * self.batch.num_columns > _MANY_VALUES
        threads = n_threads(None) if large else 1
        columns = list(in_order(_with_dictionary, self.batch.columns, threads))
        return pa.RecordBatch.from_arrays(columns, names=self.batch.schema.names)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "table": bytes_of_table(self.table),
            "named": self.named,
            "numbered": self.numbered,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Fields of a frozen dataclass cannot be assigned.
        self.__dict__.update({**state, "table": table_of_bytes(state["table"])})


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows with their weights, as a pass over a population hands them on.

    Attributes
    ----------
    batch : pyarrow.RecordBatch, or ndarray of shape (n_rows, n_features) once encoded
    weight : ndarray of shape (n_rows,)
        Design weights: how many members of the population each row represents.
    selected : ndarray of bool of shape (n_rows,), or None
        Which rows are also in the sample, where that is known.
    start : int
        The number of the first row within the population.
    unweighted : bool
        Whether every weight is known to be one.
    """

    batch: Any
    weight: FloatArray
    selected: BoolArray | None = None
    start: int = 0
    unweighted: bool = False

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def mass(self) -> float:
        """The total weight."""
        return float(len(self)) if self.unweighted else float(self.weight.sum())

    @property
    def numbers(self) -> IntArray:
        """The number of each row within the population."""
        return np.arange(self.start, self.start + len(self))


def _with_dictionary(column: pa.Array) -> pa.Array:
    return column.dictionary_encode() if is_text(column.type) else column


def is_rows(data: Any) -> bool:
    """Return whether ``data`` is a table or array that :func:`as_rows` accepts."""
    return (
        isinstance(data, np.ndarray | pa.Table | pa.RecordBatch | nw.DataFrame)
        or nw.dependencies.is_into_dataframe(data)
        or hasattr(data, "__array__")
    )


def is_spark_frame(data: Any) -> bool:
    """Return whether ``data`` is a Spark DataFrame, classic or Connect, without importing Spark."""
    kind = type(data)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def as_rows(data: Any, *, name: str) -> Rows:
    """Return ``data`` as :class:`Rows`.

    Parameters
    ----------
    data : array-like of shape (n_rows, n_columns), or an eager dataframe
        NumPy, nested lists, pandas, Polars, PyArrow, or any other table that narwhals supports or
        that has the Arrow C stream interface.
    name : str
        The name of the argument in error messages.

    Examples
    --------
    >>> as_rows([[1.0, 2.0], [3.0, 4.0]], name="X").table.column_names
    ['x0', 'x1']
    """
    if _is_lazy_or_path(data):
        raise InputTypeError(
            f"{name} is a {type(data).__name__}; it must be a table or array in memory."
        )
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        data = data.drop_columns(pandas_index_columns(data.schema))
        if len(set(data.column_names)) == data.num_columns:  # narwhals names those that are not
            table = pa.table(data.columns, names=data.column_names)
            return Rows(_checked(table, name=name, n_rows=data.num_rows), named=True)
    if isinstance(data, nw.DataFrame) or nw.dependencies.is_into_dataframe(data):
        try:
            frame = nw.from_native(data, eager_only=True)
        except DuplicateError as error:
            raise InputError(f"{name} has a column name more than once. {error}") from error
        return _from_dataframe(frame, name=name)
    if hasattr(data, "__arrow_c_stream__") and getattr(data, "ndim", 2) == 2:
        return Rows(_checked(pa.table(data), name=name), named=True)
    return _from_array(data, name=name)


def _is_lazy_or_path(data: Any) -> bool:
    return (
        type(data) is dict
        or isinstance(data, str | bytes | PurePath | nw.LazyFrame)
        or is_spark_frame(data)
        or nw.dependencies.is_polars_lazyframe(data)
        or is_duckdb_relation(data)
    )


def pandas_index_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that pandas wrote as an index.

    pandas stores an index beside the columns and marks it in the metadata; it is not a feature.
    """
    marked = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in marked if isinstance(name, str) and name in schema.names]


def table_of_array(array: NDArray[Any], *, name: str) -> pa.Table:
    """Return the columns of a two-dimensional array as an Arrow table."""
    columns = {}
    for position in range(array.shape[1]):
        column = array[:, position]
        if column.dtype.kind in "OUS":
            column = column.tolist()
        elif column.dtype.itemsize > 8:
            column = column.astype(np.float64)  # Arrow has no wider type
        elif not column.dtype.isnative:
            column = column.astype(column.dtype.newbyteorder("="))
        columns[f"x{position}"] = _arrow_column(column, f"x{position}", name=name)
    return pa.table(columns)


def _from_dataframe(frame: nw.DataFrame[Any], *, name: str) -> Rows:
    # Column by column: converting a whole pandas frame would add its index as a column, and an
    # error would not name the column.
    # pandas keeps its labels, which may be numbers.
    labels = frame.to_native().columns if frame.implementation.is_pandas_like() else frame.columns
    called = ColumnLabels.from_labels(list(labels), name=name)
    columns = [
        _arrow_column(frame[:, position].to_native(), str(label), name=name)
        for position, label in enumerate(frame.columns)
    ]
    table = _checked(pa.table(columns, names=called.names), name=name)
    return Rows(table, called.named, called.numbered)


def _from_array(data: Any, *, name: str) -> Rows:
    from sklearn.utils import check_array

    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(np.float64), np.nan)  # masked means missing
    try:
        if isinstance(data, list | tuple) and np.asarray(data).dtype.kind in "US":
            data = np.array(data, dtype=object)  # keeps numbers beside text as numbers
        array = check_array(
            data,
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )
    except (TypeError, ValueError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(f"{name}: {error}") from error
    return Rows(_checked(table_of_array(array, name=name), name=name, n_rows=len(array)), False)


def _arrow_column(values: Any, column: str, *, name: str) -> pa.ChunkedArray | pa.Array:
    try:
        if hasattr(values, "to_arrow"):  # Polars
            return values.to_arrow()
        categories = getattr(getattr(values, "cat", None), "categories", None)
        if "interval" in str(getattr(categories, "dtype", "")):
            values = values.cat.rename_categories(str)  # the result of pandas.cut
        if isinstance(values, pa.ChunkedArray):
            return values
        # NaN means missing, in numeric and in object columns.
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError) as error:
        raise InputTypeError(
            f"Column '{column}' of {name} mixes values of several types or holds some that cannot "
            f"be read ({error}). A column of an argument must be of one kind, string or number: "
            "convert it."
        ) from error


def _checked(table: pa.Table, *, name: str, n_rows: int | None = None) -> pa.Table:
    rows = table.num_rows if n_rows is None else n_rows
    if not table.num_columns:
        # scikit-learn's estimator checks require this wording.
        raise InputError(
            f"{name} has no columns: found array with 0 feature(s) (shape=({rows}, 0)) "
            "while a minimum of 1 is required."
        )
    check_distinct(table.column_names, owner=name)
    return without_views(table)


def check_distinct(names: Sequence[str], *, owner: str) -> None:
    """Raise an error if a table has two columns of one name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"{owner} has more than one column called '{repeated[0]}'.")


def bytes_of_table(table: pa.Table) -> bytes:
    """Return a table with its types as bytes.

    Examples
    --------
    >>> table_of_bytes(bytes_of_table(pa.table({"town": ["Ulm", None]})))["town"].to_pylist()
    ['Ulm', None]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of_bytes(data: bytes) -> pa.Table:
    """Return the table, fully validated, because the bytes may come from an untrusted file."""
    try:
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"A saved table cannot be read: {error}") from error
    return table


class Form:
    """The library, the column labels and the types of a table or array.

    Parameters
    ----------
    given : array-like or dataframe
        X as the caller gave it.

    Examples
    --------
    >>> Form([[1.0, 2.0]]).of(pa.table({"x0": [3, 4], "x1": [5, 6]}))
    array([[3., 5.], [4., 6.]])
    """

    def __init__(self, given: Any) -> None:
        self._type = type(given)
        self._backend: Any = None
        self._types: dict[Any, Any] = {}
        self._dtype: Any = None
        if isinstance(given, pa.RecordBatch):
            given = pa.Table.from_batches([given])
        if isinstance(given, nw.DataFrame) or nw.dependencies.is_into_dataframe(given):
            frame = nw.from_native(given, eager_only=True)
            self._backend, native = frame.implementation, frame.to_native()
            self._labels = _labels(native)
            if not self._backend.is_pyarrow():
                self._types = dict(native.schema if self._backend.is_polars() else native.dtypes)
        else:
            array = np.asarray(given)
            self._dtype = array.dtype if array.dtype.kind in "fO" else None

    def __getstate__(self) -> dict[str, Any]:
        """Return arrays and pandas frames in plain values, which a saved weighter may hold."""
        state = dict(self.__dict__)
        if self._type is np.ndarray:
            return state | {"_type": "array", "_dtype": str(self._dtype or "")}
        if self._backend is not None and self._backend.is_pandas():
            types = {label: str(kind) for label, kind in self._types.items()}
            return state | {"_type": "pandas", "_backend": None, "_types": types}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state["_type"] == "array":
            self._type, self._dtype = np.ndarray, np.dtype(state["_dtype"] or float)
            self._dtype = self._dtype if state["_dtype"] else None
        elif state["_type"] == "pandas":
            import pandas as pd

            self._type, self._backend = pd.DataFrame, nw.Implementation.PANDAS
            self._types = {k: pd.api.types.pandas_dtype(v) for k, v in state["_types"].items()}

    def of(self, table: pa.Table, *, given: Any = None) -> Any:
        """Return rows with the columns of X, or some of them, in X's order and form.

        If ``given``, the same rows as a caller gave them, is of that form already, it is returned.
        """
        if type(given) is self._type and (self._backend is None or _labels(given) == self._labels):
            return given
        if self._backend is None:
            columns = [column.to_numpy(zero_copy_only=False) for column in table.columns]
            array = np.column_stack(columns)
            if array.dtype.kind in "biuf":  # integers may have become floats for missing values
                return array.astype(self._dtype or np.result_type(array.dtype, np.float64))
            return array.astype(object)
        if self._backend.is_pyarrow():
            return table
        # The categories of Polars have numbers that not every PyArrow can pass on to pandas.
        frame = nw.from_arrow(with_plain_values(table), backend=self._backend).to_native()
        if not self._backend.is_pandas_like():
            return frame.cast({name: self._types[name] for name in frame.columns})
        names = ColumnLabels.from_labels(self._labels, name="X").names
        label_of = dict(zip(names, self._labels, strict=True))
        frame.columns = [label_of[name] for name in frame.columns]
        # Whole numbers cannot hold missing values, and stay floats where there are any.
        types = {label: self._types[label] for label in frame.columns}
        gaps = frame.isna().any()
        whole = {label for label, kind in types.items() if getattr(kind, "kind", "O") in "iub"}
        return frame.astype({k: types[k] for k in types if k not in whole or not gaps[k]})


def with_plain_values(table: pa.Table) -> pa.Table:
    """Return a table whose dictionaries are decoded."""
    for place, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if pa.types.is_dictionary(kind):
            table = table.set_column(place, name, table.column(place).cast(kind.value_type))
    return table


def _labels(frame: Any) -> list[Any]:
    return list(getattr(frame, "column_names", frame.columns))
