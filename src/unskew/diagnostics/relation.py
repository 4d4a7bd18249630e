"""Which columns the labels are hardly related to: weighing by these corrects little."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.rows.labels import checked_labels
from unskew.rows.sample import Sample

MOST_GROUPS = 20
THIRDS = 3
NEXT_TO_NONE = 0.15
"""The correlation ratio up to which labels and a column count as unrelated."""


def unrelated_columns(y: Any, sample: Sample, weights: FloatArray) -> tuple[str, ...]:
    """Return the columns to which the labels have next to no relation, each column by itself.

    The relation is the correlation ratio: the share of the labels' standard deviation between
    thirds of the column, or between its categories; of numbers the ranks count, of classes the one
    that differs most. A column is unrelated if even the upper end of a 95 % interval is small: too
    few rows show nothing. Weighted, because selection by two columns relates them to each other
    within the sample.
    """
    if y is None or np.asarray(y).dtype.kind in "mM":
        return ()
    labels, share = scored(checked_labels(y, len(sample))), weights / weights.sum()
    error = 1.96 / np.sqrt(effective_sample_size(weights))
    columns = zip(sample.codes.names, sample.values.T, strict=True)
    return tuple(
        name
        for name, values in columns
        if _correlation_ratio(labels, _grouped(values), share) + error < NEXT_TO_NONE
    )


def scored(labels: NDArray[Any], *, ranks: bool = True) -> FloatArray:
    """Return a column of numbers, as ranks or as given, or one of zeros and ones for each class."""
    distinct, place = np.unique(labels, return_inverse=True)
    if labels.dtype.kind in "fiu" and len(distinct) > 2:
        return np.asarray(rankdata(labels) if ranks else labels, dtype=np.float64)[:, None]
    return (place[:, None] == np.arange(min(len(distinct), MOST_GROUPS))).astype(np.float64)


def _grouped(values: FloatArray) -> IntArray:
    """Return the number of the group of each value: its third if there are more than 20."""
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) <= MOST_GROUPS:
        return np.asarray(place)
    ranks = np.argsort(np.argsort(place, kind="stable"), kind="stable")
    return np.asarray(ranks * THIRDS // len(values))


def _correlation_ratio(labels: FloatArray, groups: IntArray, share: FloatArray) -> float:
    """Return the largest correlation ratio of a column of labels, less what chance explains."""
    mass = np.bincount(groups, share)
    found = 0.0
    for label in labels.T:
        centred = label - share @ label
        between = np.bincount(groups, share * centred) ** 2 / np.where(mass > 0, mass, 1.0)
        total = float(share @ centred**2)
        if total > 0:
            by_chance = (np.count_nonzero(mass) - 1) * float(share @ share)
            found = max(found, float(between.sum()) / total - by_chance)
    return float(np.sqrt(found))
