r"""Bounds on the weights from the counts of the cells alone, which are all observed.

Given the population, the number of selected rows of a cell is binomial, and cells are independent.
So exact intervals can take the place of Hoeffding's, and a joint region the place of the union
bound; the weights' distance from the perfect ones is then at most its largest value over the
region.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unskew.numerics.binomial_intervals import clopper_pearson, sidak
from unskew.numerics.joint_region import relative_errors, relative_limits, worst_squares, worst_sum
from unskew.numerics.typing import FloatArray
from unskew.theory.bound import Bound
from unskew.theory.checks import check_counts, check_option, check_probability
from unskew.theory.frequency import PARTITION, Parts, distance_of, largest_part


class Intervals(NamedTuple):
    """Limits of the probability of selection in each cell.

    Examples
    --------
    >>> from unskew.theory import cell_intervals
    >>> intervals = cell_intervals(population_counts=[100, 50], sample_counts=[30, 25])
    >>> bool(intervals.lower[0] < 0.3 < intervals.upper[0])
    True
    """

    lower: FloatArray
    upper: FloatArray


def cell_intervals(
    *, population_counts: ArrayLike, sample_counts: ArrayLike, delta: float = 0.05
) -> Intervals:
    r"""Return exact intervals that hold all cells' probabilities at once.

    Clopper and Pearson's for each cell, at the level :math:`1 - (1 - \delta)^{1/k}` that Šidák's
    equality gives for independent cells. Where the probability varies within a cell they hold for
    its average up to a small excess, since the count is then less variable than binomial.

    Parameters
    ----------
    population_counts, sample_counts : array-like of shape (k,)
        How many rows of each cell are in the population and in the sample; all cells of the
        partition, also those that hold no sample row.
    delta : float, default=0.05

    Returns
    -------
    Intervals

    Examples
    --------
    >>> from unskew.theory import cell_intervals
    >>> intervals = cell_intervals(population_counts=[200, 10], sample_counts=[100, 5])
    >>> intervals.lower.round(2), intervals.upper.round(2)
    (array([0.42, 0.16]), array([0.58, 0.84]))
    """
    population, sample = check_counts(population_counts, sample_counts)
    delta = check_probability(delta, name="delta")
    return Intervals(*clopper_pearson(sample, population, sidak(delta, len(sample))))


def worst_case_distance(
    *,
    population_counts: ArrayLike,
    sample_counts: ArrayLike,
    norm: str,
    delta: float = 0.05,
    region: Literal["joint", "box"] = "joint",
) -> Bound:
    r"""Bound the distance of the weights by its largest value over what the counts allow.

    With :math:`t_C = \hat q_C / q_C - 1`, the relative error of the weight of cell C,

    .. math:: l_1(W, \hat W) = \frac1m \sum_C n_C |t_C|, \qquad
              l_2^2(W, \hat W) = \frac1{m^2} \sum_C \frac{n_C^2}{m_C} t_C^2.

    Parameters
    ----------
    population_counts, sample_counts : array-like of shape (k,)
        As for :func:`cell_intervals`.
    norm : {"l1", "l2"}
    delta : float, default=0.05
    region : {"joint", "box"}, default="joint"
        "box" lets every cell be at the worse end of its interval at once. "joint" also bounds what
        all cells together can deviate (:mod:`unskew.numerics.joint_region`), which is less from a
        few cells on.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from unskew.theory import worst_case_distance
    >>> counts = {"population_counts": [200] * 20, "sample_counts": [100] * 20}
    >>> round(worst_case_distance(**counts, norm="l1", region="box"), 2)
    0.55
    >>> round(worst_case_distance(**counts, norm="l1"), 2)
    0.28
    """
    norm = check_option(norm, ("l1", "l2"), name="norm")
    region = check_option(region, ("joint", "box"), name="region")  # type: ignore[assignment]
    population, sample = check_counts(population_counts, sample_counts)
    delta = check_probability(delta, name="delta")
    reached = sample > 0
    rows = float(sample.sum())
    linear = np.where(reached, population, 0.0) / rows
    square = np.divide(population**2, sample, out=np.zeros_like(sample), where=reached) / rows**2
    terms: dict[str, float] = {"cells": len(sample), "m": rows, "delta": delta}
    if region == "box":
        low, high = relative_limits(sample, population, delta)
        size: FloatArray = np.maximum(high, -low)
        value = float(linear @ size) if norm == "l1" else math.sqrt(square @ size**2)
    else:
        errors = relative_errors(sample, population, delta)
        size = errors.size
        terms["radius"] = errors.radius
        value = (
            worst_sum(errors, linear) if norm == "l1" else math.sqrt(worst_squares(errors, square))
        )
    worst = int(np.argmax(linear * size if norm == "l1" else square * size**2))
    terms |= largest_part(worst, population, sample)
    with_region = ", with a joint region" if region == "joint" else ""
    return distance_of(
        Parts(value, terms, PARTITION),
        norm,
        population,
        sample,
        reference=f"Clopper and Pearson (1934) for each cell{with_region}",
    )
