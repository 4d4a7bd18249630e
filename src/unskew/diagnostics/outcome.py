"""What weights do to the mean of the labels, or to the shares of their classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.diagnostics.diagnosis import Outcome
from unskew.errors import InputError
from unskew.numerics.typing import FloatArray
from unskew.population.labels import checked_labels

MAX_CLASSES = 20


def measure_outcome(y: Any, before: FloatArray, after: FloatArray | None) -> Outcome | None:
    labels = checked_labels(y, len(before))
    if np.asarray(y).dtype.kind in "mM":
        return None
    if labels.ndim > 1:
        raise InputError(f"y must be one label per row; got shape {labels.shape}.")
    distinct, place = np.unique(labels, return_inverse=True)
    is_class = labels.dtype.kind not in "fiu" or (labels.dtype.kind in "iu" and len(distinct) <= 2)
    if is_class:
        common = np.argsort(-np.bincount(place), kind="stable")[:MAX_CLASSES]
        columns = (place[:, None] == common).astype(np.float64)
        names = tuple(str(distinct[rank]) for rank in common)
        if len(common) < len(distinct):
            columns = np.column_stack([columns, 1.0 - columns.sum(axis=1)])
            names = (*names, "(other)")
    else:
        columns, names = labels.astype(np.float64)[:, None], ("mean",)
    mean, error = _weighted_means(columns, before)
    weighted = (None, None) if after is None else _weighted_means(columns, after)
    return Outcome("shares" if is_class else "mean", names, mean, error, *weighted)


def _weighted_means(
    columns: FloatArray, weight: FloatArray
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    share = weight / weight.sum()
    mean = share @ columns
    error = np.sqrt(share**2 @ (columns - mean) ** 2)  # of a ratio, to first order
    return tuple(mean.tolist()), tuple(error.tolist())
