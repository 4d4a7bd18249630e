r"""Values that one side has rounded: to what, and the values of both sides at these steps.

Incomes to the nearest 100 beside incomes to the cent, months beside days: where one side has
values at 1,900 and 2,000 only, every value of the other lies in a gap, and any model tells the two
apart though they are one distribution. A column has a grid

.. math:: \{o + k g : k = 0, \pm 1, \dots\}

of step g if at least ``ON_GRID`` of one side's values lie on it and the other side's do not. The
step is read off the gaps between values that recur, of which a rounded side has many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.numerics.typing import BoolArray, FloatArray

ON_GRID = 0.95
"""The share of a side's values from which on it counts as rounded."""
OFF_GRID = 0.9
"""The share of the other side's values below which it does not."""
MIN_POINTS = 5
"""How many values must recur: three or four may be all that there are, as of a dose."""
MAX_ROWS = 2000
"""Of each side, evenly spaced, that are looked at."""


class Grid(NamedTuple):
    """The steps to which the values of one side are rounded."""

    step: float
    origin: float
    of_first: bool
    """Whether the first side is the rounded one."""

    def holds(self, values: FloatArray) -> BoolArray:
        """Return which values lie on it, up to a thousandth of a step."""
        return np.abs(values - self.nearest(values)) <= 1e-3 * self.step

    def nearest(self, values: FloatArray) -> FloatArray:
        """Return the nearest step to each value."""
        found: FloatArray = np.round((values - self.origin) / self.step) * self.step + self.origin
        return found


def common_grid(first: FloatArray, second: FloatArray) -> Grid | None:
    """Return the coarser grid on which the values of one side lie and those of the other do not.

    Examples
    --------
    >>> days = np.random.default_rng(0).uniform(0, 900, 400)
    >>> common_grid(days / 30.4, np.round(days / 30.4)).step
    1.0
    >>> common_grid(np.round(days), np.round(days)) is None
    True
    """
    sides = [_some(first), _some(second)]
    grids = [_grid_of(values, of_first=side == 0) for side, values in enumerate(sides)]
    # A grid counts only if the other side is off it: two sides on one grid are alike.
    found = [
        (grid, other)
        for grid, other in zip(grids, reversed(sides), strict=True)
        if grid is not None and len(other) and grid.holds(other).mean() < OFF_GRID
    ]
    return max(found, key=lambda one: one[0].step)[0] if found else None


def _some(values: FloatArray) -> FloatArray:
    present = values[np.isfinite(values)]
    return present[:: max(1, len(present) // MAX_ROWS)]


def _grid_of(values: FloatArray, *, of_first: bool) -> Grid | None:
    distinct, counts = np.unique(values, return_counts=True)
    recurring = distinct[counts > 1]
    if len(recurring) < MIN_POINTS or counts[counts > 1].sum() < len(values) / 2:
        return None
    gaps = np.sort(np.diff(recurring))
    origin = float(distinct[np.argmax(counts)])
    # Where recurring values are sparse, their gaps are several steps; a short step is tried first.
    steps = [float(gaps[len(gaps) // 4]) / parts for parts in (1, 2, 3, 4, 5)]
    for step in (one for exact in steps for one in (float(f"{exact:.6g}"), exact)):
        start = origin - step * round(origin / step)
        grid = Grid(step, start if abs(start) > 1e-3 * step else 0.0, of_first)
        if grid.holds(values).mean() >= ON_GRID:
            return grid
    return None
