"""Checks and properties of a vector of weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unskew.errors import InputError
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
