"""Exact intervals for the probabilities behind binomial counts."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats
from scipy.special import xlogy

from unskew.numerics.typing import FloatArray


def clopper_pearson(
    successes: FloatArray, trials: FloatArray, miss: float
) -> tuple[FloatArray, FloatArray]:
    """Return limits that miss the probability with probability at most ``miss``, half on each side.

    Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934).

    Examples
    --------
    >>> lower, upper = clopper_pearson(np.array([0.0, 5.0]), np.array([10.0, 10.0]), 0.05)
    >>> lower.round(3), upper.round(3)
    (array([0.   , 0.187]), array([0.308, 0.813]))
    """
    none, every = successes == 0, successes == trials
    lower = stats.beta.ppf(miss / 2, np.where(none, 1.0, successes), trials - successes + 1)
    upper = stats.beta.ppf(1 - miss / 2, successes + 1, np.where(every, 1.0, trials - successes))
    return np.where(none, 0.0, lower), np.where(every, 1.0, upper)


def sidak(miss: float, n_cells: int) -> float:
    """Return what each of independent intervals may miss, so that any misses with ``miss``.

    Examples
    --------
    >>> round(1 - (1 - sidak(0.05, 10)) ** 10, 12)
    0.05
    """
    return -math.expm1(math.log1p(-miss) / n_cells)


def binomial_divergence(
    successes: FloatArray, trials: FloatArray, probability: FloatArray
) -> FloatArray:
    r"""Return :math:`n\,\mathrm{kl}(\hat q \Vert q)`, the log-likelihood ratio of a count.

    Examples
    --------
    >>> binomial_divergence(np.array([5.0]), np.array([10.0]), np.array([0.5]))
    array([0.])
    """
    rate = successes / trials
    # Where every trial succeeds, 1 - q may be zero and its part is; elsewhere it makes infinity.
    some = np.where(rate < 1, 1 - probability, 1.0)
    with np.errstate(divide="ignore"):
        divergence = xlogy(rate, rate / probability) + xlogy(1 - rate, (1 - rate) / some)
    return trials * np.maximum(divergence, 0.0)
