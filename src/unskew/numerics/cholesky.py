"""Cholesky factors of large blocks, on all cores.

LAPACK's own threads wait for each other in a loop, and keep the cores from other threads for tens
of milliseconds after each call. Here products of parts run on threads of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.linalg import lapack

from unskew.numerics.cores import available_cores, one_blas_thread
from unskew.numerics.typing import FloatArray

_ONE_THREAD = 1000
"""The size up to which LAPACK takes no longer on one thread. Measured on two cores: 750 rows 2.7 ms
against 3.4 ms, 1,200 rows 9.4 against 7.3 ms, 3,100 rows 115 against 70 ms."""

_COLUMNS_AT_ONCE = 128
"""Columns that are factored together. Measured at 2,000 to 8,000 rows: 64 to 192 within 20 %."""

_MOST_LOST = 1e-5
"""The relative error beyond which rows that were multiplied with the inverse of a small triangle
are corrected once: it grows with the condition of the triangle. Not tuned."""


def factorise_lower(block: FloatArray) -> bool:
    """Replace the lower triangle of a symmetric matrix K by its Cholesky factor L: K = L Lᵀ.

    What is above the diagonal is neither used nor kept.

    Parameters
    ----------
    block : ndarray of shape (n, n)
        In C order, in single or double precision.

    Returns
    -------
    bool
        Whether the matrix is positive definite. If not, nothing useful is left in the block.

    Examples
    --------
    >>> block = np.array([[4.0, np.nan], [2.0, 5.0]])
    >>> factorise_lower(block), block[1].tolist()
    (True, [1.0, 2.0])
    """
    size = len(block)
    if size <= _ONE_THREAD:
        return _factorise_small(block)
    n_threads = available_cores()
    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        for start in range(0, size, _COLUMNS_AT_ONCE):
            stop = min(start + _COLUMNS_AT_ONCE, size)
            # 1) Subtract from these columns what the columns before them explain.
            if start:
                _share(partial(_subtract, block, start, stop), start, size, pool, n_threads)
            # 2) Factor the square on the diagonal, and divide the rows below by its factor.
            if not _factorise_small(block[start:stop, start:stop]):
                return False
            divisor = _Divisor(np.triu(block[start:stop, start:stop].T))
            _share(partial(divisor.divide, block[:, start:stop]), stop, size, pool, n_threads)
    return True


def _share(
    function: Callable[[slice], None],
    start: int,
    stop: int,
    pool: ThreadPoolExecutor,
    n_parts: int,
) -> None:
    """Call a function on equal parts of some rows, on the first of them without a thread."""
    cuts = np.linspace(start, stop, n_parts + 1).astype(int).tolist()
    first, *others = [slice(*ends) for ends in pairwise(cuts)]
    running = [pool.submit(function, part) for part in others]
    function(first)
    for one in running:
        one.result()


def _subtract(block: FloatArray, start: int, stop: int, rows: slice) -> None:
    # Above the diagonal there may be anything, such as infinity, which says nothing.
    with np.errstate(invalid="ignore", over="ignore"):
        block[rows, start:stop] -= block[rows, :start] @ block[start:stop, :start].T


def _factorise_small(block: FloatArray) -> bool:
    """Factor a block as a whole, on one thread."""
    factorise = lapack.dpotrf if block.dtype == np.float64 else lapack.spotrf
    # The lower triangle of a block is the upper one of its transpose.
    factor, info = factorise(block.T, lower=0, overwrite_a=1, clean=0)
    if not np.may_share_memory(factor, block):  # LAPACK had to copy a part of a larger block
        block[...] = factor.T
    return bool(info == 0)


class _Divisor:
    """A small upper triangle to divide by, through products alone: they run on threads."""

    def __init__(self, upper: FloatArray) -> None:
        invert = lapack.dtrtri if upper.dtype == np.float64 else lapack.strtri
        self._upper = upper
        self._inverse = np.triu(invert(upper, lower=0)[0])
        growth = float(np.abs(self._inverse).max()) * float(np.abs(upper).max())
        self._corrects = np.finfo(upper.dtype).eps * growth > _MOST_LOST

    def divide(self, columns: FloatArray, rows: slice) -> None:
        """Replace rows X by X U⁻¹."""
        given = columns[rows]
        divided = given @ self._inverse
        if self._corrects:
            divided += (given - divided @ self._upper) @ self._inverse
        columns[rows] = divided
