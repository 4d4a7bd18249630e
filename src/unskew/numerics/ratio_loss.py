r"""The loss of a density ratio, and a pool of several ratios.

For an estimate r of the density ratio of population and sample, the balanced log loss

.. math:: L(r) = \tfrac12 \mathrm{mean}_S \log(1 + r) + \tfrac12 \mathrm{mean}_U \log(1 + 1/r)

is that of a classifier which sees both sides equally often and says "population" with probability
:math:`r / (1 + r)`. It is log 2 for r = 1 and smallest for the true ratio. On rows that did not
train the ratio, it says how good the ratio is without knowing the true one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from unskew.numerics.auc import weighted_auc
from unskew.numerics.calibration import solve_psd
from unskew.numerics.softplus import softplus
from unskew.numerics.typing import FloatArray

MAX_STEPS = 100


class Sided(NamedTuple):
    """One number for each sample row, and one for each population row."""

    mine: FloatArray
    theirs: FloatArray


class RatioLoss(NamedTuple):
    """A balanced log loss in nats, and its standard error."""

    value: float
    error: float

    @property
    def gain(self) -> float:
        """How much better it is than the loss log 2 of a ratio of one."""
        return float(np.log(2.0)) - self.value


def ratio_loss(log_ratio: Sided, shares: Sided) -> RatioLoss:
    """Return the loss of a ratio on rows with these shares, which sum to one on either side.

    Examples
    --------
    >>> even = Sided(np.full(2, 0.5), np.full(4, 0.25))
    >>> round(ratio_loss(Sided(np.zeros(2), np.zeros(4)), even).value, 6)
    0.693147
    """
    losses = Sided(softplus(log_ratio.mine), softplus(-log_ratio.theirs))
    value, variance = 0.0, 0.0
    for loss, share in zip(losses, shares, strict=True):
        mean = float(share @ loss)
        value += mean / 2
        variance += float(np.square(share * (loss - mean)).sum()) / 4
    return RatioLoss(value, float(np.sqrt(variance)))


def separation(log_ratio: Sided, shares: Sided) -> tuple[float, float]:
    """Return by how much the mean log ratio of the population exceeds the sample's, and its error.

    On held-out rows it is zero on average where the sides do not differ. For small differences it
    is as many errors above as their means are, and the gain in loss only half as many.

    Examples
    --------
    >>> even = Sided(np.full(2, 0.5), np.full(2, 0.5))
    >>> separation(Sided(np.array([-1.0, 1.0]), np.array([0.0, 2.0])), even)
    (1.0, 1.0)
    """
    means = [float(share @ side) for side, share in zip(log_ratio, shares, strict=True)]
    parts = zip(log_ratio, shares, means, strict=True)
    variance = sum(float(np.square(share * (side - mean)).sum()) for side, share, mean in parts)
    return means[1] - means[0], float(np.sqrt(variance))


def lowers_loss(new: Sided, old: Sided, shares: Sided, *, errors: float = 2.0) -> bool:
    """Return whether a ratio's loss is lower than another's by so many standard errors."""
    difference, variance = 0.0, 0.0
    for sign, one, other, share in zip((1.0, -1.0), new, old, shares, strict=True):
        change = softplus(sign * one) - softplus(sign * other)
        mean = float(share @ change)
        difference += mean / 2
        variance += float(np.square(share * (change - mean)).sum()) / 4
    return bool(difference < -errors * np.sqrt(variance))


def pool_exponents(candidates: list[Sided], shares: Sided) -> FloatArray:
    r"""Return exponents :math:`\theta \ge 0` such that :math:`\prod r_j^{\theta_j}` has least loss.

    The loss is convex in them; Newton's method on those that are free, others held at zero.

    Examples
    --------
    A ratio that is the square of the true one gets the exponent one half.

    >>> share = np.array([0.2, 0.8])
    >>> truth = Sided(np.log([4.0, 0.25]), np.log([4.0, 0.25]))
    >>> pool_exponents([Sided(*(2 * side for side in truth))], Sided(share, share[::-1])).round(6)
    array([0.5])
    """
    mine, theirs = (np.column_stack(side) for side in zip(*candidates, strict=True))
    exponents = np.full(mine.shape[1], 1.0 / mine.shape[1])

    def value(at: FloatArray) -> float:
        return ratio_loss(Sided(mine @ at, theirs @ at), shares).value

    best = value(exponents)
    for _ in range(MAX_STEPS):
        high, low = expit(mine @ exponents), expit(-theirs @ exponents)
        slope = (shares.mine * high) @ mine - (shares.theirs * low) @ theirs
        free = (exponents > 0) | (slope < 0)
        if np.abs(np.where(free, slope, 0.0)).max(initial=0.0) < 1e-10:
            break
        hessian = (mine.T * (shares.mine * high * (1 - high))) @ mine
        hessian += (theirs.T * (shares.theirs * low * (1 - low))) @ theirs
        direction = np.zeros_like(exponents)
        direction[free] = -solve_psd(hessian[np.ix_(free, free)], slope[free])
        size = 1.0
        while size > 1e-10:
            new = np.maximum(exponents + size * direction, 0.0)
            reached = value(new)
            if reached < best:
                break
            size /= 2
        else:
            break
        exponents, best = new, reached
    return exponents


def sided_auc(scores: Sided, mass: Sided) -> float:
    """Return the probability that a population row is scored above a sample row."""
    theirs = np.concatenate([np.zeros(len(mass.mine)), mass.theirs])
    mine = np.concatenate([mass.mine, np.zeros(len(mass.theirs))])
    return weighted_auc(np.concatenate(scores), theirs, mine)[0]
