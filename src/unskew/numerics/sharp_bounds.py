r"""The extremes of a weighted mean where odds of selection are off by a factor of at most Λ.

Odds that are off by factors :math:`1/\Lambda \le \kappa_i \le \Lambda` turn weights into

.. math:: \tilde w_i = w_i + s_i (\kappa_i - 1),                                   \tag{1}

where the *spare* weight s is all of w, or what of it exceeds one. Without a further condition, the
largest mean gives :math:`\kappa = \Lambda` to the rows with the largest y and :math:`1/\Lambda` to
the others (Zhao, Small and Bhattacharya 2019, section 4): :class:`MeanProgram`. Weights that match
the population must keep the sums :math:`\sum s_i \kappa_i \varphi_i = \sum s_i \varphi_i` of
features, a constant among them. The largest :math:`\sum \tilde w_i y_i` under both is a linear
program; its dual is a quantile regression of y on the features with the weights s, at :math:`\tau =
\Lambda / (1 + \Lambda)` (Koenker and Bassett 1978; Dorn and Guo 2022):

.. math:: \min_\beta \sum_i s_i \left( \frac{\varphi_i^\top \beta}{1 + \Lambda}
          + (y_i - \varphi_i^\top \beta)_+ \right).                                 \tag{2}

Features that are cells need a sort (:class:`CellProgram`), others an interior-point method
(:class:`FeatureProgram`). Every :math:`\beta` gives a bound that is at worst too wide, and every
choice of factors one that is at worst too narrow: their difference certifies the solution.

The interior-point method is ours. For five values of Λ and 8 features it takes 0.01 s at 1,000
rows, 0.07 s at 10,000 and 1.1 to 1.3 s at 100,000; the same dual by SciPy's HiGHS takes 0.04, 0.37
and 4.3 to 4.9 s by its interior points, and 0.03, 0.27 and 4.4 to 7 s by its simplex method
(processor time, y continuous and binary).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.numerics.calibration import independent, solve_psd
from unskew.numerics.row_features import weighted_moments
from unskew.numerics.typing import FloatArray, IntArray

TOLERANCE = 1e-11
"""The duality gap at which the program counts as solved, relative to the spread of y."""
MOST_STEPS = 80
SHORT = 0.1
STEP = 0.9995
"""The share of the way to the nearest bound that a step goes."""


class SharpBound(NamedTuple):
    """The largest sum of y with changed weights."""

    value: float
    pseudo: FloatArray
    """Numbers of which the sum with the weights w is the value. To first order it follows w as the
    bound does, because coefficients and factors are the best ones."""
    gap: float
    """The value is too large by at most so much."""


class CellProgram:
    """Weights that keep the total of each cell: a sort, for all odds.

    Parameters
    ----------
    values, weights, spare : ndarray of shape (n_rows,)
        y, w and s.
    cells : ndarray of int of shape (n_rows,)

    Examples
    --------
    >>> y, ones = np.array([0.0, 1.0, 5.0]), np.ones(3)
    >>> CellProgram(y, ones, ones, np.zeros(3, int)).largest(2.0).value
    10.5
    """

    def __init__(
        self, values: FloatArray, weights: FloatArray, spare: FloatArray, cells: IntArray
    ) -> None:
        self.values, self._weights, self._spare = values, weights, spare
        self._cells = np.unique(cells, return_inverse=True)[1].reshape(-1)
        self._totals = np.bincount(self._cells, weights=spare)
        self._order = np.lexsort((-values, self._cells))
        ends = np.cumsum(spare[self._order])
        starts = np.cumsum(self._totals) - self._totals
        self._ends = ends - starts[self._cells[self._order]]

    def largest(self, odds: float) -> SharpBound:
        """Return the largest sum where odds are off by a factor of at most ``odds``."""
        # The rows of a cell with the largest y, and 1/(1+odds) of its spare weight, get the
        # factor odds; the first row that does not fit has the quantile.
        rows, cells = self._order, self._cells[self._order]
        beyond = self._ends >= self._totals[cells] / (1.0 + odds) * (1.0 - 1e-12)
        first = np.unique(cells[beyond], return_index=True)
        quantiles = np.zeros(len(self._totals))
        quantiles[first[0]] = self.values[rows[beyond][first[1]]]
        return _bound(
            self.values,
            self._weights,
            self._spare,
            self.values - quantiles[self._cells],
            odds,
            gap=0.0,
        )


class FeatureProgram:
    """Weights that keep the sums of features, and their own.

    Parameters
    ----------
    values, weights, spare : ndarray of shape (n_rows,)
        y, w and s.
    features : ndarray of shape (n_rows, n_features)
    """

    def __init__(
        self, values: FloatArray, weights: FloatArray, spare: FloatArray, features: FloatArray
    ) -> None:
        self.values, self._weights, self._spare = values, weights, spare
        kept = spare > 0
        self._kept, self._s = kept, spare[kept] / spare[kept].mean()
        self._unit = float(spare[kept].mean())
        moments = weighted_moments(features[kept], self._s)
        mean = moments.sums / self._s.sum()
        covariance = moments.gram / self._s.sum() - np.outer(mean, mean)
        own = independent(covariance)
        spread = np.sqrt(np.diag(covariance)[own])
        scaled = (features[kept][:, own] - mean[own]) / spread
        self._phi = np.column_stack([np.ones(len(scaled)), scaled])
        self._centre = float(self._s @ values[kept] / self._s.sum())
        deviations = values[kept] - self._centre
        self._scale = float(np.sqrt(self._s @ deviations**2 / self._s.sum())) or 1.0
        self._y = deviations / self._scale

    def largest(self, odds: float) -> SharpBound:
        """Return the largest sum where odds are off by a factor of at most ``odds``."""
        share, s = 1.0 / (1.0 + odds), self._s
        beta, reached = quantile_regression(self._y * s, self._phi * s[:, None], share)
        # The plane bounds the sum by (2), factors within their bounds reach another: equal up to
        # rounding, both are the best.
        left = self._y - self._phi @ beta
        dual = share * float(s @ (self._phi @ beta)) + float(s @ np.maximum(left, 0.0))
        residuals = np.zeros_like(self.values)
        residuals[self._kept] = self._scale * left
        gap = max(dual - reached, 0.0) * (odds - 1.0 / odds) * self._scale * self._unit
        return _bound(self.values, self._weights, self._spare, residuals, odds, gap=gap)


def _bound(
    values: FloatArray,
    weights: FloatArray,
    spare: FloatArray,
    residuals: FloatArray,
    odds: float,
    *,
    gap: float,
) -> SharpBound:
    """Return the bound that belongs to the residuals of a quantile regression."""
    # By (1), Σ w̃ y = Σ w y + Σ s (κ − 1) y, and balance lets y be its residual there.
    factors = np.where(residuals > 0, odds, 1.0 / odds) - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(weights > 0, spare / weights, 0.0)
    pseudo = values + shares * factors * residuals
    return SharpBound(float(weights @ pseudo), pseudo, gap)


class MeanProgram:
    """Weights without a condition: the largest mean of y.

    Parameters
    ----------
    values, weights, spare : ndarray of shape (n_rows,)
        y; w; and how much of each weight the odds multiply, s: all of it where weights are ratios
        of densities, what exceeds one where they are inverse probabilities.

    Examples
    --------
    >>> y, ones = np.array([0.0, 1.0, 5.0]), np.ones(3)
    >>> MeanProgram(y, ones, ones).largest(2.0).value
    3.5
    """

    def __init__(self, values: FloatArray, weights: FloatArray, spare: FloatArray) -> None:
        self.values, self._weights, self._spare = values, weights, spare
        self._total = float(weights.sum())
        self._mean = float(weights @ values) / self._total
        order = np.argsort(-values, kind="stable")
        self._ordered = values[order]
        zero = np.zeros(1)
        above = spare[order] * (self._ordered - self._mean)
        self._sums = np.concatenate([zero, np.cumsum(above)])
        self._spares = np.concatenate([zero, np.cumsum(spare[order])])

    def largest(self, odds: float) -> SharpBound:
        """Return the largest mean where odds are off by a factor of at most ``odds``."""
        # With the k largest y at κ = Λ and the others at 1/Λ, (1) gives a ratio of two linear
        # functions of cumulated sums; the largest over k is the bound.
        factor, other = odds - 1.0, 1.0 / odds - 1.0
        sums, spares = self._sums, self._spares
        rises = factor * sums + other * (sums[-1] - sums)
        totals = self._total + factor * spares + other * (spares[-1] - spares)
        cuts = rises / totals
        value = self._mean + float(cuts.max())
        change = self._spare * np.where(self.values > value, factor, other)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(self._weights > 0, 1.0 + change / self._weights, 1.0)
        ratios *= self._total / float(self._weights @ ratios)
        return SharpBound(value, value + ratios * (self.values - value), 0.0)

    def breakdown(self, threshold: float) -> float:
        r"""Return the odds at which the largest mean reaches a threshold; infinite if none do.

        There the largest :math:`\sum \tilde w (y - c)` is zero, which is a quadratic equation.
        """
        if threshold <= self._mean:
            return 1.0
        beyond = self.values - threshold
        fixed = float((self._weights - self._spare) @ beyond)
        up = float(self._spare @ np.maximum(beyond, 0.0))
        down = float(self._spare @ np.maximum(-beyond, 0.0))
        # up·Λ + fixed - down/Λ = 0
        if up <= 0:
            return np.inf if fixed <= 0 else max(1.0, down / fixed)
        return max(1.0, (-fixed + float(np.sqrt(fixed**2 + 4 * up * down))) / (2 * up))


OddsProgram = CellProgram | FeatureProgram | MeanProgram
"""What the weights must keep; ``largest(odds)`` is the largest sum, or mean."""


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
    at = _InteriorPoint(x, up, np.maximum(slack, 0.0) + size, np.maximum(-slack, 0.0) + size, beta)
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


class _InteriorPoint(NamedTuple):
    """A point inside: the factors, and the multipliers of their conditions."""

    x: FloatArray
    up: FloatArray  # 1 - x, apart from it so that it does not round to zero
    low: FloatArray
    high: FloatArray
    beta: FloatArray

    @property
    def gap(self) -> float:
        return float(self.x @ self.low + self.up @ self.high)

    def lengths(self, by: _InteriorPoint) -> tuple[float, float]:
        """Return how far factors and multipliers can go along a direction."""
        primal = _longest(self.x, by.x, self.up, by.up)
        return primal, _longest(self.low, by.low, self.high, by.high)

    def moved(self, by: _InteriorPoint, primal: float, dual: float) -> _InteriorPoint:
        """Return the point so far along a direction."""
        moves = zip(self, by, (primal, primal, dual, dual, dual), strict=True)
        return _InteriorPoint(*(one + size * change for one, change, size in moves))


def _step(
    at: _InteriorPoint, goal: FloatArray, rows: FloatArray, target: FloatArray
) -> _InteriorPoint | None:
    """Return the next point; None where rounding leaves nothing to gain."""
    x, up, low, high, beta = at
    # The conditions: Aᵀx = target, Aβ − g = low − high, and low·x = high·(1 − x) = 0. Newton's
    # method for them, the two changes of the multipliers eliminated, leaves a small system in β.
    inverse = 1.0 / (low / x + high / up)
    weighted = rows * inverse[:, None]
    gram = weighted.T @ rows
    missing = target - rows.T @ x
    off = rows @ beta - goal - low + high

    def direction(of_low: FloatArray, of_high: FloatArray) -> _InteriorPoint:
        right = of_low / x - of_high / up + off
        change = solve_psd(gram, weighted.T @ right - missing)
        dx = inverse * (right - rows @ change)
        return _InteriorPoint(dx, -dx, (of_low - low * dx) / x, (of_high + high * dx) / up, change)

    # 1) The predictor aims at zero; how near it gets says how far to aim (Mehrotra's cube).
    first = direction(-x * low, -up * high)
    primal, dual = at.lengths(first)
    mean = at.gap / (2 * len(x))
    centre = mean * (at.moved(first, primal, dual).gap / at.gap) ** 3
    # 2) The corrector adds what the predictor's linearisation has left out, (dx)(dlow). That is
    #    for a whole step, and wrong for a short one.
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


class ProxyMoments(NamedTuple):
    """A proxy of y, its best linear prediction, over the sample and the population."""

    correlation: float
    """Of y and the proxy in the sample, r."""
    distance: float
    """The sample's mean of the proxy minus the population's, in its standard deviations, d."""
    spread: float
    """The standard deviation of y in the sample."""

    def standardised_bias(self, phi: float) -> float:
        """Return SMUB: the bias of the sample's mean in standard deviations of y.

        Selection depends on (1 - φ) times the proxy plus φ times y, both standardised (Little,
        West, Boonstra and Hu 2020, equation 8).

        Examples
        --------
        >>> moments = ProxyMoments(0.5, 0.2, 3.0)
        >>> [moments.standardised_bias(phi) for phi in (0.0, 0.5, 1.0)]
        [0.1, 0.2, 0.4]
        """
        r = self.correlation
        below = phi * r + (1 - phi)
        return float((phi + (1 - phi) * r) / below * self.distance) if below > 0 else float("nan")


def proxy_moments(
    values: FloatArray, design: FloatArray, features: FloatArray, population: FloatArray
) -> ProxyMoments | None:
    """Return the moments of the best linear prediction; None if there is none.

    Parameters
    ----------
    values, design : ndarray of shape (n_rows,)
        y and the design weights.
    features : ndarray of shape (n_rows, n_features)
    population : ndarray of shape (n_features,)
        The population's means of the features.
    """
    shares = design / design.sum()
    mean = shares @ features
    centred = features - mean
    deviations = values - shares @ values
    roots = np.sqrt(shares)[:, None]
    slope = np.linalg.lstsq(roots * centred, roots[:, 0] * deviations, rcond=1e-10)[0]
    proxy = centred @ slope
    spread = float(np.sqrt(shares @ deviations**2))
    of_proxy = float(np.sqrt(shares @ proxy**2))
    if spread <= 0 or of_proxy <= 1e-10 * spread:
        return None
    correlation = float((shares * proxy) @ deviations) / (spread * of_proxy)
    distance = float((mean - population) @ slope) / of_proxy
    return ProxyMoments(correlation, distance, spread)
