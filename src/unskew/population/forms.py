"""The form in which the caller gave X, and any rows in that form.

A function or a fitted model that was made for a pandas frame sees a pandas frame again, whichever
engine the rows come from.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from unskew.population.rows import ColumnLabels


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
        frame = nw.from_arrow(_with_plain_values(table), backend=self._backend).to_native()
        if not self._backend.is_pandas_like():
            return frame.cast({name: self._types[name] for name in frame.columns})
        names = ColumnLabels.of(self._labels, name="X").names
        label_of = dict(zip(names, self._labels, strict=True))
        frame.columns = [label_of[name] for name in frame.columns]
        # Whole numbers cannot hold missing values, and stay floats where there are any.
        types = {label: self._types[label] for label in frame.columns}
        gaps = frame.isna().any()
        whole = {label for label, kind in types.items() if getattr(kind, "kind", "O") in "iub"}
        return frame.astype({k: types[k] for k in types if k not in whole or not gaps[k]})


def _with_plain_values(table: pa.Table) -> pa.Table:
    for place, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if pa.types.is_dictionary(kind):
            table = table.set_column(place, name, table.column(place).cast(kind.value_type))
    return table


def _labels(frame: Any) -> list[Any]:
    return list(getattr(frame, "column_names", frame.columns))
