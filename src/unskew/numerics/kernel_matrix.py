r"""The kernel matrix of a sample: its rows as they are used, at low rank, and its eigenvalues.

:class:`KernelMatrix` holds the rows that are used. Nyström's approximation is :math:`K \approx Z
Z^\top` with few columns. With landmarks :math:`c_1, \dots, c_D` among the rows, :math:`z(x) =
K_{cc}^{-1/2} k(x, c)`: the projection onto the span of the landmarks, exact at the landmarks
themselves.

Extreme eigenvalues are given as a :class:`Bracket`, two limits that are certain: for a matrix
without negative entries and a positive v, the largest one lies between :math:`\min_i (K v)_i / v_i`
and :math:`\max_i (K v)_i / v_i` (Collatz and Wielandt).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh

from unskew.errors import InputError, ParameterError
from unskew.numerics.kernels import GaussianKernel, Kernel, blocks, in_threads
from unskew.numerics.typing import FloatArray, IntArray

_COLUMNS_AT_ONCE = 512

_ROWS_AT_ONCE, _FEW_ROWS = 100, 1000
"""Rows of a block that are filled at a time, and up to how many threads are not worth their start.
Measured at 1,900 of 5,000 rows that are held: 100 at a time 3.2 ms, 200 4.1 ms."""

_MANY_USED = 0.3
"""The share of the held rows from which on a product reads them as they stand, rather than a copy
of those that it needs. Measured at 10,000 rows: all 19 ms, a copy of 5,800 rows 41 ms."""


EPSILON = float(np.finfo(np.float64).eps)
SMALL_BLOCK = 400


class KernelMatrix:
    """K plus a diagonal ridge between the rows of a sample.

    A row of it is computed in single precision when a product or a block first needs it, and held
    for the next ones, as long as all that are held fit into ``memory`` bytes. Beyond that, a
    product drops rows that it does not need for those that it does, and computes what is left in
    blocks that it forgets. Exact products and blocks are in double precision, computed each time.
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: FloatArray,
        *,
        ridge: float | FloatArray = 0.0,
        memory: float = 2**31,
    ) -> None:
        self.kernel = kernel
        self.ridge = np.broadcast_to(np.asarray(ridge, dtype=np.float64), len(rows))
        self.size = len(rows)
        self._exact = kernel.prepare(rows, dtype=np.float64)
        self._quick = kernel.prepare(rows, dtype=np.float32)
        room = int(min(self.size, memory / (4.0 * max(self.size, 1))))
        if room < self.size:
            room //= 4  # the rest is left to the square blocks that a solver needs
        self._held: Any = np.empty((room, self.size), dtype=np.float32)  # pages come when used
        self._owner = np.full(room, -1)  # which row is held at a place, and where a row is
        self._place = np.full(self.size, -1)
        self._n_places = 0  # beyond these, nothing was ever held

    @property
    def n_held(self) -> int:
        """How many rows are held."""
        return int(np.count_nonzero(self._owner >= 0))

    def quick_product(self, vector: FloatArray) -> FloatArray:
        """Return (K + ridge) v from entries in single precision.

        Only the columns that v uses are touched. Some hundred of them at a time are added up in
        single precision, the rest in double, so that it errs by about 1e-7 of the largest sum.
        """
        product = self.ridge * vector
        used = np.flatnonzero(vector)
        self._hold(used, drop=True)
        places = self._place[used]
        rest = used[places < 0]
        if len(rest):
            elsewhere = np.zeros(self.size)
            elsewhere[rest] = vector[rest]
            product += self._product(self._quick, elsewhere)
        values = np.zeros(self._n_places, dtype=np.float32)
        values[places[places >= 0]] = vector[used[places >= 0]]
        some = np.flatnonzero(values)
        gathered = len(some) < _MANY_USED * len(values)  # of many, it takes longer than reading all
        for start in range(0, len(some) if gathered else len(values), _COLUMNS_AT_ONCE):
            part: Any = slice(start, start + _COLUMNS_AT_ONCE)
            part = some[part] if gathered else part
            product += values[part] @ self._held[: len(values)][part]
        return product

    def exact_product(self, vector: FloatArray) -> FloatArray:
        """Return (K + ridge) v in double precision."""
        return self._product(self._exact, vector) + self.ridge * vector

    def block(
        self, rows: IntArray, columns: IntArray, *, exact: bool, lower: bool = False
    ) -> FloatArray:
        """Return K + ridge between rows and columns, in double precision if it is to be exact.

        If only the lower triangle is asked for, what is above it may be anything.
        """
        block = np.empty((len(rows), len(columns)), dtype=np.float64 if exact else np.float32)
        prepared = self._exact if exact else self._quick
        of_columns = prepared[columns]
        # Held rows are copied, others computed. A solver asks for ever the same ones, so that those
        # held stay, and what does not fit is computed again.
        if not exact:
            self._hold(rows, drop=False)

        def fill(part: slice) -> None:
            stop = part.stop if lower else len(columns)
            out, places = block[part, :stop], self._place[rows[part]]
            if exact or places.min() < 0:
                self.kernel.block(prepared[rows[part]], of_columns[:stop], out)
            elif stop:
                last = columns[:stop].max() + 1
                np.take(self._held[places, :last], columns[:stop], axis=1, out=out, mode="clip")

        parts = list(_parts(len(rows)))
        if len(rows) > _FEW_ROWS:
            in_threads(fill, parts)
        else:
            for part in parts:
                fill(part)
        if self.ridge.any():
            _, at_row, at_column = np.intersect1d(
                rows, columns, assume_unique=True, return_indices=True
            )
            block[at_row, at_column] += self.ridge[rows[at_row]].astype(block.dtype)
        return block

    def _hold(self, rows: IntArray, *, drop: bool) -> None:
        """Hold as many of the rows as there is room for, in place of others if these may go."""
        missing = rows[self._place[rows] < 0]
        if not len(missing):
            return
        places = np.flatnonzero(self._owner < 0)
        # Free places first; then, if others may go, those of rows that are not asked for now.
        if drop and len(places) < len(missing):
            wanted = np.zeros(self.size, dtype=bool)
            wanted[rows] = True
            taken = np.flatnonzero(self._owner >= 0)
            others = taken[~wanted[self._owner[taken]]][: len(missing) - len(places)]
            self._place[self._owner[others]] = -1
            places = np.sort(np.append(places, others))
        places = places[: len(missing)]
        new = missing[: len(places)]
        self._owner[places], self._place[new] = new, places
        self._n_places = max(self._n_places, int(places.max(initial=-1)) + 1)

        def fill(part: slice) -> None:
            # Neighbouring places are filled as they stand, without a copy.
            first, last = places[part][[0, -1]]
            if last - first + 1 == part.stop - part.start:
                out = self._held[first : last + 1]
                self.kernel.block(self._quick[new[part]], self._quick, out)
            else:
                self._held[places[part]] = self.kernel.block(self._quick[new[part]], self._quick)

        in_threads(fill, blocks(len(new), self.size))

    def _product(self, prepared: FloatArray, vector: FloatArray) -> FloatArray:
        used = np.flatnonzero(vector)
        columns = prepared[used]
        values = vector[used].astype(prepared.dtype)
        product = np.zeros(self.size)
        # Single precision adds up no more than some hundred columns, double precision the rest.
        starts = range(0, len(used), _COLUMNS_AT_ONCE)
        chunks = [slice(start, start + _COLUMNS_AT_ONCE) for start in starts]

        def multiply(part: slice) -> None:
            rows = prepared[part]
            room = np.empty(len(rows) * _COLUMNS_AT_ONCE, dtype=prepared.dtype)
            for some in chunks:
                others = columns[some]
                out = room[: len(rows) * len(others)].reshape(len(rows), len(others))
                product[part] += self.kernel.block(rows, others, out) @ values[some]

        in_threads(multiply, blocks(self.size, _COLUMNS_AT_ONCE))
        return product


