"""The extreme eigenvalues of a kernel matrix, between two limits that are certain."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh

from unskew.errors import InputError, ParameterError
from unskew.numerics.kernel_matrix import KernelMatrix
from unskew.numerics.kernels import GaussianKernel
from unskew.numerics.typing import FloatArray

EPSILON = float(np.finfo(np.float64).eps)
SMALL_BLOCK = 400


class Bracket(NamedTuple):
    """Two numbers between which an eigenvalue lies.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.theory import largest_eigenvalue
    >>> bracket = largest_eigenvalue(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> bool(bracket.lower <= 3.0 + 1e-12 and 3.0 - 1e-12 <= bracket.upper)
    True
    """

    lower: float
    upper: float
    floor: float = 0.0
    """Below this, rounding decides: an eigenvalue could as well be zero."""


def gaussian_product(rows: FloatArray, gamma: float) -> Callable[[FloatArray], FloatArray]:
    r"""Return the product with the matrix of :math:`\exp(-\gamma \lVert x - y \rVert^2)`.

    The matrix itself is never formed.

    Examples
    --------
    >>> gaussian_product(np.zeros((3, 1)), 1.0)(np.ones(3))
    array([3., 3., 3.])
    """
    points = np.asarray(rows, dtype=np.float64)
    kernel = GaussianKernel(float(1 / np.sqrt(2 * gamma)))
    return KernelMatrix(kernel, points - points.mean(axis=0), memory=0.0).exact_product


def largest_eigenvalue(
    matrix: FloatArray | Callable[[FloatArray], FloatArray],
    *,
    size: int | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 100,
) -> Bracket:
    r"""Bracket the largest eigenvalue of a symmetric matrix without negative entries.

    For any positive v, :math:`\min_i (Kv)_i / v_i \le \lambda_{\max} \le \max_i (Kv)_i / v_i`
    (Collatz and Wielandt); power steps draw the two together. Stopping early widens the bracket and
    nothing else.

    Parameters
    ----------
    matrix : ndarray of shape (m, m), or callable
        The matrix, or the product with it, so that it need not be formed: see
        :func:`gaussian_product`.
    size : int, optional
        m, where the product is given.
    tolerance : float, default=1e-6
        The relative width at which to stop.
    max_steps : int, default=100

    Returns
    -------
    Bracket

    Examples
    --------
    >>> bracket = largest_eigenvalue(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> bracket.lower <= 3 <= bracket.upper
    True
    """
    if callable(matrix):
        if size is None:
            raise ParameterError("size is needed where the product with the matrix is given.")
        product, m = matrix, size
    else:
        array = _square(matrix)
        if (array < 0).any():
            raise InputError(
                "The matrix has negative entries, for which this bracket does not hold. Its trace "
                "is an upper bound if it is positive semi-definite."
            )
        product, m = array.__matmul__, len(array)
    v = np.ones(m)
    lower, upper = 0.0, np.inf
    for _ in range(max_steps):
        image = product(v)
        if not (image > 0).all():
            if (image < 0).any():
                raise InputError("The matrix has negative entries, for which no bracket holds.")
            break  # a row of zeros: keep the last bracket
        ratios = image / v
        # All terms are positive, so a product's rounding error is relative.
        slack = (m + 16) * EPSILON
        lower = max(lower, float(ratios.min()) * (1 - slack))
        upper = min(upper, float(ratios.max()) * (1 + slack))
        if upper - lower <= tolerance * upper:
            break
        # Positive in any case, for the ratios to mean something.
        v = np.maximum(image / image.max(), 1e-280)
    return Bracket(lower, upper)


def smallest_eigenvalue(matrix: FloatArray, *, largest: float | None = None) -> Bracket:
    r"""Bracket the smallest eigenvalue of a positive semi-definite matrix.

    A principal submatrix has a smallest eigenvalue no smaller than the whole (interlacing), so a
    small block may already prove that nothing is left above the rounding floor
    :math:`m\,\epsilon\,\lambda_{\max}`. If not, all eigenvalues are computed; their rounding errors
    are of the size of that floor.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
    largest : float, optional
        An upper bound on the largest eigenvalue; by default the trace.

    Returns
    -------
    Bracket
        With ``floor``. The lower limit is zero where the floor is not exceeded.

    Examples
    --------
    >>> round(smallest_eigenvalue(np.array([[2.0, 1.0], [1.0, 2.0]])).upper, 6)
    1.0
    >>> smallest_eigenvalue(np.ones((3, 3))).lower  # equal rows
    0.0
    """
    # A block of every few rows first: if its own smallest eigenvalue is at the floor, so is the
    # whole's, and the eigenvalues of the whole need not be computed.
    array = _square(matrix)
    m = len(array)
    floor = m * EPSILON * float(np.trace(array) if largest is None else largest)
    step = -(-m // SMALL_BLOCK)
    block = array[::step, ::step]
    upper = float(eigvalsh(block, subset_by_index=[0, 0])[0]) + floor
    if upper <= 2 * floor or len(block) == m:
        return Bracket(max(0.0, upper - 2 * floor), upper, floor)
    upper = float(eigvalsh(array, subset_by_index=[0, 0])[0]) + floor
    return Bracket(max(0.0, upper - 2 * floor), upper, floor)


def _square(matrix: FloatArray) -> FloatArray:
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not len(array):
        raise InputError(f"A kernel matrix is square; got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise InputError("The matrix has entries that are not finite.")
    return array
