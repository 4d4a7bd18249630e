r"""Nyström's approximation of a kernel, :math:`K \approx Z Z^\top` with few columns.

With landmarks :math:`c_1, \dots, c_D` among the rows, :math:`z(x) = K_{cc}^{-1/2} k(x, c)`: the
projection onto the span of the landmarks, exact at the landmarks themselves.
"""

from __future__ import annotations

import numpy as np

from unskew.numerics.kernels import Kernel, blocks, in_threads
from unskew.numerics.typing import FloatArray


class NystromFeatures:
    """The feature map of a set of landmarks."""

    def __init__(self, kernel: Kernel, landmarks: FloatArray) -> None:
        self.kernel = kernel
        self._landmarks = kernel.prepare(landmarks, dtype=np.float32)
        exact = kernel.prepare(landmarks, dtype=np.float64)
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
        parts = list(blocks(self.size, self.features.shape[1]))
        inner = np.zeros(self.features.shape[1])
        for part in parts:
            inner += vector[part] @ self.features[part].astype(np.float64)
        product = np.concatenate([self.features[p].astype(np.float64) @ inner for p in parts])
        return product + self.ridge * vector
