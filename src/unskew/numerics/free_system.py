r"""Linear systems on the free entries of a program, for one set of entries after another.

.. math:: (K_{FF} + \rho) x + \mu = r, \qquad \textstyle\sum_i x_i = s

Sets F follow each other and differ less and less. For each set,

1. conjugate gradients are tried if it is large: they converge fast where the kernel is narrow;
2. otherwise, and from the first set on which they were too slow, a Cholesky factor is used: that of
   an earlier set, with a border for the few entries that came or went, or else a new one;
3. a factor is in single precision, and in double precision once single precision has failed.

Cholesky factors of large blocks use all cores (:func:`factorise_lower`). LAPACK's own threads wait
for each other in a loop, and keep the cores from other threads for tens of milliseconds after each
call; here products of parts run on threads of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from unskew.numerics.cores import available_cores, one_blas_thread
from unskew.numerics.typing import FloatArray, IntArray

_FEW_CHANGES = 1 / 20
"""A factor is reused for a set that differs from its own by at most this share of entries; a border
of c entries takes c solves with the factor, and loses digits where entries that came are nearly
determined by the others. Measured at 5,000 and 10,000 rows of 8 columns with a ridge of 0.001:
twice as many take 0.85 times the work in factors, and no less time."""

_MANY_ROWS = 1000
"""Sets larger than this try conjugate gradients first. Measured on 1,250 rows of 32 columns with a
ridge of 0.001: a step takes 0.12 ms, a system 6 to 18 of them, and a factor 10 ms. Nyström's
preconditioner saves nothing: 12,000 rows of 3, 8 and 32 columns took as long with it."""

_ROWS_PER_STEP, _LEAST_STEPS = 40, 60
"""Conjugate gradients are given up after a step for every 40 rows, because a factor is cheaper
then: a step takes 2 n² operations at the speed of memory, a factor n³ / 3 at that of the cache.
Measured on 1,250 and 3,100 rows: a factor takes as long as one step for 12 and for 28 rows. With 25
instead, 10,000 rows of 8 columns took 1.6 times as long. Less than 60 steps cost less than any
factor here: with 30, 1,250 rows of 32 columns needed one for the last digits."""

_ITERATED_ACCURACY = 1e-4
"""The residual, relative to the largest entry of the right side, below which single precision has
nothing more to give; the caller refines the rest."""

_FEW_MORE = 0.1
"""Conjugate gradients keep their block for a set that differs from it by at most this share of
entries: the others have their columns added, or take no part. Not tuned."""

_ROWS_AT_ONCE = 1000
"""Rows of a block that are filled at a time, to hold no second block. Not tuned."""

_MORE_PROXIMITY, _LEAST_PROXIMITY = 100, 1e-8
"""By how much ρ grows where even double precision cannot factor the block, and from what at least.
Not tuned."""


class FreeSystem:
    """The systems of a program around one proximal term.

    Parameters
    ----------
    matrix : KernelMatrix
        K, of which ``block(rows, columns, exact=, lower=)`` gives parts.
    proximity : float
        ρ.
    exact : bool
        Whether K is factored in double precision. It becomes true when single precision fails.
    """

    def __init__(self, matrix: Any, proximity: float, *, exact: bool = False) -> None:
        self.exact = exact
        self.proximity = proximity
        self._matrix = matrix
        self._iterates_above = np.inf if exact else _MANY_ROWS
        self._iterated: _Iterated | None = None
        self._factored: _Factored | None = None

    def move_to(self, rows: IntArray) -> None:
        """Select the system of these entries, of which there is at least one."""
        self._rows = rows
        self._ones: FloatArray | None = None
        if len(rows) <= self._iterates_above:
            self._iterated = None
            return
        if self._iterated is None or not self._iterated.select(rows):
            self._iterated = None  # frees its memory first
            self._iterated = _Iterated(self._matrix, rows, self.proximity)

    def solve(
        self, right: FloatArray, total: float | None, *, accuracy: float
    ) -> tuple[FloatArray, float]:
        """Return x and μ; with no total, μ is zero.

        Conjugate gradients end when the largest residual is below ``accuracy``.
        """
        if self._iterated is not None:
            found = self._iterated.solve(right, total, accuracy)
            if found is not None:
                return found
            # Too slow once: from here on by factors.
            self._iterates_above, self._iterated = np.inf, None
        factored = self._factor()
        if total is None:
            return factored.solve(right), 0.0
        if self._ones is None:  # two right sides take as long as one
            both = factored.solve(np.column_stack([right, np.ones(len(right))]))
            alone, self._ones = both[:, 0], both[:, 1]
        else:
            alone = factored.solve(right)
        # x = K⁻¹ r − μ K⁻¹ 1, with the μ that makes the sum the total.
        multiplier = float((alone.sum() - total) / self._ones.sum())
        return alone - multiplier * self._ones, multiplier

    def _factor(self) -> _Factored:
        """Return a factor for the rows: the last one if it can be reused, or a new one."""
        if self._factored is None or not self._factored.select(self._rows):
            self._factored = None  # frees its memory first
            self._factored = _Factored(self._matrix, self._rows, self.proximity, exact=self.exact)
            self.exact = self._factored.exact
        return self._factored


class _Factored:
    """A Cholesky factor of one set of rows, reusable for sets that differ from it by few."""

    def __init__(self, matrix: Any, rows: IntArray, proximity: float, *, exact: bool) -> None:
        self.exact = exact
        self.rows = rows
        self._matrix = matrix
        self._proximity = proximity
        self._columns: dict[int, FloatArray] = {}
        self._changes: _Changes | None = None
        self._factor = self._factorise()

    def block(self, rows: IntArray, columns: IntArray, *, lower: bool = False) -> FloatArray:
        """Return K + ρ between rows and columns, or the lower triangle of it."""
        block = self._matrix.block(rows, columns, exact=self.exact, lower=lower)
        if rows is columns:
            np.einsum("ii->i", block)[:] += block.dtype.type(self._proximity)
        return block

    def _factorise(self) -> FloatArray:
        """Factor the block; what single precision cannot factor is factored in double precision.

        What that cannot factor either is factored a little further from singular.
        """
        while True:
            block = self.block(self.rows, self.rows, lower=True)
            if factorise_lower(block):
                return block.T  # the upper factor, as LAPACK stores it
            if self.exact:
                self._proximity = max(_MORE_PROXIMITY * self._proximity, _LEAST_PROXIMITY)
            self.exact = True

    def select(self, rows: IntArray) -> bool:
        """Select a set of rows, if it is near enough to this one; return whether it is."""
        if self._changes is not None and self._changes.rows is rows:
            return True
        came, went = (
            np.setdiff1d(some, others, assume_unique=True)
            for some, others in ((rows, self.rows), (self.rows, rows))
        )
        n_changes = len(came) + len(went)
        if n_changes > _FEW_CHANGES * len(self.rows):
            return False
        self._changes = _Changes(self, rows, came, went) if n_changes else None
        return True

    def solve(self, right: FloatArray) -> FloatArray:
        """Solve for the selected set, at first its own."""
        if self._changes is None:
            return self.solve_own(right)
        return self._changes.solve(right, self.solve_own)

    def inverse_columns(self, keys: Sequence[int], columns: FloatArray) -> FloatArray:
        """Return K⁻¹ times columns, each known by a key under which it is kept for the next set."""
        new = [place for place, key in enumerate(keys) if key not in self._columns]
        if new:
            solved = self.solve_own(columns[:, new])
            self._columns.update((keys[p], c) for p, c in zip(new, solved.T, strict=True))
        return np.column_stack([self._columns[key] for key in keys])

    def solve_own(self, right: FloatArray) -> FloatArray:
        """Solve for the set of the factor itself."""
        solve = lapack.dpotrs if self._factor.dtype == np.float64 else lapack.spotrs
        side = np.array(right, dtype=self._factor.dtype, order="F")
        solved, _ = solve(self._factor, side, lower=0, overwrite_b=1)
        return np.asarray(solved, dtype=np.float64).reshape(right.shape)


class _Changes:
    """A factored system with a few rows added and a few removed.

    Rows that came are a border of the block, rows that went are held at zero by another; both leave
    a small indefinite system, their Schur complement.
    """

    def __init__(self, factored: _Factored, rows: IntArray, came: IntArray, went: IntArray) -> None:
        self.rows = rows  # and no reference to the factor, which would keep its memory
        own, n_came = factored.rows, len(came)
        size = n_came + len(went)
        self._borders = np.zeros((len(own), size))
        self._borders[:, :n_came] = factored.block(came, own).T  # which are fewer rows to read
        self._borders[np.searchsorted(own, went), np.arange(n_came, size)] = 1.0
        corner = np.zeros((size, size))
        corner[:n_came, :n_came] = factored.block(came, came)
        self._inner = factored.inverse_columns([*came, *went], self._borders)
        self._complement = corner - self._borders.T @ self._inner
        self._came = np.searchsorted(rows, came)
        self._stayed = np.setdiff1d(np.arange(len(rows)), self._came, assume_unique=True)
        self._stayed_in_own = np.searchsorted(own, rows[self._stayed])

    def solve(self, right: FloatArray, solve_own: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Solve for the rows as they are now, given how to solve for those of the factor."""
        # Eliminating the factor's rows leaves (C − BᵀK⁻¹B) a = r_came − BᵀK⁻¹ r for the border.
        base = np.zeros((len(self._borders), *right.shape[1:]))
        base[self._stayed_in_own] = right[self._stayed]
        solved = solve_own(base)
        changed = -self._borders.T @ solved
        changed[: len(self._came)] += right[self._came]
        amounts = np.linalg.solve(self._complement, changed)
        solved -= self._inner @ amounts
        result = np.empty(right.shape)
        result[self._stayed] = solved[self._stayed_in_own]
        result[self._came] = amounts[: len(self._came)]
        return result


