r"""Bounds for weights that are ratios of counts in cells: Lemma 3, Propositions 3 and 5, Theorem 2.

Of the :math:`n_C` population rows of a cell C (a point, or a cluster), :math:`m_C` are in the
sample. The paper's Lemma 3 bounds :math:`|\Pr[s = 1 \mid C] - m_C / n_C|`, its Propositions 3
(points) and 5 (clusters) what follows for the weights :math:`W_i = 1 / (m\, q_C)` and
:math:`\hat W_i = n_C / (m\, m_C)`, and Theorem 2, with Theorem 1, what follows for the risk.

The corrected forms condition on the population. Then :math:`m_C` is binomial with :math:`n_C`
trials, the union bound runs over the k cells of a fixed partition (not over those the sample
happens to reach, a random set), and the probability :math:`p_0` of the rarest point, which cannot
be observed, does not appear. Proposition 5 *defines* :math:`q_0` as the smallest probability of
selection, where its proof needs the smallest probability *mass* of a cell; and its factor
:math:`|C_M| k / m` is not needed, since the sizes of the clusters sum to m whatever they are.
Corrected, points and clusters are one statement about cells.

Since the counts are binomial and cells independent, exact intervals can take the place of
Hoeffding's, and a joint region the place of the union bound: :func:`cell_intervals` and
:func:`worst_case_distance`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unskew.numerics.joint_region import (
    clopper_pearson,
    relative_errors,
    relative_limits,
    sidak,
    worst_squares,
    worst_sum,
)
from unskew.numerics.typing import FloatArray
from unskew.theory.bound import (
    Bound,
    Form,
    check_at_least,
    check_counts,
    check_form,
    check_norm,
    check_option,
    check_probability,
)
from unskew.theory.stability import PAPER, risk_bound, stability_coefficient

PARTITION: tuple[str, ...] = (
    "the sample is the part of the population that was selected, each row independently",
    "the cells were fixed without looking at who was selected",
    "every row of a cell had the same probability of selection",
)


Parts = tuple[float, dict[str, float], tuple[str, ...]]
"""The value, terms and assumptions of a form of a bound; the rest is the same for all."""


def frequency_bound(
    *,
    population_counts: ArrayLike,
    sample_counts: ArrayLike | None = None,
    delta: float = 0.05,
    smallest_mass: float | None = None,
    form: Form = "corrected",
) -> Bound:
    r"""Lemma 3: the error of every estimated probability of selection at once.

    With probability at least 1 − δ, for all cells,

    .. math:: \Bigl|\Pr[s = 1 \mid x] - \frac{m_x}{n_x}\Bigr| \le
              \sqrt{\frac{\log(2k/\delta)}{2\, n_x}}

    and the value is the right-hand side for the smallest cell. As printed, it is
    :math:`\sqrt{\log(2m'/\delta) / (p_0 n)}` with m′ the number of distinct points in the sample.

    Parameters
    ----------
    population_counts : array-like of shape (k,)
        How many population rows each cell holds.
    sample_counts : array-like of shape (k,), optional
        How many of them are in the sample. Only the printed form uses them, to count m′; without
        them m′ is k.
    delta : float, default=0.05
    smallest_mass : float, optional
        The printed form's :math:`p_0`. It cannot be observed; by default the smallest observed
        share takes its place, so that :math:`p_0 n` is the smallest count, as the paper suggests.
    form : {"paper", "corrected"}, default="corrected"

    Returns
    -------
    Bound

    Examples
    --------
    >>> from unskew.theory import frequency_bound
    >>> round(frequency_bound(population_counts=[500, 1000], delta=0.05), 4)
    0.0662
    """
    form = check_form(form)
    population, sample = check_counts(population_counts, sample_counts)
    delta = check_probability(delta, name="delta")
    if form == "corrected":
        terms = {"cells": len(population), "smallest population count": population.min()}
        value, assumptions = float(_radius(population, delta).max()), PARTITION
    else:
        value, terms, assumptions = _printed_radius(population, sample, delta, smallest_mass)
    return Bound(
        value=value,
        terms={**terms, "delta": delta},
        assumptions=assumptions,
        reference=f"{PAPER}, Lemma 3",
        form=form,
        statement=f"The error of every estimated probability of selection, with probability "
        f"{1 - delta:.6g}",
        reason="two probabilities never differ by more than 1" if value >= 1 else "",
    )


def _radius(population: FloatArray, delta: float) -> FloatArray:
    """Hoeffding's radius for each cell, the union bound being over all of them."""
    # Pr[|q − m/n| > ε] ≤ 2 exp(−2 n ε²) = δ / k for each of k cells.
    return np.sqrt(math.log(2 * len(population) / delta) / (2 * population))


