r"""Weighted quantile regression: the linear program :math:`\max_x g^\top x` in a box.

.. math:: A^\top x = p A^\top 1, \qquad 0 \le x \le 1,

whose multipliers are the coefficients of the regression of y on features at the quantile 1 - p,
with rows of A and g that are features and y times the weight of each row. Mehrotra's predictor and
corrector from the interior point x = p, as in Portnoy and Koenker (1997).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from unskew.numerics.calibration import solve_psd
from unskew.numerics.typing import FloatArray

TOLERANCE = 1e-11
"""The duality gap at which the program counts as solved, relative to the spread of y."""
MOST_STEPS = 80
STALLED = 0.95
"""A step of Newton's method that leaves more than this share is one to nowhere."""
SHORT = 0.1
STEP = 0.9995
"""The share of the way to the nearest bound that a step goes."""


def quantile_regression(
    goal: FloatArray, rows: FloatArray, share: float
) -> tuple[FloatArray, float]:
    """Return the coefficients, and the sum that is reached with factors in the box.

    Parameters
    ----------
    goal : ndarray of shape (n_rows,)
        y in standard deviations, times the weight of each row.
    rows : ndarray of shape (n_rows, n_features)
        Features times the weight of each row, the first of them constant.
    share : float
        One minus the quantile.

    Examples
    --------
    >>> y, constant = np.array([0.0, 1.0, 2.0, 3.0, 10.0]), np.ones((5, 1))
    >>> beta, reached = quantile_regression(y, constant, 0.5)  # the median; half of all x
    >>> round(float(beta[0]), 9), round(reached, 9)
    (2.0, 14.0)
    """
    x, up = np.full(len(goal), share), np.full(len(goal), 1.0 - share)
    beta = solve_psd(rows.T @ rows, rows.T @ goal)
    slack = rows @ beta - goal
    size = max(float(np.abs(slack).mean()), np.finfo(float).tiny)
    at = _Point(x, up, np.maximum(slack, 0.0) + size, np.maximum(-slack, 0.0) + size, beta)
    target = share * rows.sum(axis=0)
    limit = 0.1 * TOLERANCE * float(np.abs(rows[:, 0]).sum())
    for _ in range(MOST_STEPS):
        if at.gap <= limit:
            break
        new = _step(at, goal, rows, target)
        if new is None:
            break
        at = new
    return at.beta, float(goal @ at.x)


def factors_between(
    features: FloatArray, weights: FloatArray, wanted: FloatArray
) -> FloatArray | None:
    """Return factors between zero and one whose weighted sums of features are given ones.

    Of all such factors those of the form 1/(1 + exp(-λᵀφ)), by Newton's method; None if it finds
    none, as where there are none.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        The first of them constant.
    weights : ndarray of shape (n_rows,)
    wanted : ndarray of shape (n_features,)

    Examples
    --------
    >>> factors_between(np.ones((4, 1)), np.ones(4), np.array([1.0]))
    array([0.25, 0.25, 0.25, 0.25])
    >>> factors_between(np.ones((4, 1)), np.ones(4), np.array([5.0])) is None
    True
    """
    total = float(weights.sum())
    share = wanted[0] / total
    if not 0.0 < share < 1.0:
        return None
    price = np.append(np.log(share / (1.0 - share)), np.zeros(len(wanted) - 1))
    before = np.inf
    for _ in range(MOST_STEPS):
        factors = np.asarray(expit(features @ price))
        missing = wanted - (weights * factors) @ features
        left = float(np.abs(missing).max())
        if left <= 0.01 * TOLERANCE * total:
            return factors
        if not left < STALLED * before:
            return None
        before = left
        slopes = weights * factors * (1.0 - factors)
        price = price + solve_psd(features.T @ (features * slopes[:, None]), missing)
    return None


class _Point(NamedTuple):
    """A point inside: the factors, and the multipliers of their conditions."""

    x: FloatArray
    up: FloatArray  # 1 - x, apart from it so that it does not round to zero
    low: FloatArray
    high: FloatArray
    beta: FloatArray

    @property
    def gap(self) -> float:
        return float(self.x @ self.low + self.up @ self.high)

    def lengths(self, by: _Point) -> tuple[float, float]:
        """Return how far factors and multipliers can go along a direction."""
        primal = _longest(self.x, by.x, self.up, by.up)
        return primal, _longest(self.low, by.low, self.high, by.high)

    def moved(self, by: _Point, primal: float, dual: float) -> _Point:
        """Return the point so far along a direction."""
        moves = zip(self, by, (primal, primal, dual, dual, dual), strict=True)
        return _Point(*(one + size * change for one, change, size in moves))


def _step(at: _Point, goal: FloatArray, rows: FloatArray, target: FloatArray) -> _Point | None:
    """Return the next point; None where rounding leaves nothing to gain."""
    x, up, low, high, beta = at
    inverse = 1.0 / (low / x + high / up)
    weighted = rows * inverse[:, None]
    gram = weighted.T @ rows
    missing = target - rows.T @ x
    off = rows @ beta - goal - low + high

    def direction(of_low: FloatArray, of_high: FloatArray) -> _Point:
        right = of_low / x - of_high / up + off
        change = solve_psd(gram, weighted.T @ right - missing)
        dx = inverse * (right - rows @ change)
        return _Point(dx, -dx, (of_low - low * dx) / x, (of_high + high * dx) / up, change)

    first = direction(-x * low, -up * high)
    primal, dual = at.lengths(first)
    mean = at.gap / (2 * len(x))
    centre = mean * (at.moved(first, primal, dual).gap / at.gap) ** 3
    # The correction is for a whole step, and wrong for a short one.
    part = primal * dual
    by = direction(
        centre - x * low - part * first.x * first.low,
        centre - up * high - part * first.up * first.high,
    )
    lengths = at.lengths(by)
    if min(lengths) < SHORT:  # some rows are far nearer to their bounds than others
        by = direction(0.5 * mean - x * low, 0.5 * mean - up * high)
        lengths = at.lengths(by)
    if not np.isfinite(by.x).all() or max(lengths) < 1e-10:
        return None
    return at.moved(by, *lengths)


def _longest(
    value: FloatArray, change: FloatArray, other: FloatArray, of_other: FloatArray
) -> float:
    """Return the longest step, at most one, that leaves both positive."""
    longest = 1.0 / STEP
    for one, by in ((value, change), (other, of_other)):
        falls = by < 0
        longest = min(longest, float(np.min(-one[falls] / by[falls], initial=np.inf)))
    return STEP * longest
