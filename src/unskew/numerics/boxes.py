"""Boxes: conjunctions of conditions on features, and which points lie in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.numerics.typing import BoolArray, FloatArray, IntArray


class Features:
    """Points by column: numbers, or marks of 0 and 1 as booleans, which take an eighth of the room.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n,)
        Missing values are NaN.
    """

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns = list(columns)

    @classmethod
    def of(cls, points: FloatArray | Features) -> Features:
        """Return the columns of a matrix, or what is given."""
        return points if isinstance(points, Features) else cls(list(np.asfortranarray(points).T))

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def take(self, rows: IntArray) -> Features:
        """Return some of the points."""
        return Features([column[rows] for column in self.columns])


class Condition(NamedTuple):
    """One side of a feature.

    Attributes
    ----------
    feature : int
    above : bool
        Whether it requires values greater than ``border``; otherwise at most ``border``.
    border : float
    gap : tuple of float
        Any border in this interval, closed on the left, separates the two sets as well.
    """

    feature: int
    above: bool
    border: float
    gap: tuple[float, float]

    def holds(self, points: Features) -> BoolArray:
        """Return which points satisfy it; a missing value satisfies no condition."""
        return self.holds_for(points.columns[self.feature])

    def holds_for(self, values: FloatArray) -> BoolArray:
        """Return which values of its feature satisfy it."""
        return values > self.border if self.above else values <= self.border


@dataclass(frozen=True)
class Box:
    """Conditions, all of which hold in the box, and the share of the mass that does."""

    conditions: tuple[Condition, ...]
    share: float

    def holds(self, points: FloatArray | Features) -> BoolArray:
        """Return which points lie in the box."""
        return all_hold(self.conditions, Features.of(points))


_BITS = (1 << np.arange(8)).astype(np.uint8)


class Held:
    """Which conditions of a box each of some points misses, as the bits of a byte.

    A box is changed one condition at a time, and each change is judged without the other
    conditions being evaluated again.

    Parameters
    ----------
    conditions : sequence of Condition
        At most eight.
    points : Features
    """

    def __init__(self, conditions: Sequence[Condition], points: Features) -> None:
        self._points = points
        held = np.array([condition.holds(points) for condition in conditions])
        # BLAS adds floats up, and takes a quarter of the time of whole numbers.
        missed = _BITS[: len(held)].astype(np.float32) @ (~held).astype(np.float32)
        self.missed: NDArray[np.uint8] = missed.astype(np.uint8)

    @property
    def all(self) -> BoolArray:
        """Which points lie in the box."""
        return self.missed == 0

    def without(self, place: int) -> BoolArray:
        """Return which points lie in the box less one of its conditions."""
        held: BoolArray = (self.missed & ~_BITS[place]) == 0
        return held

    def replace(self, place: int, condition: Condition) -> None:
        """Put another condition in the place of one."""
        missed = (~condition.holds(self._points)).view(np.uint8)
        self.missed = (self.missed & ~_BITS[place]) | (missed * _BITS[place])


def all_hold(conditions: Sequence[Condition], points: Features) -> BoolArray:
    """Return which points satisfy all of some conditions, at least one."""
    held = conditions[0].holds(points)
    for condition in conditions[1:]:
        held &= condition.holds(points)
    return held