class _Iterated:
    """Conjugate gradients on one set of rows, in single precision."""

    def __init__(self, matrix: Any, rows: IntArray, proximity: float) -> None:
        self._matrix = matrix
        self._proximity = np.float32(proximity)
        self._place = np.full(matrix.size, -1)
        # Room for rows that come; rows that go stay where they are. Of a symmetric block the lower
        # triangle is enough, and a product reads half as much.
        room = len(rows) + int(_FEW_MORE * len(rows))
        self._block = np.zeros((room, room), dtype=np.float32)
        self._own = np.empty(0, dtype=np.intp)
        self.select(rows)

    def select(self, rows: IntArray) -> bool:
        """Select a set of rows, if it is near enough to the one before; return whether it is."""
        came = rows[self._place[rows] < 0]
        before, after = len(self._own), len(self._own) + len(came)
        if after > min(len(self._block), (1 + _FEW_MORE) * len(rows)):
            return False
        # Rows that came are added to the block, some at a time.
        self._place[came] = np.arange(before, after)
        self._own = np.append(self._own, came)
        for start in range(before, after, _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, after)
            some, columns = self._own[start:stop], self._own[:stop]
            self._block[start:stop, :stop] = self._matrix.block(some, columns, exact=False)
        new = np.einsum("ii->i", self._block[before:after, before:after])
        new += self._proximity
        self._at = self._place[rows]
        return True

    def _times(self, vector: FloatArray) -> FloatArray:
        """Return the product of the selected block with a vector."""
        spread = np.zeros(len(self._block), dtype=np.float32)
        spread[self._at] = vector
        # The lower triangle of the block is the upper one of its transpose.
        product = blas.ssymv(1.0, self._block.T, spread, lower=0)
        return np.asarray(product[self._at], dtype=np.float64)

    def solve(
        self, right: FloatArray, total: float | None, accuracy: float
    ) -> tuple[FloatArray, float] | None:
        """Return x and μ, or None if convergence is too slow."""
        point, residual = np.zeros_like(right), right
        if total:  # begin with steps of that sum, the same for all entries
            point = np.full_like(right, total / len(right))
            residual = right - self._times(point)
        accuracy = max(accuracy, _ITERATED_ACCURACY * float(np.abs(right).max()))
        direction, length = np.zeros_like(point), np.inf
        for _ in range(max(len(right) // _ROWS_PER_STEP, _LEAST_STEPS)):
            # Steps that keep the sum are those along residuals less their mean, which is μ.
            multiplier = float(residual.mean()) if total is not None else 0.0
            rest = residual - multiplier
            if np.abs(rest).max() <= accuracy:
                return point, multiplier
            length, before = float(rest @ rest), length
            direction = rest + (length / before) * direction
            image = self._times(direction)
            pace = length / (direction @ image)
            point = point + pace * direction
            residual = residual - pace * image
        return None


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
    with one_blas_thread(), ThreadPoolExecutor(available_cores()) as pool:
        for start in range(0, size, _COLUMNS_AT_ONCE):
            stop = min(start + _COLUMNS_AT_ONCE, size)
            # 1) Subtract from these columns what the columns before them explain.
            subtract = partial(_subtract, block, start, stop)
            list(pool.map(subtract, _shares(start, size)))
            # 2) Factor the square on the diagonal, and divide the rows below by its factor.
            if not _factorise_small(block[start:stop, start:stop]):
                return False
            upper = np.triu(block[start:stop, start:stop].T)
            invert = lapack.dtrtri if upper.dtype == np.float64 else lapack.strtri
            inverse = np.triu(invert(upper, lower=0)[0])
            divide = partial(_divide, block[:, start:stop], upper, inverse)
            list(pool.map(divide, _shares(stop, size)))
    return True


def _shares(start: int, stop: int) -> Iterator[slice]:
    """Yield equal parts of some rows, one for each core."""
    cuts = np.linspace(start, stop, available_cores() + 1).astype(int).tolist()
    return (slice(*ends) for ends in pairwise(cuts))


def _subtract(block: FloatArray, start: int, stop: int, rows: slice) -> None:
    # Above the diagonal there may be anything, such as infinity, which says nothing.
    with np.errstate(invalid="ignore", over="ignore"):
        block[rows, start:stop] -= block[rows, :start] @ block[start:stop, :start].T


def _divide(columns: FloatArray, upper: FloatArray, inverse: FloatArray, rows: slice) -> None:
    """Replace rows X by X U⁻¹, through products alone: they run on threads."""
    undivided = columns[rows]
    divided = undivided @ inverse
    growth = float(np.abs(inverse).max()) * float(np.abs(upper).max())
    if np.finfo(upper.dtype).eps * growth > _MOST_LOST:
        divided += (undivided - divided @ upper) @ inverse
    columns[rows] = divided


def _factorise_small(block: FloatArray) -> bool:
    """Factor a block as a whole, on one thread."""
    factorise = lapack.dpotrf if block.dtype == np.float64 else lapack.spotrf
    # The lower triangle of a block is the upper one of its transpose.
    factor, info = factorise(block.T, lower=0, overwrite_a=1, clean=0)
    if not np.may_share_memory(factor, block):  # LAPACK had to copy a part of a larger block
        block[...] = factor.T
    return bool(info == 0)
