"""The kernel matrix of a sample, held or computed on demand."""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.numerics.kernels import Kernel, blocks, fill_matrix, in_threads
from unskew.numerics.typing import FloatArray, IntArray

__all__ = ["KernelMatrix"]


class KernelMatrix:
    """K plus a diagonal ridge between the rows of a sample.

    Held in single precision where it fits into ``memory`` bytes; otherwise the columns that a
    product needs are computed in blocks and forgotten. Exact products and blocks are computed from
    the rows in double precision.
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
        self.held: Any = None
        if 4.0 * self.size**2 <= memory:
            self.held = np.empty((self.size, self.size), dtype=np.float32)
            fill_matrix(kernel, self._quick, self._quick, self.held)

    def quick_product(self, vector: FloatArray) -> FloatArray:
        """Return (K + ridge) v, up to single precision."""
        if self.held is not None:
            product = self.held @ vector.astype(np.float32, copy=False)
        else:
            product = self._product(self._quick, vector)
        return product + self.ridge * vector if self.ridge.any() else product

    def exact_product(self, vector: FloatArray) -> FloatArray:
        """Return (K + ridge) v in double precision."""
        return self._product(self._exact, vector) + self.ridge * vector

    def block(self, rows: IntArray, *, exact: bool) -> FloatArray:
        """Return the square block of these rows, in double precision if it is to be exact."""
        if self.held is not None and not exact:
            block = self.held[np.ix_(rows, rows)]
        else:
            some = (self._exact if exact else self._quick)[rows]
            block = np.empty((len(rows), len(rows)), dtype=some.dtype)
            fill_matrix(self.kernel, some, some, block)
        np.einsum("ii->i", block)[:] += self.ridge[rows].astype(block.dtype)
        return block

    def _product(self, prepared: FloatArray, vector: FloatArray) -> FloatArray:
        used = np.flatnonzero(vector)
        columns = prepared[used]
        values = vector[used].astype(prepared.dtype)
        product = np.empty(self.size)

        def multiply(part: slice) -> None:
            product[part] = self.kernel.block(prepared[part], columns) @ values

        in_threads(multiply, blocks(self.size, len(used)))
        return product
