"""Distances between calibrated and design weights, by the factor F(u) that each leads to.

Deville and Särndal, "Calibration estimators in survey sampling", JASA 87 (1992), section 2; the
propensity's factor is that of inverse probability tilting (Graham, Pinto and Egel 2012). Another
distance is a class here and its line in ``DISTANCES``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unskew.errors import ParameterError
from unskew.numerics.typing import FloatArray


class Curves(NamedTuple):
    """G(u), F(u) and F'(u)."""

    potential: FloatArray
    factors: FloatArray
    slopes: FloatArray


class Distance(ABC):
    """The factor F of a design weight as a function of the score u, with its integral and slope."""

    lowest = 0.0
    """The infimum of the factor."""
    counts_totals = False
    """Whether the factor is of weights that sum to the population's total, not to the sample's."""

    def within(self, low: float, high: float) -> Distance:
        """Return the distance with factors between two bounds, which may be infinite."""
        if low == -np.inf and high == np.inf:
            return self
        return Truncated(self, max(low, self.lowest), high)

    @abstractmethod
    def factors(self, scores: FloatArray) -> FloatArray:
        """Return F(u)."""

    @abstractmethod
    def potential(self, scores: FloatArray) -> FloatArray:
        """Return G(u), of which F is the derivative."""

    @abstractmethod
    def slopes(self, scores: FloatArray) -> FloatArray:
        """Return F'(u)."""

    @abstractmethod
    def inverse(self, factors: FloatArray) -> FloatArray:
        """Return the score at which F takes a value; infinite beyond its range."""

    def curves(self, scores: FloatArray) -> Curves:
        """Return all three at once."""
        return Curves(self.potential(scores), self.factors(scores), self.slopes(scores))

    def range(self) -> tuple[FloatArray | float, FloatArray | float]:
        """Return the infimum and the supremum of the factor."""
        return self.lowest, np.inf

    def start(self, ratio: float) -> float:
        """Return the score at which F is the ratio of the totals."""
        return float(self.inverse(np.array([ratio]))[0])


class Raking(Distance):
    """F(u) = exp(u): raking, entropy balancing, exponential tilting."""

    def factors(self, scores: FloatArray) -> FloatArray:
        """Return F(u)."""
        with np.errstate(over="ignore"):
            return np.exp(scores)

    potential = slopes = factors

    def curves(self, scores: FloatArray) -> Curves:
        """Return all three, which are the same."""
        factors = self.factors(scores)
        return Curves(factors, factors, factors)

    def inverse(self, factors: FloatArray) -> FloatArray:
        """Return log F."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(factors, 0.0))


class Propensity(Distance):
    """F(u) = 1 + exp(u): the inverse of a logistic propensity, 1 / (1 + exp(u))."""

    lowest = 1.0  # a row of a sample that is part of the population stands at least for itself
    counts_totals = True

    def factors(self, scores: FloatArray) -> FloatArray:
        """Return F(u)."""
        return 1.0 + self.slopes(scores)

    def potential(self, scores: FloatArray) -> FloatArray:
        """Return u + exp(u)."""
        return scores + self.slopes(scores)

    def slopes(self, scores: FloatArray) -> FloatArray:
        """Return exp(u)."""
        with np.errstate(over="ignore"):
            return np.exp(scores)

    def inverse(self, factors: FloatArray) -> FloatArray:
        """Return log(F - 1)."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(factors - 1.0, 0.0))


class Linear(Distance):
    """F(u) = 1 + u: the chi-squared distance of the generalised regression estimator."""

    lowest = -np.inf

    def factors(self, scores: FloatArray) -> FloatArray:
        """Return F(u)."""
        return 1.0 + scores

    def potential(self, scores: FloatArray) -> FloatArray:
        """Return u + u²/2."""
        return scores + scores**2 / 2

    def slopes(self, scores: FloatArray) -> FloatArray:
        """Return 1."""
        return np.ones_like(scores)

    def inverse(self, factors: FloatArray) -> FloatArray:
        """Return F - 1."""
        return np.asarray(factors - 1.0)


