"""Which entries a round of exchange found in the wrong set, and which of them it moves.

The constants affect the time, not the solution; "measured" is explained in
:mod:`~unskew.numerics.exchange`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unskew.numerics.typing import BoolArray, FloatArray

# How the set of free entries grows

_MOST_GROWTH = 0.4
"""By which share of its size the free set may grow in a round where many entries turned negative;
twice that where few did. It limits the cost of a bad guess, because a system of twice the size
takes eight times as long. Measured: a quarter takes 1.26 times the work, twice as much 0.8 times,
but on single programs 1.3 times the rounds."""

_MANY_NEGATIVE = 0.1
"""The share of free entries that is many. Measured: a quarter to four times this: work ± 5 %."""

_SHARE_FREED = 0.5
"""The share of the entries that should leave zero of which a round makes free the most promising:
once these are free, the gradient of the others often turns. Measured: a quarter takes 1.17 times
the work, all at once 0.98 times, but on single programs 1.25 times the rounds."""

_LEAST_FREED = 10
"""Freed in any case, so that small sets grow too. Not tuned."""

# When to give up a pass

_PATIENCE = 8
"""Rounds without progress after which a pass is given up: the number of wrong entries may rise for
a few rounds before it falls. Measured: half takes as much work, twice as many 0.87 times."""

_CLEARLY_LESS = 0.7
"""Progress is fewer wrong entries than ever, or a worst gradient below this share of the least."""


class Wrong(NamedTuple):
    """The entries that a round found in the wrong set."""

    below: BoolArray  # free, and below zero
    above: BoolArray  # free, and above their upper bound
    rise: BoolArray  # at zero, though the objective falls if they rise
    fall: BoolArray  # at their upper bound, though the objective falls if they fall

    def size(self) -> int:
        return int(np.count_nonzero(self.below | self.above | self.rise | self.fall))


@dataclass
class Progress:
    """The best that the rounds of a pass have reached, and how long ago."""

    fewest_wrong: int
    least_gradient: float = np.inf
    patience: int = _PATIENCE

    def update(self, n_wrong: int, gradient: float) -> bool:
        """Return whether a round was better than all before it."""
        better = n_wrong < self.fewest_wrong or gradient < _CLEARLY_LESS * self.least_gradient
        self.fewest_wrong = min(self.fewest_wrong, n_wrong)
        self.least_gradient = min(self.least_gradient, gradient)
        self.patience = _PATIENCE if better else self.patience - 1
        return better


def most_promising(wrong: Wrong, reduced: FloatArray, n_free: int) -> BoolArray:
    """Return those of the entries that should rise from zero with the steepest gradients."""
    many = np.count_nonzero(wrong.below) > _MANY_NEGATIVE * n_free
    growth = _MOST_GROWTH if many else 2 * _MOST_GROWTH
    limit = int(min(growth * n_free, _SHARE_FREED * np.count_nonzero(wrong.rise)))
    rank, gradients = limit + _LEAST_FREED, reduced[wrong.rise]
    if rank >= len(gradients):
        return wrong.rise
    return wrong.rise & (reduced <= np.partition(gradients, rank)[rank])
