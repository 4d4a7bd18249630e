"""The labels of a sample, checked."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.utils import column_or_1d

from unskew.errors import InputError, InputTypeError, warn_caller
from unskew.numerics.typing import BoolArray, IntArray

_OTHERWISE = (
    "Drop those rows, or let them join the population: split_labelled(X, y). HeckmanRegressor and "
    "HeckmanClassifier take y with missing labels as it is."
)


def by_position(values: Any, X: Any, name: str) -> Any:
    """Return one value per row of X; warn where pandas has their rows in another order than X's.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> X = pd.DataFrame({"a": [1, 2]}, index=["p", "q"])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     by_position(pd.Series([5, 6], index=["q", "p"]), X, "y")
    array([5, 6])
    >>> print(caught[0].message)
    y has the row labels of X in another order, and its values are taken in their own order. Put
    them into that of X first, y.loc[X.index], or drop the labels: y.to_numpy().
    """
    of_rows: Any = getattr(X, "index", None)
    of_values: Any = getattr(values, "index", None)
    if not (hasattr(of_rows, "equals") and hasattr(of_values, "equals")) or of_rows.equals(
        of_values
    ):
        return values
    if len(of_rows) != len(of_values) or not of_values.isin(of_rows).all():
        return values
    warn_caller(
        UserWarning(
            f"{name} has the row labels of X in another order, and its values are taken in their "
            f"own order. Put them into that of X first, {name}.loc[X.index], or drop the labels: "
            f"{name}.to_numpy()."
        )
    )
    return values.to_numpy()


def row_codes(values: Any, name: str, table: pa.Table) -> IntArray | None:
    """Return strata or clusters, a column of X or one value per row, as numbers from zero."""
    if values is None:
        return None
    if isinstance(values, str):
        if values not in table.column_names:
            raise InputError(f"{name}='{values}' is not a column of X.")
        values = table.column(values).to_numpy()
    values = np.asarray(values)
    if values.shape != (len(table),):
        raise InputError(
            f"{name} must have one entry for each of the {len(table)} rows; got shape "
            f"{values.shape}."
        )
    missing = ~is_labelled(values)
    if missing.any():
        raise InputError(f"{name} is missing in {int(missing.sum())} rows.")
    try:
        codes = np.unique(values, return_inverse=True)[1]
    except TypeError as error:
        raise InputError(f"{name} mixes values that cannot be compared ({error}).") from error
    return codes.reshape(-1)


def is_labelled(y: Any) -> BoolArray:
    """Return which labels are there: neither None nor NaN nor another missing value.

    Examples
    --------
    >>> is_labelled(["yes", None, "no"]), is_labelled([1.0, np.nan])
    (array([ True, False,  True]), array([ True, False]))
    """
    if isinstance(y, np.ma.MaskedArray):
        return ~np.ma.getmaskarray(y) & is_labelled(np.asarray(y.data))
    if hasattr(y, "to_arrow"):  # Polars
        y = y.to_arrow()
    if not isinstance(y, pa.Array | pa.ChunkedArray):
        y = y if hasattr(y, "dtype") else np.asarray(y)
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            y = np.asarray(y).ravel()
        if getattr(y, "ndim", 1) != 1:
            raise InputError(f"y must have one label per row; got shape {np.shape(y)}.")
        if isinstance(y, np.ndarray) and y.dtype == object:
            return np.array([not _is_missing(label) for label in y])
        try:
            y = pa.array(y, from_pandas=True)
        except pa.ArrowException as error:
            raise InputTypeError(f"y cannot be read: {error}") from error
    return ~np.asarray(pc.is_null(y, nan_is_null=True).to_numpy(zero_copy_only=False), dtype=bool)


def checked_labels(y: Any, n_rows: int) -> Any:
    """Return labels as an array of numbers or text, one per row; None stays None."""
    if y is None:
        return None
    if hasattr(y, "to_numpy"):  # a pandas, Polars or PyArrow column
        y = y.to_numpy()
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
    if labels.ndim not in (1, 2):
        raise InputError(f"y must have one label per row; got shape {labels.shape}.")
    if len(labels) != n_rows:
        raise InputError(f"y has {len(labels)} labels for the {n_rows} rows of X.")
    if labels.dtype.kind == "c":
        raise InputError("y: Complex data not supported.")
    if labels.dtype == object:
        labels = _plain_labels(labels)
    if labels.dtype.kind in "mM":  # moments and durations are quantities; NaT is the least int64
        labels = np.where(np.isnat(labels), np.nan, labels.astype(np.int64).astype(np.float64))
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        kind = "NaN" if np.isnan(labels).any() else "infinity"
        remedy = _OTHERWISE if kind == "NaN" else "Drop those rows."
        raise InputError(f"y contains {kind}; every sample row needs a label. {remedy}")
    return labels


def missing_labels(y: Any) -> Any:
    """Return which labels are missing.

    Examples
    --------
    >>> missing_labels(["a", None, "b"])
    array([False,  True, False])
    """
    labels = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if labels.dtype == object:
        return np.array([_is_missing(label) for label in labels.reshape(-1)], dtype=bool)
    if labels.dtype.kind in "fc":
        return np.isnan(labels).any(axis=tuple(range(1, labels.ndim)))
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    return np.zeros(len(labels), dtype=bool)


def _plain_labels(labels: Any) -> Any:
    """Return an array of Python objects as numbers or text, none of them missing."""
    if any(_is_missing(label) for label in labels.flat):
        raise InputError(f"y contains missing labels; every sample row needs one. {_OTHERWISE}")
    if all(isinstance(label, Number) and not isinstance(label, bool) for label in labels.flat):
        plain = np.array(labels.tolist())
        return plain.astype(np.float64) if plain.dtype == object else plain  # decimals
    try:
        np.unique(labels)
    except TypeError as error:
        raise InputTypeError(f"y mixes labels of several types ({error}).") from error
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas' NA has no truth value
        return True
