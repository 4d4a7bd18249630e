"""Trimming: large weights are cut, and what they lose is spread over the others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unskew.errors import ParameterError
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_weights, effective_sample_size


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
