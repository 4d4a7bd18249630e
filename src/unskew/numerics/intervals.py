"""Intervals of estimates that may be biased, and of shares, which lie between zero and one."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.stats import t as student

ROUNDING = 1e-9
"""How far a share of all rows, or of none, may be from one or zero."""


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
