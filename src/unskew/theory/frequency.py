r"""How far observed frequencies are from the probabilities of selection they estimate.

Of the :math:`n_x` population rows at a point (or in a cell) x, :math:`m_x` are in the sample. The
paper's Lemma 3 bounds :math:`|\Pr[s = 1 \mid x] - m_x / n_x|`, its Proposition 3 what follows for
the weights :math:`W(x_i) = 1 / (m\, p(x_i))` and :math:`\hat W(x_i) = n_x / (m\, m_x)`.

The corrected forms condition on the population. Then :math:`m_x` is binomial with :math:`n_x`
trials, the union bound runs over the k cells of a fixed partition (not over those the sample
happens to reach, a random set), and the probability :math:`p_0` of the rarest point, which cannot
be observed, does not appear.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unskew.numerics.typing import FloatArray
from unskew.theory.bound import Bound, Form
from unskew.theory.checks import check_at_least, check_counts, check_option, check_probability
from unskew.theory.stability import FORMS, PAPER

PARTITION = (
    "the sample is the part of the population that was selected, each row independently",
    "the cells were fixed without looking at who was selected",
    "every row of a cell had the same probability of selection",
)


class Parts(NamedTuple):
    """What a form of a bound computes; the rest of the bound is the same for all."""

    value: float
    terms: dict[str, float]
    assumptions: tuple[str, ...]


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
    form = check_option(form, FORMS, name="form")  # type: ignore[assignment]
    population, sample = check_counts(population_counts, sample_counts)
    delta = check_probability(delta, name="delta")
    if form == "corrected":
        terms = {"cells": len(population), "smallest population count": population.min()}
        parts = Parts(float(_radius(population, delta).max()), terms, PARTITION)
    else:
        parts = _printed_radius(population, sample, delta, smallest_mass)
    return Bound(
        value=parts.value,
        terms={**parts.terms, "delta": delta},
        assumptions=parts.assumptions,
        reference=f"{PAPER}, Lemma 3",
        form=form,
        statement=f"The error of every estimated probability of selection, with probability "
        f"{1 - delta:.6g}",
        reason="two probabilities never differ by more than 1" if parts.value >= 1 else "",
    )


def _radius(population: FloatArray, delta: float) -> FloatArray:
    """Hoeffding's radius for each cell, the union bound being over all of them."""
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
    reached = int((sample > 0).sum())
    value = math.sqrt(math.log(2 * reached / delta) / (mass * total))
    return Parts(
        value, {"distinct points m'": reached, "p0": mass, "n": total}, (*PARTITION, source)
    )


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
    form = check_option(form, FORMS, name="form")  # type: ignore[assignment]
    norm = check_option(norm, ("l1", "l2"), name="norm")
    population, sample = check_counts(population_counts, sample_counts)
    delta = check_probability(delta, name="delta")
    if largest_weight is not None:
        largest_weight = check_at_least(largest_weight, 1, name="largest_weight")
    if form == "corrected":
        parts = _corrected_distance(population, sample, norm, delta, largest_weight)
    else:
        value, terms, assumptions = printed(population, sample, delta)
        reached, rows = sample > 0, float(sample.sum())
        largest = largest_weight or float((population[reached] / sample[reached]).max())
        given = "B is as given" if largest_weight else "B is the largest estimated weight"
        parts = Parts(
            largest**2 * value / (1.0 if norm == "l1" else math.sqrt(rows)),
            {**terms, "B": largest, "m": rows, "delta": delta},
            (*assumptions, given),
        )
    return distance_of(parts, norm, population, sample, reference=reference, form=form)


def _corrected_distance(
    population: FloatArray,
    sample: FloatArray,
    norm: str,
    delta: float,
    largest_weight: float | None,
) -> Parts:
    """Return the bound in which each cell has its own radius, from observed counts alone."""
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
        return Parts(value, terms, PARTITION)
    known = "no probability of selection is below 1/B"
    return Parts(value, {**terms, "B": largest_weight}, (*PARTITION, known))


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
    reached = sample > 0
    counts = sample[reached]
    weights = population[reached] / counts / sample.sum()
    size = float(counts @ weights if norm == "l1" else np.sqrt(counts @ weights**2))
    reason = ""
    if math.isinf(parts.value):
        reason = "a cell's probability of selection could be zero, given its counts"
    elif parts.value >= size:
        reason = (
            f"the error may be as large as the weights themselves, whose {norm} norm is {size:.4g}"
        )
    return Bound(
        value=parts.value,
        terms=parts.terms,
        assumptions=parts.assumptions,
        reference=reference,
        form=form,
        statement=f"The {norm} distance of the estimated from the perfect weights, with "
        f"probability {1 - parts.terms['delta']:.6g}",
        reason=reason,
    )
