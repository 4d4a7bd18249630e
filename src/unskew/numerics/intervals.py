"""Intervals of estimates that may be biased, and of shares, which lie between zero and one."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.stats import t as student

from unskew.numerics.typing import FloatArray

ROUNDING = 1e-9
"""How far a share of all rows, or of none, may be from one or zero."""
LEAST_TAIL = 10
"""Fewer rows say nothing of a tail."""


def half_width(error: float, degrees: float, level: float, bias: float = 0.0) -> float:
    r"""Return half the length of an interval around an estimate, biased by at most ``bias``.

    It is c standard errors, where :math:`|T + b| \le c` with a probability of ``level`` for
    Student's T and a bias of b standard errors. Without a bias, c is Student's quantile.

    Parameters
    ----------
    error, degrees : float
        The standard error, and its degrees of freedom; infinite for a normal estimate.
    level : float
    bias : float, default=0.0

    References
    ----------
    Armstrong and Kolesár, "Optimal inference in a class of regression models", Econometrica 86
    (2018).

    Examples
    --------
    >>> round(half_width(1.0, np.inf, 0.95), 3), round(half_width(1.0, np.inf, 0.95, bias=1.0), 3)
    (1.96, 2.646)
    """
    most = float(student.ppf(0.5 + level / 2, degrees))
    if error <= 0.0 or bias <= 0.0:
        return most * error + bias
    b = bias / error

    def missing(times: float) -> float:
        return float(student.cdf(times - b, degrees) - student.cdf(-times - b, degrees)) - level

    return float(brentq(missing, 0.0, b + most)) * error


def skewed_ends(times: float, skewness: float) -> tuple[float, float]:
    r"""Return how many standard errors to go down and up from an estimate with skewness G.

    Hall's transformation :math:`g(t) = t + G t^2/3 + G^2 t^3/27 + G/6` makes a Student's statistic
    nearly normal; the ends are where it is ± ``times``, and never nearer than without it, as a
    skewness that few rows show may be chance.

    References
    ----------
    Hall, "On the removal of skewness by transformation", JRSS B 54 (1992).

    Examples
    --------
    >>> skewed_ends(2.0, 0.0)
    (2.0, 2.0)
    >>> down, up = skewed_ends(2.0, 0.3)
    >>> round(down, 2), round(up, 2)
    (2.0, 2.73)
    """
    if abs(skewness) < 1e-6:
        return times, times
    ends = np.cbrt(1.0 + skewness * (np.array([times, -times]) - skewness / 6.0)) - 1.0
    down, up = 3.0 / skewness * ends
    return max(times, float(down)), max(times, float(-up))


def heavy_tail(residuals: FloatArray) -> bool:
    r"""Return whether the longer tail is so heavy that intervals of the mean are too short.

    The moment estimator of the extreme-value index, :math:`M_1 + 1 - \tfrac12 / (1 - M_1^2/M_2)`,
    of the largest fifth, is 1/α for a Pareto tail of index α: above one half the variance is
    infinite.
    It has to be above by what an index of one half exceeds in one sample of twenty. So far, which
    is α = 2.5 or a lognormal's, intervals with skewed ends hold.

    References
    ----------
    Dekkers, Einmahl and de Haan, "A moment estimator for the index of an extreme-value
    distribution", Annals of Statistics 17 (1989).

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> heavy_tail(random.pareto(1.2, 1000)), heavy_tail(random.normal(size=1000))
    (True, False)
    """
    sign = np.sign(((residuals - residuals.mean()) ** 3).sum())
    largest = np.sort(sign * (residuals - np.median(residuals)))[::-1]
    k = min(len(largest) // 5, int((largest > 0).sum()) // 2)
    if k < LEAST_TAIL:
        return False
    excess = np.log(largest[:k] / largest[k])
    first, second = excess.mean(), (excess**2).mean()
    if second <= first**2:  # all alike
        return False
    index = first + 1.0 - 0.5 / (1.0 - first**2 / second)
    return bool(index > max(0.5 + 1.65 * np.sqrt(1.25 / k), 0.66))


def share_interval(
    share: float, half: float, times: float, effective_size: float
) -> tuple[float, float]:
    r"""Return Wilson's interval of a share that was estimated with weights.

    It holds the shares :math:`\pi` with :math:`(p - \pi)^2 \le t^2 \pi (1 - \pi) / n`, where n is
    the number of evenly drawn rows that would give the share this half width,
    :math:`t \sqrt{p (1 - p) / n}`. A share of all rows or of none has a half width of zero, and
    then n is the effective sample size.

    Parameters
    ----------
    share, half : float
        p, between 0 and 1 up to rounding, and half the length of its symmetric interval.
    times : float
        t: how many standard errors to go for a share of all rows or of none.
    effective_size : float
        Of the weights.

    References
    ----------
    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).

    Examples
    --------
    >>> low, high = share_interval(0.1, 1.96 * 0.03, 1.96, 100.0)
    >>> round(low, 3), round(high, 3)
    (0.055, 0.174)
    >>> round(share_interval(1.0, 0.0, 1.96, 100.0)[0], 3)  # all of 100 rows
    0.963
    """
    share = min(max(share, 0.0), 1.0)
    variance = share * (1.0 - share)
    spread = times**2 / effective_size  # t²/n
    if variance > ROUNDING:
        spread = half**2 / variance
    middle = (share + spread / 2) / (1 + spread)
    beside = np.sqrt(spread * variance + spread**2 / 4) / (1 + spread)
    return max(float(middle - beside), 0.0), min(float(middle + beside), 1.0)
