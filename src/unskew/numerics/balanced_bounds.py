r"""The extremes of a weighted mean whose weights keep their balance: a linear program.

Odds that are off by factors :math:`1/\Lambda \le \kappa_i \le \Lambda` turn weights into
:math:`\tilde w_i = w_i + s_i (\kappa_i - 1)`, where the *spare* weight s is all of w, or what of it
exceeds one. The changed weights must keep the sums :math:`\sum s_i \kappa_i \varphi_i = \sum s_i
\varphi_i` of features, a constant among them. The largest :math:`\sum \tilde w_i y_i` under both is
a linear program; its dual is a quantile regression of y on the features with the weights s, at
:math:`\tau = \Lambda / (1 + \Lambda)` (Koenker and Bassett 1978; Dorn and Guo 2022):

.. math:: \min_\beta \sum_i s_i \left( \frac{\varphi_i^\top \beta}{1 + \Lambda}
          + (y_i - \varphi_i^\top \beta)_+ \right).

Every :math:`\beta` gives a bound that is at worst too wide, and every choice of factors one that is
at worst too narrow: their difference certifies the solution.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from unskew.numerics.calibration import independent, solve_psd
from unskew.numerics.quantile_regression import TOLERANCE, factors_between, quantile_regression
from unskew.numerics.row_features import weighted_moments
from unskew.numerics.typing import BoolArray, FloatArray, IntArray

ON_THE_PLANE = 1e-9
"""A residual that counts as zero, in standard deviations of y."""
NEARLY = 1e-6
"""A residual, in the same unit, that a solution leaves of a row on the plane."""
MANY = 0.1
"""The share of rows on the plane from which these are solved for by themselves."""
FEW_ROWS = 3000
"""Up to so many rows, all of them enter the program at once."""


class Bound(NamedTuple):
    """The largest sum of y with changed weights."""

    value: float
    pseudo: FloatArray
    """Numbers of which the sum with the weights w is the value. To first order it follows w as the
    bound does, because coefficients and factors are the best ones."""
    gap: float
    """The value is too large by at most so much."""


class Program(Protocol):
    """What the weights must keep."""

    values: FloatArray

    def largest(self, odds: float) -> Bound:
        """Return the largest sum where odds are off by a factor of at most ``odds``."""
        ...  # pragma: no cover


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

    def largest(self, odds: float) -> Bound:
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
        self._sums = self._s @ self._phi
        self._solved: list[tuple[float, FloatArray]] = []
        """The logarithms of the last two odds, and their coefficients."""

    def largest(self, odds: float) -> Bound:
        """Return the largest sum where odds are off by a factor of at most ``odds``."""
        share = 1.0 / (1.0 + odds)
        beta, gap = self._on_the_plane(share) or self._regress(share)
        self._solved = [*self._solved[-1:], (float(np.log(odds)), beta)]
        residuals = np.zeros_like(self.values)
        residuals[self._kept] = self._scale * (self._y - self._phi @ beta)
        spread = (odds - 1.0 / odds) * self._scale * self._unit
        return _bound(
            self.values, self._weights, self._spare, residuals, odds, gap=max(gap, 0.0) * spread
        )

    def _on_the_plane(self, share: float) -> tuple[FloatArray, float] | None:
        """Return the last coefficients if they are the best ones here, too, with their gap.

        Where y has few values, the plane often goes through one of them, and is the same for all
        odds. Then only the factors of the rows on it are to be found: any that keep the balance.
        """
        if not self._solved:
            return None
        beta = self._solved[-1][1]
        on = np.abs(self._y - self._phi @ beta) <= NEARLY
        if on.sum() < max(MANY * len(on), FEW_ROWS):
            return None
        phi, s = self._phi[on], self._s[on]
        off = phi.T @ (s * (self._y[on] - phi @ beta))
        beta = beta + solve_psd(phi.T @ (phi * s[:, None]), off)
        residuals = self._y - self._phi @ beta
        above = ~on & (residuals > 0)
        if np.abs(residuals[on]).max() > ON_THE_PLANE:
            return None
        wanted = share * self._sums - self._s[above] @ self._phi[above]
        factors = factors_between(phi, s, wanted)
        if factors is None:
            return None
        reached = float(self._s[above] @ self._y[above] + (s * factors) @ self._y[on])
        dual = share * float(self._sums @ beta) + float(self._s @ np.maximum(residuals, 0.0))
        return (beta, dual - reached) if dual - reached <= TOLERANCE * self._s.sum() else None

    def _regress(self, share: float) -> tuple[FloatArray, float]:
        """Return the coefficients of the quantile regression, and its duality gap.

        Rows far from a first guess are taken together, those above it and those below, as in
        Portnoy and Koenker (1997); those that turn out to be on another side are added to the
        others, and the program is solved again.
        """
        n_rows, width = self._phi.shape
        free, side = np.ones(n_rows, dtype=bool), np.zeros(n_rows)
        if n_rows > FEW_ROWS:
            residuals = self._y - self._phi @ self._guess(share)
            side = np.where(np.abs(residuals) > ON_THE_PLANE, np.sign(residuals), 0.0)
            n_free = min(n_rows, int(20 * width + 2 * n_rows ** (2 / 3)))
            nearest = np.argpartition(np.abs(residuals), n_free - 1)[:n_free]
            free = np.isin(np.arange(n_rows), nearest)
        limit = TOLERANCE * self._s.sum()
        while True:
            beta, reached = self._solve_reduced(free, side, share)
            residuals = self._y - self._phi @ beta
            dual = share * float(self._sums @ beta) + float(self._s @ np.maximum(residuals, 0.0))
            wrong = ~free & (side * residuals < ON_THE_PLANE) & (np.abs(residuals) > ON_THE_PLANE)
            if dual - reached <= limit or not wrong.any():
                return beta, dual - reached
            free |= wrong
            if free.sum() > n_rows / 2:
                free[:] = True

    def _guess(self, share: float) -> FloatArray:
        """Return coefficients near the best: on the line through those of the last two odds."""
        if self._solved:
            (first, one), (last, beta) = self._solved[0], self._solved[-1]
            beyond = float(np.log(1.0 / share - 1.0)) - last
            if 0 < abs(beyond) <= 2 * abs(last - first):
                return beta + beyond / (last - first) * (beta - one)
            return beta
        few = np.zeros(len(self._y), dtype=bool)
        few[:: max(1, len(self._y) // (FEW_ROWS // 2))] = True
        s, phi = self._s[few], self._phi[few]
        return quantile_regression(self._y[few] * s, phi * s[:, None], share)[0]

    def _solve_reduced(
        self, free: BoolArray, side: FloatArray, share: float
    ) -> tuple[FloatArray, float]:
        """Return coefficients and the sum that is reached, other rows having factors in common."""
        goal, rows = self._y * self._s, self._phi * self._s[:, None]
        if not free.all():
            others = np.flatnonzero(~free)
            # Several on each side: where y has few values, many rows lie on the plane, which more
            # of them than there are coefficients fix.
            n_together = 4 * rows.shape[1]
            together = (side[others] + 1).astype(int) * n_together + np.arange(
                len(others)
            ) % n_together
            together = np.unique(together, return_inverse=True)[1].reshape(-1)
            summed = [np.bincount(together, weights=one[others]) for one in (goal, *rows.T)]
            goal = np.concatenate([goal[free], summed[0]])
            rows = np.vstack([rows[free], np.column_stack(summed[1:])])
        return quantile_regression(goal, rows, share)


def _bound(
    values: FloatArray,
    weights: FloatArray,
    spare: FloatArray,
    residuals: FloatArray,
    odds: float,
    *,
    gap: float,
) -> Bound:
    """Return the bound that belongs to the residuals of a quantile regression."""
    factors = np.where(residuals > 0, odds, 1.0 / odds) - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(weights > 0, spare / weights, 0.0)
    pseudo = values + shares * factors * residuals
    return Bound(float(weights @ pseudo), pseudo, gap)
