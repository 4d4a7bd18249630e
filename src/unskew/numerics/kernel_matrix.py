"""The kernel matrix of a sample, held or computed on demand."""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.numerics.kernels import Kernel, blocks, fill_matrix, in_threads
from unskew.numerics.typing import FloatArray, IntArray

_COLUMNS_AT_ONCE = 512

_MANY_USED = 0.3
"""The share of rows from which on a product reads the held matrix as it stands, rather than a copy
of the rows that it needs. Measured at 10,000 rows: all 19 ms, a copy of 5,800 rows 41 ms."""


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
        """Return (K + ridge) v from entries in single precision.

        Only the columns that v uses are touched. Some hundred of them at a time are added up in
        single precision, the rest in double, so that it errs by about 1e-7 of the largest sum.
        """
        product = self.ridge * vector
        if self.held is None:
            return product + self._product(self._quick, vector)
        used = np.flatnonzero(vector)
        # Gathering many rows takes longer than reading all.
        rows = used if len(used) < _MANY_USED * self.size else np.arange(self.size)
        for start in range(0, len(rows), _COLUMNS_AT_ONCE):
            part = rows[start : start + _COLUMNS_AT_ONCE]
            held = self.held[part] if rows is used else self.held[start : start + _COLUMNS_AT_ONCE]
            product += vector[part].astype(np.float32) @ held
        return product

    def exact_product(self, vector: FloatArray) -> FloatArray:
        """Return (K + ridge) v in double precision."""
        return self._product(self._exact, vector) + self.ridge * vector

    def block(self, rows: IntArray, columns: IntArray, *, exact: bool) -> FloatArray:
        """Return K + ridge between rows and columns, in double precision if it is to be exact."""
        prepared = self._exact if exact else self._quick
        block = np.empty((len(rows), len(columns)), dtype=np.float64 if exact else np.float32)
        if self.held is None or exact:
            fill_matrix(self.kernel, prepared[rows], prepared[columns], block)
        else:
            held = self.held

            def copy(part: slice) -> None:
                np.take(held[rows[part]], columns, axis=1, out=block[part], mode="clip")

            # Threads are not worth their start for less than some megabytes.
            in_threads(copy, [slice(None)] if len(rows) <= 1000 else blocks(len(rows), len(held)))
        if self.ridge.any():
            _, at_row, at_column = np.intersect1d(
                rows, columns, assume_unique=True, return_indices=True
            )
            block[at_row, at_column] += self.ridge[rows[at_row]].astype(block.dtype)
        return block

    def _product(self, prepared: FloatArray, vector: FloatArray) -> FloatArray:
        used = np.flatnonzero(vector)
        columns = prepared[used]
        values = vector[used].astype(prepared.dtype)
        product = np.zeros(self.size)
        # Single precision adds up no more than some hundred columns, double precision the rest.
        starts = range(0, len(used), _COLUMNS_AT_ONCE)
        chunks = [slice(start, start + _COLUMNS_AT_ONCE) for start in starts]

        def multiply(part: slice) -> None:
            for some in chunks:
                product[part] += self.kernel.block(prepared[part], columns[some]) @ values[some]

        in_threads(multiply, blocks(self.size, _COLUMNS_AT_ONCE))
        return product
