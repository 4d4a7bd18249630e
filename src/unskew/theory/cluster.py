r"""Bounds on the cost of estimating the weights from cells: Theorem 2 and Proposition 5.

Theorem 2 is for points of a discrete set, each a cell of its own; Proposition 5 for clusters whose
rows share a probability of selection. Corrected, they are the same statement about cells, so the
corrected forms coincide; the printed ones do not.

What is corrected in Proposition 5: its :math:`q_0` is *defined* as the smallest probability of
selection, but what its proof needs, in the place of Lemma 3's :math:`p_0`, is the smallest
probability *mass* of a cell; and its factor :math:`|C_M| k / m` is not needed, since the sizes of
the clusters sum to m whatever they are. Both vanish with the conditional form of Lemma 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from numpy.typing import ArrayLike

from unskew.numerics.typing import FloatArray
from unskew.theory.bound import Bound, Form
from unskew.theory.checks import check_option
from unskew.theory.frequency import (
    PARTITION,
    Parts,
    frequency_distance_bound,
    weights_distance,
)
from unskew.theory.stability import PAPER, risk_bound, stability_coefficient


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
    population_counts, sample_counts : array-like of shape (k,)
        How many rows of each cluster are in the population and in the sample.
    norm : {"l1", "l2"}
    delta : float, default=0.05
    largest_weight : float, optional
        B; by default the printed form takes the largest estimated weight.
    form : {"paper", "corrected"}, default="corrected"

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
    square = biggest * cells * math.log(2 * cells / delta) / (smallest * total * rows)
    source = "q0, as printed, is the smallest (estimated) probability of selection"
    terms = {"k": cells, "|C_M|": biggest, "q0": smallest, "n": total}
    return Parts(math.sqrt(square), terms, (*PARTITION, source))


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
    population_counts, sample_counts : array-like of shape (k,)
        How many rows of each cell are in the population and in the sample.
    kappa, lam, lipschitz, norm, lambda_max
        As for :func:`stability_coefficient`.
    delta : float, default=0.05
    largest_weight, smallest_mass : float, optional
        As for :func:`frequency_distance_bound`.
    cells : {"clusters", "points"}, default="clusters"
        Which of the two printed statements is meant; the corrected forms coincide.
    form : {"paper", "corrected"}, default="corrected"

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
