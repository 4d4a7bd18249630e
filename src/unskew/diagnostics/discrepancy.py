r"""Maximum mean discrepancy (MMD) between sample and population, with its null distribution.

.. math:: \mathrm{MMD} = \| \sum_i a_i \phi(x_i) - \sum_j b_j \phi(u_j) \|

for weights a and b that sum to one and the feature map φ of the Gaussian kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import cdist, pdist

from unskew.diagnostics.diagnosis import Comparison
from unskew.numerics.kernels import GaussianKernel
from unskew.numerics.typing import FloatArray

MAX_ROWS = 1500
"""Of each side, drawn uniformly at random; the kernel matrix has twice as many rows."""
N_RESAMPLES = 499
"""Draws from the null distribution."""
_BLOCK_ROWS = 256
_FAR = 1e8


class MaximumMeanDiscrepancy:
    """Two-sample tests by MMD that share the kernel matrix of both sides.

    Parameters
    ----------
    points : ndarray of shape (m, d)
    others : ndarray of shape (r, d)
    seed : int

    Attributes
    ----------
    kernel : ndarray of shape (m + r, m + r)
        The blocks on the diagonal and above; those below mirror them and are zero here.
    """

    def __init__(self, points: FloatArray, others: FloatArray, *, seed: int) -> None:
        self.m, self.r = len(points), len(others)
        self.seed = seed
        stacked = np.concatenate([points, others])
        random = np.random.RandomState(seed)
        some = stacked[random.permutation(len(stacked))[:500]]
        squares = pdist(some, "sqeuclidean") if len(some) > 1 else np.ones(1)
        typical = float(np.median(squares[squares > 0])) if (squares > 0).any() else 1.0
        kernel = GaussianKernel(np.sqrt(typical / 2))  # the median heuristic
        prepared = kernel.prepare(stacked)
        self.kernel = np.zeros((len(stacked), len(stacked)), dtype=np.float32)
        for here in self._diagonal_blocks():
            above = slice(here.stop)
            self.kernel[above, here] = kernel.block(prepared[above], prepared[here])
        # So far out, the product has lost the distance to rounding.
        far = np.flatnonzero(np.einsum("ij,ij->i", stacked, stacked) > _FAR * typical)
        if len(far):
            values = np.exp(-cdist(stacked[far], stacked, "sqeuclidean") / typical)
            self.kernel[far], self.kernel[:, far] = values, values.T

    def permutation_test(self) -> Comparison:
        """Test unweighted rows by permuting them between the sides, which is exact."""
        random = np.random.RandomState(self.seed)
        signed = np.concatenate([np.full(self.m, 1 / self.m), np.full(self.r, -1 / self.r)])
        permuted = np.empty((N_RESAMPLES, len(signed)), dtype=np.float32)
        for row in permuted:
            row[:] = random.permutation(signed)
        return self._result(signed, permuted)

    def wild_bootstrap_test(self, weight: FloatArray, other_weight: FloatArray) -> Comparison:
        """Test weighted rows by random signs of their centred features (wild bootstrap).

        The weights are treated as fixed. If they were fitted to make this distance small, the test
        is conservative.
        """
        random = np.random.RandomState(self.seed)
        mine, theirs = weight / weight.sum(), other_weight / other_weight.sum()
        flipped = []
        for part in (mine, theirs):
            signs = random.choice([-1.0, 1.0], size=(len(part), N_RESAMPLES))
            flipped.append(part[:, None] * (signs - part @ signs))
        return self._result(np.concatenate([mine, -theirs]), np.concatenate(flipped).T)

    def _result(self, signed: FloatArray, null: FloatArray) -> Comparison:
        statistic = self._squared(signed[None])[0]
        beyond = int((self._squared(null) >= statistic * (1 - 1e-6) - 1e-6).sum())  # rounding
        return Comparison(
            statistic=float(np.sqrt(max(statistic, 0.0))),
            low=None,
            high=None,
            p_value=(1 + beyond) / (1 + N_RESAMPLES),
        )

    def _squared(self, signed: FloatArray) -> FloatArray:
        """Return x'Kx of each row x; K is symmetric."""
        rows = signed.astype(np.float32, order="C")
        squares = np.zeros(len(rows))
        for here in self._diagonal_blocks():
            above = slice(here.start)
            product = 2 * (rows[:, above] @ self.kernel[above, here])
            product += rows[:, here] @ self.kernel[here, here]
            squares += np.einsum("ij,ij->i", product, rows[:, here], dtype=np.float64)
        return squares

    def _diagonal_blocks(self) -> Iterator[slice]:
        n_rows = self.m + self.r
        for start in range(0, n_rows, _BLOCK_ROWS):
            yield slice(start, min(start + _BLOCK_ROWS, n_rows))
