r"""The extremes of a weighted mean where odds of selection are off by a factor of at most Λ.

Weights :math:`w_i + s_i (\kappa_i - 1)` with :math:`1/\Lambda \le \kappa_i \le \Lambda`: the
largest mean gives :math:`\kappa = \Lambda` to the rows with the largest y and :math:`1/\Lambda` to
the others (Zhao, Small and Bhattacharya 2019, section 4). Cumulative sums of one sort give these
rows for every Λ.
"""

from __future__ import annotations

import numpy as np

from unskew.numerics.balanced_bounds import Bound
from unskew.numerics.typing import FloatArray


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

    def largest(self, odds: float) -> Bound:
        """Return the largest mean where odds are off by a factor of at most ``odds``."""
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
        return Bound(value, value + ratios * (self.values - value), 0.0)

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