def _printed_radius(
    population: FloatArray, sample: FloatArray, delta: float, smallest_mass: float | None
) -> Parts:
    total = float(population.sum())
    mass = float(population.min()) / total
    source = "p0, which cannot be observed, is the smallest observed share of the population"
    if smallest_mass is not None:
        mass = check_probability(smallest_mass, name="smallest_mass")
        source = "p0 is as given"
    # As printed, m' is the number of points that the sample reaches, and p0 n takes the place of
    # twice the number of rows at the rarest point.
    reached = int((sample > 0).sum())
    value = math.sqrt(math.log(2 * reached / delta) / (mass * total))
    return value, {"distinct points m'": reached, "p0": mass, "n": total}, (*PARTITION, source)


def frequency_distance_bound(
    *,
    population_counts: ArrayLike,
    sample_counts: ArrayLike,
    norm: str,
    delta: float = 0.05,
    largest_weight: float | None = None,
    smallest_mass: float | None = None,
    form: Form = "corrected",
) -> Bound:
    r"""Proposition 3: the distance between estimated and perfect weights.

    As printed, with :math:`B = \max_i \max(1/p(x_i), 1/\hat p(x_i))`,

    .. math:: l_1(W, \hat W) \le B^2 \sqrt{\frac{\log(2m'/\delta)}{p_0 n}}, \qquad
              l_2(W, \hat W) \le B^2 \sqrt{\frac{\log(2m'/\delta)}{p_0 n m}}.

    B contains the unknown probabilities. The corrected form takes each cell by itself: on the event
    of Lemma 3, :math:`q_C \ge \hat q_C - \epsilon_C`, so that

    .. math:: l_1 \le \frac1m \sum_C m_C\, e_C, \qquad
              l_2^2 \le \frac1{m^2} \sum_C m_C\, e_C^2, \qquad
              e_C = \frac{1}{\hat q_C - \epsilon_C} - \frac{1}{\hat q_C}.

    Where B is given, :math:`1/q_C \le B` as well.

    Neither form's weights sum to one: :math:`\sum_i \hat W_i` is n/m where every cell is reached.
    Stability (Theorem 1) does not need them to.

    Parameters
    ----------
    population_counts, sample_counts : array-like of shape (k,)
        How many rows of each cell are in the population and in the sample.
    norm : {"l1", "l2"}
    delta : float, default=0.05
    largest_weight : float, optional
        B, if it is known that no probability of selection is below 1/B. By default the printed form
        takes the largest estimated 1/q; the corrected one does without.
    smallest_mass : float, optional
        As for :func:`frequency_bound`.
    form : {"paper", "corrected"}, default="corrected"

    Returns
    -------
    Bound

    Examples
    --------
    >>> from unskew.theory import frequency_distance_bound
    >>> bound = frequency_distance_bound(
    ...     population_counts=[500, 1000], sample_counts=[250, 500], norm="l1")
    >>> round(bound, 3)
    0.239
    """
    return weights_distance(
        population_counts=population_counts,
        sample_counts=sample_counts,
        norm=norm,
        delta=delta,
        largest_weight=largest_weight,
        form=form,
        printed=partial(_printed_radius, smallest_mass=smallest_mass),
        reference=f"{PAPER}, Proposition 3",
    )


def weights_distance(
    *,
    population_counts: ArrayLike,
    sample_counts: ArrayLike,
    norm: str,
    delta: float,
    largest_weight: float | None,
    form: Form,
    printed: Callable[[FloatArray, FloatArray, float], Parts],
    reference: str,
) -> Bound:
    """Return a bound on the distance of weights that are ratios of counts, in either form.

    ``printed`` takes the counts of population and sample and delta, and returns what the paper
    multiplies by B² in the l1 norm.
    """
    form, norm = check_form(form), check_norm(norm)
    population, sample = check_counts(population_counts, sample_counts)
    delta = check_probability(delta, name="delta")
    if largest_weight is not None:
        largest_weight = check_at_least(largest_weight, 1, name="largest_weight")
    if form == "corrected":
        parts = _corrected_distance(population, sample, norm, delta, largest_weight)
    else:
        # Proposition 3 and 5 as printed: |1/p − 1/p̂| ≤ B² |p − p̂|, the same B for every row; in
        # l2 the m errors of 1/m each make one over the root of m.
        value, terms, assumptions = printed(population, sample, delta)
        reached, rows = sample > 0, float(sample.sum())
        largest = largest_weight or float((population[reached] / sample[reached]).max())
        given = "B is as given" if largest_weight else "B is the largest estimated weight"
        value *= largest**2 / (1.0 if norm == "l1" else math.sqrt(rows))
        parts = value, {**terms, "B": largest, "m": rows, "delta": delta}, (*assumptions, given)
    return distance_of(parts, norm, population, sample, reference=reference, form=form)


