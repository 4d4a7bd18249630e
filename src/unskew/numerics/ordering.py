"""Sorting rows by several keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.numerics.typing import FloatArray, IntArray


def order_by(keys: Sequence[NDArray[Any]]) -> IntArray:
    """Return the permutation of ``numpy.lexsort``, in which the last key decides first.

    Keys are looked at only as long as they leave ties, which for numbers is mostly one.

    Examples
    --------
    >>> order_by([np.array([2.0, 1.0, 3.0]), np.array([1.0, 1.0, 0.0])])
    array([2, 1, 0])
    """
    order = np.arange(len(keys[-1]))
    group = np.zeros(len(order), dtype=np.int64)  # rows of one group are tied so far
    for key in reversed(keys):
        order = order[np.lexsort((key[order], group))]  # groups stay where they are
        key = key[order]
        equal = (key[1:] == key[:-1]) | ((key[1:] != key[1:]) & (key[:-1] != key[:-1]))  # or NaN
        rises = (group[1:] != group[:-1]) | ~equal
        group = np.cumsum(np.concatenate([[False], rises]))[: len(order)]
        if rises.all():
            break
    return order


def distinct_points(points: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows of a matrix in rising order, and which of them each row is.

    As ``numpy.unique`` of rows, which takes several times as long.

    Examples
    --------
    >>> distinct_points(np.array([[2.0, 1.0], [0.0, 3.0], [2.0, 1.0]]))
    (array([[0., 3.], [2., 1.]]), array([1, 0, 1]))
    """
    order = order_by(list(points.T[::-1]))
    ordered = points[order]
    rises = np.ones(len(order), dtype=bool)
    rises[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(rises) - 1
    return ordered[rises], place


def quantile_borders(values: FloatArray, most: int) -> FloatArray:
    """Return the distinct values that are present, or of many, about as many quantiles.

    Each is a share of 1 / ``most`` of the values after the one before.

    Examples
    --------
    >>> quantile_borders(np.array([3.0, 1.0, np.nan, 1.0]), 9), quantile_borders(np.arange(9.0), 3)
    (array([1., 3.]), array([3., 6.]))
    """
    ordered = np.sort(values[~np.isnan(values)])
    borders = np.unique(ordered)
    if len(borders) <= most:
        return borders
    return np.unique(ordered[np.arange(1, most) * len(ordered) // most])