def _parts(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        yield slice(start, min(start + _ROWS_AT_ONCE, n_rows))


class NystromFeatures:
    """The feature map of a set of landmarks."""

    def __init__(self, kernel: Kernel, landmarks: FloatArray) -> None:
        self.kernel = kernel
        self._landmarks = kernel.prepare(landmarks, dtype=np.float32)
        exact = kernel.prepare(landmarks, dtype=np.float64)
        # K_cc^(-1/2) by its eigenvectors, on the directions that are kept.
        values, vectors = np.linalg.eigh(kernel.block(exact, exact))
        # Directions at the rounding level of single precision carry noise, not information.
        kept = values > values[-1] * 1e-6
        self._whitening = vectors[:, kept] / np.sqrt(values[kept])

    def of_sums(self, sums: FloatArray) -> FloatArray:
        """Return the features of a mean, given its kernel values at the landmarks."""
        return sums @ self._whitening

    def transform(self, points: FloatArray) -> FloatArray:
        """Return the features of points, in single precision."""
        out = np.empty((len(points), self._whitening.shape[1]), dtype=np.float32)
        whitening = self._whitening.astype(np.float32)

        def fill(part: slice) -> None:
            prepared = self.kernel.prepare(points[part], dtype=np.float32)
            out[part] = self.kernel.block(prepared, self._landmarks) @ whitening

        in_threads(fill, blocks(len(points), out.shape[1]))
        return out


class LowRankMatrix:
    """Z Zᵀ plus a diagonal ridge, which is never formed."""

    def __init__(self, features: FloatArray, *, ridge: float | FloatArray = 0.0) -> None:
        self.features = features
        self.ridge = np.broadcast_to(np.asarray(ridge, dtype=np.float64), len(features))
        self.size = len(features)

    def quick_product(self, vector: FloatArray) -> FloatArray:
        """Return the product in single precision."""
        inner = self.features.T @ vector.astype(np.float32, copy=False)
        return self.features @ inner + self.ridge * vector

    def exact_product(self, vector: FloatArray) -> FloatArray:
        """Return the product, added up in double precision block by block."""
        # Z (Zᵀ v), in blocks, as Z itself is in single precision.
        parts = list(blocks(self.size, self.features.shape[1]))
        inner = np.zeros(self.features.shape[1])
        for part in parts:
            inner += vector[part] @ self.features[part].astype(np.float64)
        product = np.concatenate([self.features[p].astype(np.float64) @ inner for p in parts])
        return product + self.ridge * vector


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
