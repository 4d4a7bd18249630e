"""Groups of a column's values: categories, single numbers, bands; and their combinations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.numerics.typing import FloatArray, IntArray

MAX_TABLE = 4096
"""Whole numbers of a range up to this are looked up in a table."""


class Grouping(ABC):
    """The groups of a column's values."""

    labels: list[str]

    @abstractmethod
    def of(self, column: FloatArray) -> IntArray:
        """Return the group of each code; -1 for none."""


@dataclass(frozen=True)
class ValueGroups(Grouping):
    """Groups of single values, such as categories.

    Parameters
    ----------
    values : ndarray
        Codes, sorted; NaN last.
    groups : ndarray of int
        The group of each.
    labels : list of str
        Of the groups.
    """

    values: FloatArray
    groups: IntArray
    labels: list[str]

    def of(self, column: FloatArray) -> IntArray:
        """Return the group of each code; -1 for none."""
        numbers = self.values[~np.isnan(self.values)]
        groups = lookup(numbers, self.groups[: len(numbers)], column)
        if len(numbers) < len(self.values):
            groups[np.isnan(column)] = self.groups[-1]
        return groups


@dataclass(frozen=True)
class Bands(Grouping):
    """Groups of numbers from one border to the next.

    Parameters
    ----------
    lows, highs : ndarray
        Band i holds the numbers from ``lows[i]`` up to, but not including, ``highs[i]``.
    labels : list of str
        Of the bands; one more where missing values have a group of their own.
    """

    lows: FloatArray
    highs: FloatArray
    labels: list[str]

    def of(self, column: FloatArray) -> IntArray:
        """Return the band of each code; -1 for none."""
        band = np.searchsorted(self.lows, column, side="right") - 1
        inside = (band >= 0) & (column < self.highs[band])
        missing = len(self.lows) if len(self.labels) > len(self.lows) else -1
        return np.where(np.isnan(column), missing, np.where(inside, band, -1))


def combined(
    codes: FloatArray, positions: Sequence[int], groupings: Sequence[Grouping]
) -> IntArray:
    """Return each row's combination of groups as one number; -1 if a column has none."""
    total: IntArray = np.zeros(len(codes), dtype=np.int64)
    outside = np.zeros(len(codes), dtype=bool)
    for position, grouping in zip(positions, groupings, strict=True):
        group = grouping.of(codes[:, position])
        if len(positions) == 1:
            return group
        outside |= group < 0
        total = total * len(grouping.labels) + group
    return np.where(outside, -1, total)


def lookup(keys: FloatArray | IntArray, values: IntArray, asked: Any) -> IntArray:
    """Return the value of each key that is asked for; -1 for those that are not there.

    ``keys`` are sorted. A table of the whole numbers between them is much faster than a search.

    Examples
    --------
    >>> lookup(np.array([2, 5]), np.array([7, 8]), np.array([5.0, 3.0, 2.0, 2.5, np.nan]))
    array([ 8, -1,  7, -1, -1])
    """
    if not len(keys):
        return np.full(len(asked), -1)
    first, last = float(keys[0]), float(keys[-1])
    if last - first >= MAX_TABLE or (keys != np.floor(keys)).any():
        place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        return np.where(keys[place] == asked, values[place], -1)
    before = int(first) - 1
    table = np.full(int(last - first) + 3, -1)  # with room for what lies before and after
    table[np.asarray(keys - before, dtype=np.intp)] = values
    shifted = asked - before
    with np.errstate(invalid="ignore"):  # of missing values
        places = shifted.astype(np.intp, copy=False)
    found = table.take(places, mode="clip")
    if shifted.dtype.kind == "f" and not (whole := places == shifted).all():
        found[~whole] = -1
    return found


def distinct(codes: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return the different ones of whole numbers from 0 to ``size``, and how often each occurs."""
    if size > max(MAX_TABLE, len(codes)):
        values, counts = np.unique(codes, return_counts=True)
        return values, counts
    counts = np.bincount(codes, minlength=1)
    present = np.flatnonzero(counts)
    return present, counts[present]