def _corrected_distance(
    population: FloatArray,
    sample: FloatArray,
    norm: str,
    delta: float,
    largest_weight: float | None,
) -> Parts:
    """Return the bound in which each cell has its own radius, from observed counts alone."""
    # On the event of Lemma 3, q lies within ε of q̂; where B is known, also above 1/B.
    radius = _radius(population, delta)
    reached = sample > 0
    estimate = sample[reached] / population[reached]
    lower = np.maximum(estimate - radius[reached], 1 / (largest_weight or np.inf))
    upper = np.minimum(estimate + radius[reached], 1.0)
    with np.errstate(divide="ignore"):
        too_small = np.where(lower > 0, 1 / np.maximum(lower, 0), np.inf) - 1 / estimate
    # The weight may be too large as well; by less, unless B leaves little room on the other side.
    errors = np.maximum(too_small, 1 / estimate - 1 / upper)
    rows = float(sample.sum())
    counts = sample[reached]
    value = float((counts @ errors) / rows if norm == "l1" else np.sqrt(counts @ errors**2) / rows)
    worst = int(np.flatnonzero(reached)[np.argmax(counts * errors)])
    terms = {"cells": len(population), "m": rows, "delta": delta}
    terms |= largest_part(worst, population, sample)
    if largest_weight is None:
        return value, terms, PARTITION
    known = "no probability of selection is below 1/B"
    return value, {**terms, "B": largest_weight}, (*PARTITION, known)


def largest_part(cell: int, population: FloatArray, sample: FloatArray) -> dict[str, float]:
    """Return the terms that name the cell with the largest part in a bound."""
    return {
        "largest part: cell": cell,
        "its sample count": sample[cell],
        "its population count": population[cell],
    }


def distance_of(
    parts: Parts,
    norm: str,
    population: FloatArray,
    sample: FloatArray,
    *,
    reference: str,
    form: Form = "corrected",
) -> Bound:
    """Return a bound on the distance of the weights; it is vacuous if it exceeds their size."""
    # The estimated weights are n_C / (m m_C), m_C times in the sample: an error of their size
    # leaves nothing of them.
    reached = sample > 0
    counts = sample[reached]
    weights = population[reached] / counts / sample.sum()
    size = float(counts @ weights if norm == "l1" else np.sqrt(counts @ weights**2))
    value, terms, assumptions = parts
    reason = ""
    if math.isinf(value):
        reason = "a cell's probability of selection could be zero, given its counts"
    elif value >= size:
        reason = (
            f"the error may be as large as the weights themselves, whose {norm} norm is {size:.4g}"
        )
    return Bound(
        value=value,
        terms=terms,
        assumptions=assumptions,
        reference=reference,
        form=form,
        statement=f"The {norm} distance of the estimated from the perfect weights, with "
        f"probability {1 - terms['delta']:.6g}",
        reason=reason,
    )


def cluster_distance_bound(
    *,
    population_counts: ArrayLike,
    sample_counts: ArrayLike,
    norm: str,
    delta: float = 0.05,
    largest_weight: float | None = None,
    form: Form = "corrected",
) -> Bound:
    r"""Proposition 5: the distance between estimated and perfect weights, for clusters.

    As printed, with :math:`|C_M|` the largest cluster of the sample,

    .. math:: l_1 \le B^2 \sqrt{\frac{|C_M| k \log(2k/\delta)}{q_0 n m}}, \qquad
              l_2 \le B^2 \sqrt{\frac{|C_M| k \log(2k/\delta)}{q_0 n m^2}},

    where :math:`q_0 = \min_i q(C_i)`, the smallest probability of selection. That is not the mass
    of a cell: a population of 1,000 rows in cells of 990 and 10, each row selected with probability
    1/2, has :math:`q_0 n = 500`, while the small cell's probability is estimated from 10 rows. The
    corrected form is that of :func:`frequency_distance_bound`.

    Parameters
    ----------
    population_counts, sample_counts, norm, delta, form
        As for :func:`frequency_distance_bound`, a cell being a cluster.
    largest_weight : float, optional
        B; by default the printed form takes the largest estimated weight.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from unskew.theory import cluster_distance_bound
    >>> bound = cluster_distance_bound(
    ...     population_counts=[990, 10], sample_counts=[495, 5], norm="l1", form="paper")
    >>> round(bound, 3)
    0.527
    """
    return weights_distance(
        population_counts=population_counts,
        sample_counts=sample_counts,
        norm=norm,
        delta=delta,
        largest_weight=largest_weight,
        form=form,
        printed=_printed_root,
        reference=f"{PAPER}, Proposition 5",
    )


