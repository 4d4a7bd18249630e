r"""How near any weights can bring the means of a sample to their targets.

Weights that match the targets exist only if these lie in the convex hull of the sample's features
(within bounds: in a part of it). A linear program says how far outside they are, and its
multipliers in which direction (Farkas' lemma).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from unskew.numerics.typing import FloatArray, IntArray

MAX_ENTRIES = 1_000_000
"""Programs with more entries than this are solved by adding the rows that matter, in rounds."""


class Reach(NamedTuple):
    """The nearest that any weights come."""

    slack: float
    """The smallest largest imbalance, beyond what is allowed."""
    direction: FloatArray
    """Where every sample row lies: features times direction is at least the slack."""


def smallest_imbalance(
    features: FloatArray, low: FloatArray, high: FloatArray, allowed: FloatArray
) -> Reach:
    """Return how near weighted means of features can come to zero.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Centred at their targets, and scaled.
    low, high : ndarray of shape (n_rows,)
        The bounds of each row's share of the total weight.
    allowed : ndarray of shape (n_features,)
        An imbalance that does not count.

    Examples
    --------
    >>> none = np.zeros(3)
    >>> reach = smallest_imbalance(np.array([[1.0], [2.0], [3.0]]), none, none + 1, none[:1])
    >>> reach.slack, reach.direction
    (1.0, array([1.]))
    """
    # A target far beyond all rows would leave the program's other numbers no digits.
    beyond = np.maximum(features.min(axis=0), -features.max(axis=0)) - allowed
    farthest = int(beyond.argmax())
    unit = max(1.0, float(beyond[farthest]))
    features, allowed = features / unit, allowed / unit
    rows = _first_rows(features, low, high)
    while True:
        program = _solve(features, low, high, allowed, rows)
        if program.status != 0:  # what one feature alone proves
            direction = np.zeros(len(beyond))
            direction[farthest] = 1.0 if features[0, farthest] > 0 else -1.0
            return Reach(max(float(beyond[farthest]), 0.0), direction)
        up, down = np.split(program.ineqlin.marginals, 2)
        direction = down - up
        # A row helps if, at its lower bound, more of it would lower the imbalance.
        gains = program.eqlin.marginals[0] - features @ direction
        gains[rows] = -np.inf
        helpful = np.flatnonzero(gains > 1e-9)
        if not len(helpful):
            return Reach(unit * float(program.fun), direction)
        best = helpful[np.argsort(-gains[helpful], kind="stable")[:1000]]
        rows = np.union1d(rows, best)


def farthest_mean(
    features: FloatArray, position: int, sign: float, low: FloatArray, high: FloatArray
) -> float | None:
    """Return the largest (or smallest) mean of one feature while the others are balanced.

    None if they cannot be balanced, or if the program is too large to be solved for a message.
    """
    n_rows, n_features = features.shape
    if features.size > MAX_ENTRIES:
        return None
    others = np.delete(features, position, axis=1)
    equal = np.vstack([others.T, np.ones(n_rows)])
    goal = np.zeros(n_features)
    goal[-1] = 1.0
    program: Any = linprog(  # type: ignore[call-overload]  # its stubs want tuples
        -sign * features[:, position],
        A_eq=equal,
        b_eq=goal,
        bounds=np.column_stack([low, high]),
        method="highs",
    )
    return float(-sign * program.fun) if program.status == 0 else None


def _first_rows(features: FloatArray, low: FloatArray, high: FloatArray) -> IntArray:
    """Return rows to begin with: all, or extreme ones and enough to hold the whole weight."""
    if features.size <= MAX_ENTRIES:
        return np.arange(len(features))
    extremes = [features.argmin(axis=0), features.argmax(axis=0)]
    spread = np.random.RandomState(0).permutation(len(features))
    room = np.cumsum((high - low)[spread])
    enough = int(np.searchsorted(room, 1.0 - low.sum())) + 1
    count = max(enough, MAX_ENTRIES // (10 * features.shape[1]))
    return np.unique(np.concatenate([*extremes, spread[:count]]))


def _solve(
    features: FloatArray, low: FloatArray, high: FloatArray, allowed: FloatArray, rows: IntArray
) -> Any:
    """Minimise δ with all means within δ of zero; rows that are left out stay at their lowest."""
    out = np.ones(len(features), dtype=bool)
    out[rows] = False
    fixed = low[out] @ features[out]
    means = features[rows].T
    ones = np.ones((len(means), 1))
    return linprog(  # type: ignore[call-overload]
        np.concatenate([np.zeros(len(rows)), [1.0]]),
        A_ub=np.block([[means, -ones], [-means, -ones]]),
        b_ub=np.concatenate([allowed - fixed, allowed + fixed]),
        A_eq=np.concatenate([np.ones(len(rows)), [0.0]])[None, :],
        b_eq=[1.0 - low[out].sum()],
        bounds=np.vstack([np.column_stack([low[rows], high[rows]]), [[0.0, np.inf]]]),
        method="highs",
    )
