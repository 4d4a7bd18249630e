"""One table in which some rows have a label and others do not."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from unskew.errors import InputError
from unskew.numerics.typing import BoolArray
from unskew.population.population import Population
from unskew.rows.labels import by_position, is_labelled
from unskew.rows.tables import as_rows


class Labelled(NamedTuple):
    """The rows with a label, and all rows as their population."""

    X: Any
    y: Any
    population: Population


def split_labelled(X: Any, y: Any) -> Labelled:
    """Return the rows that have a label, their labels, and all rows as the population.

    For one table of both: granted and refused loans, answers and silence. The rows with a label are
    the sample, and all rows are its population, which knows which of them the sample has. This is
    right if being labelled depends on the columns alone; where it depends on the label itself, use
    :class:`unskew.HeckmanRegressor`, :class:`unskew.HeckmanClassifier` or
    :class:`unskew.LabelShiftWeights`.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Missing (NaN, None or null) where there is no label.

    Returns
    -------
    X : array-like or dataframe
        The rows with a label, in the form of X.
    y : array-like
        Their labels.
    population : Population
        All rows, with marks of those that have a label.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import CalibrationWeights, split_labelled
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> X_s, y_s, population = split_labelled(X, [0, 1, None, 1])
    >>> X_s.ravel(), y_s, population.size, population.n_selected
    (array([1., 2., 4.]), array([0, 1, 1]), 4, 3)
    """
    rows = as_rows(X, name="X")
    if y is None:
        raise InputError("split_labelled requires y to be passed, but the target y is None.")
    y = by_position(y, X, "y")
    labelled = is_labelled(y)
    if len(labelled) != len(rows):
        raise InputError(f"y has {len(labelled)} labels for the {len(rows)} rows of X.")
    if not labelled.any():
        raise InputError("y is missing for every row: there is no sample to learn from.")
    if labelled.all():
        raise InputError(
            "y is there for every row, so there is no population beside the sample. Pass the rows "
            "without labels too, or give the population to fit: population=U."
        )
    return Labelled(_rows(X, labelled), _labels(y, labelled), Population(X, selected=labelled))


def _rows(X: Any, labelled: BoolArray) -> Any:
    if isinstance(X, nw.DataFrame) or nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True).filter(labelled.tolist())
        return frame if isinstance(X, nw.DataFrame) else frame.to_native()
    return np.asarray(X)[labelled]


def _labels(y: Any, labelled: BoolArray) -> Any:
    if isinstance(y, nw.Series) or nw.dependencies.is_into_series(y):
        series = nw.from_native(y, series_only=True).filter(labelled.tolist())
        return series if isinstance(y, nw.Series) else series.to_native()
    values = np.asarray(y)[labelled]
    if values.dtype == object:  # as None beside numbers makes it
        plain = np.array(values.tolist())
        return plain if plain.dtype.kind in "biuf" else values
    return values