class Logit(Distance):
    """Deville and Särndal's F, a logistic curve between two bounds, with F(0) = F'(0) = 1."""

    def __init__(self, low: float = 0.0, high: float = 2.0) -> None:
        self.lowest, self.highest = low, high
        self._steepness = (high - low) / ((1.0 - low) * (high - 1.0))

    def within(self, low: float, high: float) -> Distance:
        """Return the curve between other bounds, which it needs."""
        if not (0 <= low < 1 < high < np.inf):
            ends = [end if np.isfinite(end) else None for end in (low, high)]
            raise ParameterError(
                'distance="logit" needs bounds=(low, high) with 0 <= low < 1 < high; got '
                f"{'no bounds' if ends == [None, None] else tuple(ends)}."
            )
        return Logit(low, high)

    def range(self) -> tuple[FloatArray | float, FloatArray | float]:
        """Return the bounds."""
        return self.lowest, self.highest

    def _share(self, scores: FloatArray) -> FloatArray:
        """Return how far the factor is from the lower to the upper bound."""
        odds = np.log((1.0 - self.lowest) / (self.highest - 1.0))
        with np.errstate(over="ignore"):
            return 1.0 / (1.0 + np.exp(-self._steepness * scores - odds))

    def factors(self, scores: FloatArray) -> FloatArray:
        """Return F(u)."""
        return self.lowest + (self.highest - self.lowest) * self._share(scores)

    def potential(self, scores: FloatArray) -> FloatArray:
        """Return the integral of F from 0."""
        steps = self._steepness * scores
        low, high = np.log(self.highest - 1.0), np.log(1.0 - self.lowest)
        soft = np.logaddexp(low, high + steps) - np.log(self.highest - self.lowest)
        return self.lowest * scores + (self.highest - self.lowest) / self._steepness * soft

    def slopes(self, scores: FloatArray) -> FloatArray:
        """Return F'(u)."""
        # A logistic curve has the slope share · (1 − share) in units of its steepness.
        share = self._share(scores)
        return (self.highest - self.lowest) * self._steepness * share * (1.0 - share)

    def inverse(self, factors: FloatArray) -> FloatArray:
        """Return the score of a factor."""
        with np.errstate(divide="ignore"):
            above = np.log(np.maximum(factors - self.lowest, 0.0))
            below = np.log(np.maximum(self.highest - factors, 0.0))
        odds = np.log((1.0 - self.lowest) / (self.highest - 1.0))
        return (above - below - odds) / self._steepness


@dataclass(frozen=True)
class Truncated(Distance):
    """Another distance whose factors are kept between bounds, which may differ between rows.

    The constraint w/d ≤ c has its own multiplier, so that the factor is min(F(u), c), and beyond
    the bound G goes on as a straight line.
    """

    inner: Distance
    low: FloatArray | float
    high: FloatArray | float

    @property
    def counts_totals(self) -> bool:  # type: ignore[override]
        """Whether the other distance does."""
        return self.inner.counts_totals

    @property
    def lowest(self) -> float:  # type: ignore[override]
        """The smallest lower bound."""
        return max(self.inner.lowest, float(np.min(self.low)))

    def range(self) -> tuple[FloatArray | float, FloatArray | float]:
        """Return the bounds."""
        return self.lowest, np.minimum(self.high, self.inner.range()[1])

    def _kept(self, scores: FloatArray) -> FloatArray:
        low, high = (self.inner.inverse(np.asarray(end, float)) for end in (self.low, self.high))
        return np.minimum(np.maximum(scores, low), high)

    def factors(self, scores: FloatArray) -> FloatArray:
        """Return F(u) within the bounds."""
        factors = self.inner.factors(self._kept(scores))
        return np.minimum(np.maximum(factors, self.low), self.high)  # but for rounding, they are

    def potential(self, scores: FloatArray) -> FloatArray:
        """Return the integral of the truncated factor."""
        # Beyond the bound, F is constant and its integral a straight line.
        kept = self._kept(scores)
        return self.inner.potential(kept) + self.inner.factors(kept) * (scores - kept)

    def slopes(self, scores: FloatArray) -> FloatArray:
        """Return the slope: zero beyond the bounds."""
        kept = self._kept(scores)
        return np.where(kept == scores, self.inner.slopes(kept), 0.0)

    def inverse(self, factors: FloatArray) -> FloatArray:
        """Return the score of a factor within the bounds."""
        return self.inner.inverse(factors)


DISTANCES: dict[str, Distance] = {
    "raking": Raking(),
    "entropy": Raking(),
    "propensity": Propensity(),
    "linear": Linear(),
    "logit": Logit(),
}
"""The distances by the names that users give."""
