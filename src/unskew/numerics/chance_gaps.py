r"""What an even draw explains: how much of one set another may lack by chance.

If m points and r others were draws from one distribution, it would be chance which of them are
points. Fix a region with k of the others: no point lies in it with probability of at most
:math:`(r / (m + r))^k`, whose negative logarithm, the *evidence*, is :math:`k \log(1 + m / r)`.

**Weights.** k is the effective number (Kish) of the others in the region, and m / r is n / k, where
n is the number of points that an even draw would place there. Points with design weights were drawn
with unequal probabilities, and a region may consist of what is drawn the least often: a region of
share p then counts on no more points than the heaviest ones that carry a share p of the design
weight. Without weights, n is m p.

**Values.** A column cuts the rows into values, of which the points may lack many by chance where
there are many. Given how often each value occurs in both sets together, the indicators of the
values that the points lack are negatively associated (Joag-Dev and Proschan, The Annals of
Statistics 11, 1983), so that Chernoff's inequality for independent ones bounds the tail of the mass
that they lack.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar

from unskew.numerics.typing import FloatArray, IntArray


class EvenDraw:
    """Two sets of rows, as if they were draws from one distribution.

    Parameters
    ----------
    design : ndarray of shape (m,)
        The design weights of the points, all positive.
    mass : ndarray of shape (r,)
        Of the others; it sums to one.
    squares : ndarray of shape (r,), optional
        The sum of squared masses of the rows that each of the others stands for; by default each
        stands for itself.

    Examples
    --------
    >>> draw = EvenDraw(np.ones(100), np.full(400, 1 / 400))
    >>> print(draw.evidence(0.1, 0.1 / 400).round(2), (40 * np.log(1 + 100 / 400)).round(2))
    8.93 8.93
    """

    def __init__(
        self, design: FloatArray, mass: FloatArray, squares: FloatArray | None = None
    ) -> None:
        self.mass = mass
        self.squares = mass**2 if squares is None else squares
        self.design = design / design.sum()
        # A region of a share may consist of the heaviest points: the fewest that carry it.
        heaviest_first = np.sort(self.design)[::-1]
        self._carried = np.append(0.0, np.cumsum(heaviest_first))
        self._points = np.arange(len(self._carried), dtype=np.float64)

    @property
    def effective_others(self) -> float:
        """The effective number of the others."""
        return float(1 / self.squares.sum())

    def points_with(self, share: float | FloatArray) -> FloatArray:
        """Return how many points, the heaviest first, carry a share of the design weight."""
        return np.asarray(np.interp(share, self._carried, self._points))

    def evidence(self, share: float | FloatArray, squares: float | FloatArray) -> FloatArray:
        """Return −log of the probability that no point lies where a share of the others does.

        ``squares`` is the sum of ``squares`` there.
        """
        return _evidence(_rows(np.asarray(share), np.asarray(squares)), self.points_with(share))

    def totals(self, of_others: IntArray, n_values: int) -> tuple[FloatArray, FloatArray]:
        """Return the mass and the squares of each value of a column."""
        mass = np.bincount(of_others, weights=self.mass, minlength=n_values)
        squares = np.bincount(of_others, weights=self.squares, minlength=n_values)
        return mass.astype(np.float64), squares.astype(np.float64)

    def lacking(
        self,
        of_points: IntArray,
        of_others: IntArray,
        n_values: int,
        *,
        except_for: IntArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mass of each value of a column, and the chance that an even draw lacks it.

        The arguments are the value of each point and of each of the others, as numbers. The mass of
        values in ``except_for`` counts as zero.
        """
        mass, squares = self.totals(of_others, n_values)
        design = np.bincount(of_points, weights=self.design, minlength=n_values)
        # Both sets together: the mass that a value has if all of its rows are others.
        points = design / np.square(self.design).sum()
        share = mass + points * self.squares.sum()
        rows = _rows(mass, squares) + points
        probability = np.exp(-_evidence(rows, self.points_with(share)))
        if except_for is not None:
            share[except_for] = 0.0
        return share, probability


def log_tail(share: FloatArray, probability: FloatArray, mass: float) -> float:
    """Return an upper bound on the log of the chance that an even draw lacks at least a mass.

    ``share`` and ``probability`` are those of :meth:`EvenDraw.lacking`.
    """
    if mass <= float(share @ probability):
        return 0.0
    probability = np.clip(probability, 1e-300, 1 - 1e-16)
    no, yes = np.log1p(-probability), np.log(probability)

    def chernoff(log_tilt: float) -> float:
        # log E e^(s L) − s·mass of the lacking mass L = Σ share · 1{lacking}, at the tilt s.
        tilt = math.exp(log_tilt)
        return float(np.logaddexp(no, yes + tilt * share).sum() - tilt * mass)

    # Any tilt gives a valid bound; the least is near the inverse of a share of a value.
    middle = -math.log(float(share.max()))
    found = minimize_scalar(chernoff, bounds=(middle - 10, middle + 10), method="bounded")
    return min(0.0, float(found.fun))


def _rows(share: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the effective number of rows."""
    return np.divide(share**2, squares, out=np.zeros_like(share), where=squares > 0)


def _evidence(rows: FloatArray, points: FloatArray) -> FloatArray:
    ratio = np.divide(points, rows, out=np.zeros_like(rows), where=rows > 0)
    return rows * np.log1p(ratio)
