"""Positive definite kernels, evaluated in blocks.

A kernel prepares a set of rows once (scaling, norms) and then evaluates pairs of prepared rows. The
Gaussian does so by one matrix product and one exponential, in single or double precision; single is
several times faster and errs by about ``5e-7`` of a value, as long as the rows lie within some tens
of bandwidths of the origin, to which callers centre them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.errors import InputError, ParameterError
from unskew.numerics.cores import available_cores, one_blas_thread
from unskew.numerics.typing import FloatArray

FAR = 0.01
"""A kernel value below which two rows have nothing to do with each other (3 bandwidths apart)."""

FARTHEST = 1e15
"""How far out a row is taken to be at most, so that its square is finite."""

_LARGE_HALF_NORM = 1e3

BLOCK_VALUES = 1 << 20
"""Values of a block: small enough to stay in the cache between the product and the exponential."""


class Kernel(ABC):
    """A positive definite function of two rows.

    Attributes
    ----------
    far : float
        The value below which two rows have nothing to do with each other.
    """

    far = FAR

    @abstractmethod
    def prepare(self, rows: FloatArray, *, dtype: Any = np.float64) -> FloatArray:
        """Return rows in the form that :meth:`block` takes; still one row each."""

    @abstractmethod
    def block(
        self, left: FloatArray, right: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        """Return the matrix of values between two sets of prepared rows.

        Filling ``out`` saves the system from finding new memory for every block, which takes as
        long as the values themselves.
        """

    def draw_frequencies(
        self,
        n_columns: int,  # noqa: ARG002
        size: int,  # noqa: ARG002
        random: np.random.RandomState,  # noqa: ARG002
    ) -> FloatArray | None:
        """Draw from the kernel's spectral measure, or return None if it is not known.

        By Bochner's theorem K(x, y) is the mean of cos(ω·(x − y)) over these frequencies.
        """
        return None


class GaussianKernel(Kernel):
    r"""The kernel :math:`\exp(-\lVert x - y \rVert^2 / (2 \sigma^2))`.

    Examples
    --------
    >>> kernel = GaussianKernel(1.0)
    >>> rows = kernel.prepare(np.array([[0.0], [1.0]]))
    >>> kernel.block(rows, rows).round(4)
    array([[1.    , 0.6065], [0.6065, 1.    ]])
    """

    def __init__(self, bandwidth: float | FloatArray) -> None:
        self.bandwidth = bandwidth

    def prepare(self, rows: FloatArray, *, dtype: Any = np.float64) -> FloatArray:
        """Return rows in units of the bandwidth, with 1 and −‖x‖²/2 as two more columns."""
        scaled = _within_range(rows, self.bandwidth)
        halves = -0.5 * np.einsum("ij,ij->i", scaled, scaled)
        columns = np.column_stack([scaled, np.ones(len(scaled)), halves])
        return np.ascontiguousarray(columns, dtype=dtype)

    def block(
        self, left: FloatArray, right: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        """Return exp(x·y − ‖x‖²/2 − ‖y‖²/2): the exponent is one matrix product."""
        # (x, −‖x‖²/2, 1)·(y, 1, −‖y‖²/2) = x·y − ‖x‖²/2 − ‖y‖²/2 = −‖x − y‖²/2, at σ = 1.
        swapped = left.copy()
        swapped[:, [-2, -1]] = left[:, [-1, -2]]  # so that each side's half norm meets a one
        values = np.matmul(swapped, right.T, out=out)
        if min(left[:, -1].min(initial=0), right[:, -1].min(initial=0)) < -_LARGE_HALF_NORM:
            np.minimum(values, 0, out=values)  # rounding may have made it a large positive one
        return np.exp(values, out=values)

    def draw_frequencies(
        self, n_columns: int, size: int, random: np.random.RandomState
    ) -> FloatArray:
        """Return normal frequencies."""
        return (random.normal(size=(size, n_columns)) / self.bandwidth).T


class LaplaceKernel(Kernel):
    r"""The kernel :math:`\exp(-\lVert x - y \rVert_1 / \sigma)`.

    Examples
    --------
    >>> kernel = LaplaceKernel(1.0)
    >>> rows = kernel.prepare(np.array([[0.0], [1.0]]))
    >>> kernel.block(rows, rows).round(4)
    array([[1.    , 0.3679], [0.3679, 1.    ]])
    """

    def __init__(self, bandwidth: float | FloatArray) -> None:
        self.bandwidth = bandwidth

    def prepare(self, rows: FloatArray, *, dtype: Any = np.float64) -> FloatArray:
        """Return rows in units of the bandwidth."""
        return np.ascontiguousarray(_within_range(rows, self.bandwidth), dtype=dtype)

    def block(
        self, left: FloatArray, right: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        """Return exp(−Σ|x − y|), column by column."""
        values = np.empty((len(left), len(right)), dtype=left.dtype) if out is None else out
        values.fill(0)
        # One column at a time: the differences of all columns at once would not fit the cache.
        for column, other in zip(left.T, right.T, strict=True):
            values -= np.abs(column[:, None] - other)
        return np.exp(values, out=values)

    def draw_frequencies(
        self, n_columns: int, size: int, random: np.random.RandomState
    ) -> FloatArray:
        """Return Cauchy frequencies, independent in each column."""
        return (random.standard_cauchy(size=(size, n_columns)) / self.bandwidth).T


class TiltedKernel(Kernel):
    r"""A kernel between rows and centres, times :math:`e^{t^\top x - s}` of the row.

    Functions of such a basis contain the exponential tilt itself, which a wide kernel hardly
    changes. Outside of a range the tilt keeps its value at the edge, and the factor is never above
    a bound.

    Attributes
    ----------
    kernel : Kernel
    tilt : ndarray of shape (d,)
    shift : float
    low, high : ndarray of shape (d,)
    most : float
        The logarithm of the bound.

    Examples
    --------
    >>> plain, zero, one = GaussianKernel(1.0), np.zeros(1), np.ones(1)
    >>> kernel = TiltedKernel(plain, one, 0.0, low=zero, high=one, most=9.0)
    >>> rows = kernel.prepare(np.array([[0.0], [1.0]]))
    >>> kernel.block(rows, rows).round(4)
    array([[1.    , 0.6065], [1.6487, 2.7183]])
    """

    def __init__(
        self,
        kernel: Kernel,
        tilt: FloatArray,
        shift: float,
        *,
        low: FloatArray,
        high: FloatArray,
        most: float,
    ) -> None:
        self.kernel = kernel
        self.tilt = tilt
        self.shift = shift
        self.low = low
        self.high = high
        self.most = most

    def factors(self, rows: FloatArray) -> FloatArray:
        """Return the factor of each row."""
        # e^(tᵀx − s), with x held within its range and the exponent below its bound.
        scores = np.clip(rows, self.low, self.high) @ self.tilt - self.shift
        return np.exp(np.minimum(scores, self.most))

    def prepare(self, rows: FloatArray, *, dtype: Any = np.float64) -> FloatArray:
        """Return the rows as the kernel prepares them, then their factors."""
        return np.column_stack([self.kernel.prepare(rows, dtype=dtype), self.factors(rows)])

    def block(
        self, left: FloatArray, right: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        """Return the kernel between rows and centres, times the factors of the rows."""
        # The last prepared column is the factor: of the rows it counts, of the centres it does not.
        rows, centres = (np.ascontiguousarray(side[:, :-1]) for side in (left, right))
        values = self.kernel.block(rows, centres, out)
        values *= left[:, -1:]
        return values


class CustomKernel(Kernel):
    """Any positive definite function of two matrices, as scikit-learn's pairwise kernels are."""

    far = -np.inf  # which values of it are small is not known

    def __init__(self, function: Callable[[FloatArray, FloatArray], Any]) -> None:
        self.function = function

    def prepare(self, rows: FloatArray, *, dtype: Any = np.float64) -> FloatArray:  # noqa: ARG002
        """Return the rows as they are."""
        return np.asarray(rows, dtype=np.float64)

    def block(
        self, left: FloatArray, right: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        """Return the values of the function, if they are usable."""
        if not len(left) or not len(right):  # which not every function takes
            return np.empty((len(left), len(right)))
        values = np.asarray(self.function(left, right), dtype=np.float64)
        if values.shape != (len(left), len(right)):
            raise ParameterError(
                f"The kernel returned shape {values.shape} for {len(left)} and {len(right)} rows; "
                "it must return one value for each pair."
            )
        if not np.isfinite(values).all():
            raise InputError("The kernel returned values that are not finite.")
        if out is None:
            return values
        out[...] = values
        return out


def _within_range(rows: FloatArray, bandwidth: float | FloatArray) -> FloatArray:
    """Return rows in units of the bandwidth, at most so far out that squares stay finite.

    So far out a kernel is zero anyway.
    """
    scaled = np.asarray(rows, dtype=np.float64) / bandwidth
    return np.clip(scaled, -FARTHEST, FARTHEST)


def blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of rows whose blocks against ``n_columns`` columns fit the cache.

    They have at most 1,024 rows, so that sums over them in single precision stay precise.
    """
    step = int(np.clip(BLOCK_VALUES // max(1, n_columns), 16, 1024))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def fill_matrix(
    kernel: Kernel, left: FloatArray, right: FloatArray, out: NDArray[Any]
) -> NDArray[Any]:
    """Fill ``out`` with the kernel between two sets of rows, block by block, and return it."""

    def fill(part: slice) -> None:
        kernel.block(left[part], right, out[part])

    in_threads(fill, blocks(len(left), len(right)))
    return out


def in_threads(function: Callable[[slice], None], parts: Iterable[slice]) -> None:
    """Call a function on each part, on as many threads as there are cores.

    Meanwhile BLAS keeps to one thread each: its own threads would compete with ours.
    """
    parts = list(parts)
    with one_blas_thread():
        if len(parts) == 1:
            function(parts[0])
            return
        with ThreadPoolExecutor(min(available_cores(), len(parts) or 1)) as pool:
            list(pool.map(function, parts))
