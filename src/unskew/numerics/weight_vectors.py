r"""A vector of weights: whether it is one, how much it is worth, and how to trim it.

Weights are finite, not negative and not all zero. As many equally weighted rows as

.. math:: n_{\mathrm{eff}} = \frac{(\sum_i w_i)^2}{\sum_i w_i^2}                             \tag{1}

would give a mean with the same variance, if all rows have the same (Kish 1965, section 11.2).

Trimming cuts large weights and spreads what they lose over the others, in proportion: the result is
:math:`\min(c\,w_i, L)` with the factor c that keeps the sum. It lowers the variance by (1), and
makes the weighted sample represent the population less well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import BoolArray, FloatArray, IntArray


def check_weights(weights: ArrayLike, *, name: str, n_rows: int | None = None) -> FloatArray:
    """Return weights as a float vector, or raise what is wrong with them.

    Parameters
    ----------
    weights : array-like of shape (n_rows,)
        Must be finite and non-negative, with at least one positive entry.
    name : str
        What the caller calls them; the error message uses it.
    n_rows : int, optional
        How many there must be.

    Returns
    -------
    ndarray of float64
        A copy.

    Examples
    --------
    >>> check_weights([1, 2], name="sample_weight")
    array([1., 2.])
    """
    vector = float_vector(weights, name=name, per="row")
    if n_rows is not None and len(vector) != n_rows:
        raise InputError(
            f"{name} has {len(vector)} entries for {n_rows} rows; give one number per row."
        )
    check_weight_values(vector, name=name)
    if len(vector) and not vector.any():
        raise InputError(f"{name} is zero on every row, so no row would count.")
    return vector


def float_vector(values: ArrayLike, *, name: str, per: str) -> FloatArray:
    """Return a copy of values, one for each row or cell, or raise what is wrong with them."""
    try:
        vector = np.array(values, dtype=np.float64)  # a copy: the caller may go on to change it
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, one per {per}: {error}.") from error
    if vector.ndim != 1:
        raise InputError(f"{name} must have one number per {per}; got shape {vector.shape}.")
    return vector


def check_design(weights: ArrayLike | None, *, name: str, n_rows: int) -> FloatArray:
    """Return weights as :func:`check_weights` does, whose sum is a number too; None means ones."""
    if weights is None:
        return np.ones(n_rows)
    vector = check_weights(weights, name=name, n_rows=n_rows)
    with np.errstate(over="ignore"):
        if not np.isfinite(vector.sum()):
            raise InputError(f"{name} adds up to infinity. Divide it by its largest entry.")
    return vector


def check_weight_values(vector: FloatArray, *, name: str, start: int = 0) -> None:
    """Refuse weights that are missing, infinite or negative; a batch may be all zero.

    ``start`` is the position of the first, for the message.
    """
    for wrong, demand in ((~np.isfinite(vector), "be finite"), (vector < 0, "not be negative")):
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InputError(f"{name} must {demand}; got {vector[row]} at position {start + row}.")


def effective_sizes(weights: FloatArray, codes: IntArray, n_groups: int) -> FloatArray:
    """Return Kish's effective sample size of each group of rows; zero without weight.

    Examples
    --------
    >>> effective_sizes(np.array([1.0, 1.0, 5.0]), np.array([0, 0, 1]), 3)
    array([2., 1., 0.])
    """
    squares = np.bincount(codes, weights**2, n_groups)
    sums = np.bincount(codes, weights, n_groups)
    return np.asarray(sums**2 / np.where(squares > 0, squares, 1.0))


def effective_sample_size(weights: ArrayLike) -> float:
    r"""Return Kish's effective sample size, :math:`(\sum w)^2 / \sum w^2`.

    As many equally weighted rows would give a mean of the same variance, where weights and outcomes
    are unrelated. It lies between 1 and the number of positive weights.

    Parameters
    ----------
    weights : array-like of shape (n_rows,)
        Finite, non-negative, not all zero.

    Returns
    -------
    float

    References
    ----------
    Kish, *Survey Sampling*, Wiley 1965, section 11.7.

    Examples
    --------
    >>> effective_sample_size([2.0, 2.0, 2.0])
    3.0
    >>> effective_sample_size([1.0, 0.0])
    1.0
    """
    vector = check_weights(weights, name="weights")
    if not len(vector):
        raise InputError("weights is empty; give at least one row.")
    # Equation (1) does not depend on the scale.
    relative = vector / vector.max()  # so that neither sum can overflow or vanish
    return float(relative.sum() ** 2 / (relative @ relative))


def scale_to_total(weights: FloatArray, total: float) -> float:
    """Return the factor that makes ``weights`` sum to ``total``.

    Weights that sum to it already, up to rounding, get the factor 1 and so keep every bit: the
    cell weights :math:`n_C / m_C` sum to n by construction. Equal weights become the mean itself.

    Examples
    --------
    >>> scale_to_total(np.array([1.0, 3.0]), 2.0)
    0.5
    """
    if (weights == weights[0]).all():
        return total / len(weights) / float(weights[0])
    largest = float(np.abs(weights).max())
    factor = total / (exact_sum(weights / largest) * largest)
    return 1.0 if abs(factor - 1.0) < 1e-12 else factor


def exact_sum(values: FloatArray) -> float:
    """Return the sum of numbers of at most one, the same in any order of them.

    Each is taken apart into three whole numbers of 32 bits, whose sums are exact: all 53 bits of a
    number down to 2⁻⁴³, and 2⁻⁹⁶ of a smaller one. :func:`math.fsum` is ten times as slow.

    Examples
    --------
    >>> exact_sum(np.array([1.0, 2.0**-60, -1.0])) == 2.0**-60
    True
    """
    total = 0
    for _ in range(3):
        values = values * 2.0**32
        whole = np.floor(values)
        total = (total << 32) + int(whole.astype(np.int64).sum())
        values = values - whole
    return total / 2**96


def balanced(weight: FloatArray, is_first: BoolArray) -> FloatArray:
    """Return weights scaled such that both sides have the same total and the mean is one.

    Examples
    --------
    >>> balanced(np.ones(4), np.array([True, False, False, False])).round(3)
    array([2.   , 0.667, 0.667, 0.667])
    """
    scaled = weight.astype(np.float64)
    for side in (is_first, ~is_first):
        if side.any():
            scaled[side] *= len(weight) / (2 * scaled[side].sum())
    return scaled


class Trimming(NamedTuple):
    """What trimming has changed."""

    n_cut: int
    """Rows whose weight was cut."""
    moved: float
    """The share of the total weight that went from cut rows to others."""
    effective_before: float
    effective_after: float
    shift: float
    """The largest change of a weighted mean of X, in its standard deviations; NaN without X."""

    def __str__(self) -> str:
        text = (
            f"{self.n_cut} weights were cut, which moves {self.moved:.2%} of the total; the "
            f"effective sample size goes from {self.effective_before:.1f} to "
            f"{self.effective_after:.1f}"
        )
        if np.isnan(self.shift):
            return f"{text}."
        return f"{text}, and a mean moves by up to {self.shift:.3g} standard deviations."


def trim_weights(
    weights: ArrayLike,
    *,
    max_weight: float | None = None,
    design_effect: float | None = None,
    X: Any = None,
    report: bool = False,
) -> Any:
    r"""Cut the largest weights, and scale the others so that the total stays the same.

    Any weights can be trimmed. Trimmed weights no longer balance what they balanced before;
    :class:`unskew.CalibrationWeights` solves for weights under the same limits that do so as well
    as any can.

    Parameters
    ----------
    weights : array-like of shape (n_rows,)
    max_weight : float, optional
        The largest weight as a multiple of the mean, at least 1.
    design_effect : float, optional
        The largest design effect :math:`m \sum w^2 / (\sum w)^2`: weights are cut at the largest
        multiple of the mean that keeps to it.
    X : array-like of numbers of shape (n_rows, n_columns), optional
        What the weights balance; ``report`` then says how far its means move.
    report : bool, default=False
        Whether to return also what was changed.

    Returns
    -------
    ndarray of shape (n_rows,), or (ndarray, Trimming) with ``report``

    Examples
    --------
    >>> from unskew import trim_weights
    >>> trim_weights([1.0, 1.0, 6.0, 0.0], max_weight=2.0)
    array([2., 2., 4., 0.])
    >>> print(trim_weights([1.0, 1.0, 6.0, 0.0], max_weight=2.0, report=True)[1])
    1 weights were cut, which moves 25.00% of the total; the effective sample size goes from 1.7 to
    2.7.
    """
    given = check_weights(weights, name="weights")
    for name, limit in (("max_weight", max_weight), ("design_effect", design_effect)):
        if limit is not None and not limit >= 1:
            raise ParameterError(f"{name} must be at least 1; got {limit!r}.")
    n_positive = int((given > 0).sum())
    smallest = len(given) / n_positive
    # Zeros stay zero: the others carry the whole, so that a limit below this cannot be met.
    trimmed = given
    if max_weight is not None:
        if max_weight < smallest:
            raise _unreachable("max_weight", max_weight, smallest, len(given) - n_positive)
        trimmed = _cut(given, max_weight)
    if design_effect is not None and _effect(trimmed) > design_effect:
        if design_effect < smallest:
            raise _unreachable("design_effect", design_effect, smallest, len(given) - n_positive)
        low, high = smallest, float(trimmed.max() / trimmed.mean())
        for _ in range(100):  # the effect rises with the limit
            middle = (low + high) / 2
            fits = _effect(_cut(given, middle)) <= design_effect
            low, high = (middle, high) if fits else (low, middle)
        trimmed = _cut(given, low)
    if not report:
        return trimmed
    return trimmed, _describe(given, trimmed, X)


def ratio_cap(ratios: FloatArray, design: FloatArray, max_weight: float | None) -> float:
    """Return the largest c with min(r, c) at most ``max_weight`` times its mean by the design.

    Infinite without a limit. Where no ratio exceeds it, it is still the limit of new rows.

    Examples
    --------
    >>> round(ratio_cap(np.array([1.0, 1.0, 6.0]), np.ones(3), 2.0), 9)
    4.0
    >>> ratio_cap(np.array([1.0, 3.0]), np.ones(2), 10.0)
    20.0
    """
    if max_weight is None:
        return np.inf
    order = np.argsort(ratios, kind="stable")
    rising, share = ratios[order], design[order] / design.sum()
    largest = max_weight * float(share @ rising)
    if rising[-1] <= largest * (1 + 1e-12):
        return max(largest, float(rising[-1]))
    # With the rows from number k on cut, c / max_weight = sum of the others + c · their share.
    below = np.append(0.0, np.cumsum(share * rising))[:-1]
    cut = 1.0 - np.append(0.0, np.cumsum(share))[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        caps = below / (1.0 / max_weight - cut)
        fits = np.flatnonzero((caps > 0) & (caps <= rising * (1 + 1e-12)))
    if not len(fits):  # a limit of one, or most ratios are zero: all count as the smallest
        return float(rising[rising > 0][0])
    return float(caps[fits[0]])


def _cut(weights: FloatArray, limit: float) -> FloatArray:
    """Return min(t w, limit × mean), with t such that the total stays the same."""
    # With the k largest at the cap, the others are scaled by t = (Σ w − k cap) / Σ others.
    cap = limit * weights.mean()
    order = np.argsort(-weights, kind="stable")
    falling = weights[order]
    rest = np.cumsum(falling[::-1])[::-1]  # from each row on
    n_cut = np.arange(len(weights))
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = (weights.sum() - n_cut * cap) / rest
    # The first number of cut rows with which no other row exceeds the cap.
    with np.errstate(invalid="ignore"):
        fits = np.flatnonzero((factors * falling <= cap * (1 + 1e-12)) | (rest <= 0))
    if not len(fits):  # but for rounding, every positive weight is at the cap
        return np.where(weights > 0, weights.sum() / np.count_nonzero(weights), 0.0)
    count = int(fits[0])
    factor = factors[count] if rest[count] > 0 else 1.0
    trimmed = np.minimum(weights * factor, cap)
    trimmed[order[:count]] = cap
    trimmed[weights == 0] = 0.0
    return trimmed


def _effect(weights: FloatArray) -> float:
    return len(weights) / effective_sample_size(weights)


def _unreachable(name: str, limit: float, smallest: float, n_zero: int) -> ParameterError:
    return ParameterError(
        f"{name}={limit} cannot be reached: with {n_zero} weights of zero it is at least "
        f"{smallest:.4g}."
    )


def _describe(given: FloatArray, trimmed: FloatArray, X: Any) -> Trimming:
    cut = trimmed < given
    shift = float("nan")
    if X is not None:
        columns = np.asarray(X, dtype=float).reshape(len(given), -1)
        spread = columns.std(axis=0)
        change = (trimmed - given) @ columns / given.sum()
        shift = float(np.max(np.abs(change[spread > 0] / spread[spread > 0]), initial=0.0))
    moved = float((given - trimmed)[cut].sum() / given.sum())
    before, after = effective_sample_size(given), effective_sample_size(trimmed)
    return Trimming(int(cut.sum()), moved, before, after, shift)
