"""The cost of unequal weights that are correct: a bound by the effective sample size."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from unskew.errors import ParameterError
from unskew.numerics.weight_vectors import check_weights, effective_sample_size
from unskew.theory.bound import Bound, check_at_least, check_probability


def importance_weighting_bound(
    weights: ArrayLike,
    *,
    delta: float = 0.05,
    largest_weight: float | None = None,
    second_moment: float | None = None,
    n_hypotheses: int = 1,
) -> Bound:
    r"""Bound the risk above its weighted estimate, for correct weights.

    For a loss in [0, 1], a hypothesis fixed before the sample was seen and the perfect weights w,
    whose mean under the selection is one, with probability at least 1 − δ

    .. math:: R(h) \le \hat R_w(h) + \frac{2 M \log(1/\delta)}{3 m} +
              \sqrt{\frac{2\, d_2 \log(1/\delta)}{m}},

    where :math:`M = \sup w` and :math:`d_2 = E[w^2]`. The last term is that of a random sample
    of :math:`m / d_2` rows: the effective sample size. With :math:`N` hypotheses, log(1/δ)
    becomes log(N/δ).

    Parameters
    ----------
    weights : array-like of shape (m,)
        In any scale; they are divided by their mean.
    delta : float, default=0.05
    largest_weight, second_moment : float, optional
        M and d₂ where they are known. By default they are estimated from the sample, and the
        bound is only a diagnostic: the largest weight may not have been seen.
    n_hypotheses : int, default=1
        Among how many hypotheses one was chosen.

    Returns
    -------
    Bound

    References
    ----------
    Cortes, Mansour and Mohri, "Learning bounds for importance weighting", NIPS 2010.

    Examples
    --------
    >>> from unskew.theory import importance_weighting_bound
    >>> round(importance_weighting_bound([1.0] * 500 + [3.0] * 500), 3)
    0.09
    """
    vector = check_weights(weights, name="weights")
    delta = check_probability(delta, name="delta")
    chosen = check_at_least(n_hypotheses, 1, name="n_hypotheses")
    m = len(vector)
    largest, moment = float(vector.max() / vector.mean()), m / effective_sample_size(vector)
    if largest_weight is not None:
        largest = check_at_least(largest_weight, 1, name="largest_weight")
    if second_moment is not None:
        moment = check_at_least(second_moment, 1, name="second_moment")
    if moment > largest * (1 + 1e-9):
        raise ParameterError(
            f"second_moment={moment:g} exceeds largest_weight={largest:g}, but weights of mean one "
            "that are at most M have a second moment of at most M."
        )
    # Bernstein's inequality for the weighted losses, of variance at most d₂ and size at most M.
    tail = math.log(chosen / delta)
    high, spread = 2 * largest * tail / (3 * m), math.sqrt(2 * moment * tail / m)
    known = largest_weight is not None and second_moment is not None
    value = high + spread
    return Bound(
        value=value,
        terms={
            "effective sample size": m / moment,
            "m": m,
            "from the largest weight": high,
            "from the second moment": spread,
            "delta": delta,
        },
        assumptions=(
            "the weights are correct, and the loss lies in [0, 1]",
            "the hypothesis was fixed before the sample was seen"
            if chosen == 1
            else f"the hypothesis is one of {chosen:.0f} fixed before the sample was seen",
            "the largest weight and the second moment are as given"
            if known
            else "the largest weight and the second moment are those of the sample",
        ),
        reference="Cortes, Mansour and Mohri (2010), Learning bounds for importance weighting",
        statement=f"The risk above its weighted estimate, with probability {1 - delta:.6g}",
        reason="a loss in [0, 1] never exceeds 1" if value >= 1 else "",
    )
