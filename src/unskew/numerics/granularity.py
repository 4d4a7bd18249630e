r"""How fine a partition should be: the variance of small cells against the bias of large ones.

1. **Estimation.** Small cells have uncertain counts. Their error can be bounded: the largest
   average relative error of the weights that the counts allow
   (:mod:`unskew.numerics.joint_region`).
2. **Smoothing.** Large cells give one weight to rows that should have several. This cannot be seen
   on one partition, but by comparison with finer ones: the difference of the weights beyond the
   noise of the finer ones' counts has been smoothed over.
3. **Choice.** The partition with the least sum of both is chosen.

The method is that of Goldenshluger and Lepski, "Bandwidth selection in kernel density estimation:
oracle inequalities and adaptive minimax optimality", Annals of Statistics 39 (2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unskew.numerics.joint_region import relative_errors, worst_sum
from unskew.numerics.typing import FloatArray


class Granularity(NamedTuple):
    """The two parts of the error of each partition's weights, finest first, and the choice.

    Attributes
    ----------
    estimation : tuple of float
        A bound on the error of the counts, as a share of the weights' sum.
    smoothing : tuple of float
        By how much a partition differs from finer ones beyond the noise of their counts.
    chosen : int
        The partition with the least sum.
    """

    estimation: tuple[float, ...]
    smoothing: tuple[float, ...]
    chosen: int


def estimation_bound(sample: FloatArray, population: FloatArray, delta: float) -> float:
    r"""Return the largest :math:`\sum_C n_C |t_C| / n` that the counts of the cells allow.

    That is the worst l1 distance of the weights over their sum. Counts need not be whole here: this
    guides a choice and is not a certificate.

    Examples
    --------
    >>> few, many = np.array([5.0, 5.0]), np.array([500.0, 500.0])
    >>> round(estimation_bound(few, 2 * few, 0.05), 2)
    2.66
    >>> round(estimation_bound(many, 2 * many, 0.05), 2)
    0.09
    """
    rows = np.maximum(population, sample)  # the sample may not be part of the population
    used = rows > 0
    return worst_sum(
        relative_errors(sample[used], rows[used], delta), rows[used] / rows[used].sum()
    )


def expected_noise(sample: FloatArray, population: FloatArray) -> float:
    r"""Return :math:`\sum_C n_C \sigma_C / n`, with the standard error of each cell's weight.

    :math:`\sigma_C^2 = (1 - \hat q_C) / m_C` is the variance of its relative error t.

    Examples
    --------
    >>> expected_noise(np.array([25.0, 50.0]), np.array([25.0, 100.0]))
    0.08
    """
    rows = np.maximum(population, sample)
    used = sample > 0
    m, n = sample[used], rows[used]
    return float(n @ np.sqrt((1 - m / n) / m) / rows.sum())


def choose_granularity(
    estimation: Sequence[float], noise: Sequence[float], weights: Sequence[FloatArray]
) -> Granularity:
    """Choose among partitions, given from the finest to the coarsest.

    Parameters
    ----------
    estimation, noise : sequence of float
        For each partition, the bound on the error of its counts, and their average error.
    weights : sequence of ndarray of shape (m,)
        The weights of the sample's rows on each, in any scale.

    Examples
    --------
    >>> fine, coarse = np.array([1.0, 3.0]), np.array([2.0, 2.0])
    >>> choose_granularity([0.4, 0.1], [0.1, 0.02], [fine, coarse])
    Granularity(estimation=(0.4, 0.1), smoothing=(0.0, 0.4), chosen=0)
    >>> choose_granularity([0.4, 0.1], [0.5, 0.02], [fine, coarse]).chosen
    1
    """
    # What differs from any finer partition by more than that one's noise was smoothed over; the
    # largest such difference counts (Goldenshluger and Lepski).
    shares = [vector / vector.sum() for vector in weights]
    smoothing = []
    for place, own in enumerate(shares):
        beyond = [
            float(np.abs(own - finer).sum()) - err
            for finer, err in zip(shares[:place], noise, strict=False)
        ]
        smoothing.append(max(0.0, *beyond) if beyond else 0.0)
    totals = np.add(estimation, smoothing)
    return Granularity(tuple(map(float, estimation)), tuple(smoothing), int(np.argmin(totals)))