def _printed_root(population: FloatArray, sample: FloatArray, delta: float) -> Parts:
    """Return the root in the printed l1 bound, by which B² is multiplied."""
    reached = sample > 0
    smallest = float((sample[reached] / population[reached]).min())
    cells, rows, total = int(reached.sum()), float(sample.sum()), float(population.sum())
    biggest = float(sample.max())
    # What is under the root of Proposition 5, with q0 the smallest probability of selection, where
    # the proof needs the smallest mass of a cell.
    square = biggest * cells * math.log(2 * cells / delta) / (smallest * total * rows)
    source = "q0, as printed, is the smallest (estimated) probability of selection"
    terms = {"k": cells, "|C_M|": biggest, "q0": smallest, "n": total}
    return math.sqrt(square), terms, (*PARTITION, source)


def cluster_bound(
    *,
    population_counts: ArrayLike,
    sample_counts: ArrayLike,
    kappa: float,
    lam: float,
    lipschitz: float,
    norm: str = "l1",
    lambda_max: float | None = None,
    delta: float = 0.05,
    largest_weight: float | None = None,
    smallest_mass: float | None = None,
    cells: Literal["points", "clusters"] = "clusters",
    form: Form = "corrected",
) -> Bound:
    r"""Theorem 2: the change of risk that estimating the weights from cells can cause.

    With probability at least 1 − δ, the risk of the model trained with the estimated weights
    differs from that of the model trained with the perfect ones by at most β times the distance of
    the weights: Theorem 1's β, and the distance of Proposition 3 (``cells="points"``) or
    Proposition 5 (``cells="clusters"``). λ must be in the units of the paper's weights :math:`n_C /
    (m\, m_C)`, that is 1/(2Cm) or α/m for a learner that is given :math:`n_C / m_C`.

    Parameters
    ----------
    population_counts, sample_counts, delta, largest_weight, smallest_mass, form
        As for :func:`frequency_distance_bound`.
    kappa, lam, lipschitz, norm, lambda_max
        As for :func:`stability_coefficient`.
    cells : {"clusters", "points"}, default="clusters"
        Which of the two printed statements is meant; the corrected forms coincide.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from unskew.theory import cluster_bound
    >>> bound = cluster_bound(population_counts=[500, 1000], sample_counts=[250, 500],
    ...                       kappa=1.0, lam=0.5, lipschitz=1.0)
    >>> round(bound, 3)
    0.239
    """
    cells = check_option(cells, ("points", "clusters"), name="cells")  # type: ignore[assignment]
    # β of Theorem 1 times the distance of Proposition 3 or 5, by Proposition 2.
    coefficient = stability_coefficient(
        kappa=kappa, lam=lam, lipschitz=lipschitz, norm=norm, lambda_max=lambda_max, form=form
    )
    bound_distance: Callable[..., Bound] = cluster_distance_bound
    if cells == "points":
        bound_distance = partial(frequency_distance_bound, smallest_mass=smallest_mass)
    moved = bound_distance(
        population_counts=population_counts,
        sample_counts=sample_counts,
        norm=norm,
        delta=delta,
        largest_weight=largest_weight,
        form=form,
    )
    theorem = "Theorem 2" if cells == "points" else "Theorem 2 with Proposition 5"
    return replace(
        risk_bound(coefficient=coefficient, distance=moved),
        terms={"stability coefficient": coefficient, "distance of the weights": moved},
        reference=f"{PAPER}, {theorem}",
        statement="The difference in risk that estimating the weights can make, with probability "
        f"{1 - moved.terms['delta']:.6g}",
    )


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
    norm = check_norm(norm)
    region = check_option(region, ("joint", "box"), name="region")  # type: ignore[assignment]
    population, sample = check_counts(population_counts, sample_counts)
    delta = check_probability(delta, name="delta")
    # The factors of |t_C| in l1, and of t_C² in l2; a cell without sample rows has no weight.
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
    reference = f"Clopper and Pearson (1934) for each cell{with_region}"
    return distance_of((value, terms, PARTITION), norm, population, sample, reference=reference)
