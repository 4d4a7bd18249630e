r"""Maximum mean discrepancy (MMD) between sample and population, with its null distribution.

.. math:: \mathrm{MMD} = \| \sum_i (a_i - b_i) \phi(x_i) \|

for the masses a and b that each row has in the sample and in the population, each summing to one,
and the feature map φ of the Gaussian kernel. Mostly one of the two is zero; a row of the sample
that is also a row of the population has both, and counts as the one row that it is: its share of
the difference is a − b.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import cdist, pdist

from unskew.diagnostics.diagnosis import Comparison
from unskew.numerics.far_rows import count_matches, narrow
from unskew.numerics.kernels import GaussianKernel
from unskew.numerics.typing import FloatArray, IntArray

MAX_ROWS = 1500
"""Of each side, drawn uniformly at random; the kernel matrix has twice as many rows."""
N_RESAMPLES = 499
"""Draws from the null distribution."""
_BLOCK_ROWS = 256
_FAR = 1e8


def swapped(signed: FloatArray, seed: int) -> FloatArray:
    """Return masses under the null distribution, a draw a row, by swapping rows."""
    random = np.random.RandomState(seed)
    permuted = np.empty((N_RESAMPLES, len(signed)), dtype=np.float32)
    for row in permuted:
        row[:] = random.permutation(signed)
    return permuted


def flipped(signed: FloatArray, seed: int) -> FloatArray:
    """Return the same for rows with weights, by random signs."""
    random = np.random.RandomState(seed)
    draws = np.zeros((len(signed), N_RESAMPLES))
    for side in (signed > 0, signed < 0):
        part = signed[side]
        signs = random.choice([-1.0, 1.0], size=(len(part), N_RESAMPLES))
        draws[side] = part[:, None] * (signs - part @ signs / (part.sum() or 1.0))
    return draws.T


class MaximumMeanDiscrepancy:
    """Two-sample tests by MMD that share the kernel matrix of all rows.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    categories : ndarray of int of shape (n, k), optional
        Their squared distance is twice the number of columns in which two rows differ, as that of
        one-hot columns would be.
    seed : int

    Attributes
    ----------
    kernel : ndarray of shape (n, n)
        The blocks on the diagonal and above; those below mirror them and are zero here.
    """

    def __init__(
        self, points: FloatArray, categories: IntArray | None = None, *, seed: int
    ) -> None:
        self.n_rows = len(points)
        self.seed = seed
        codes = np.empty((len(points), 0), np.int64) if categories is None else categories
        random = np.random.RandomState(seed)
        some = random.permutation(len(points))[:500]
        squares = pdist(points[some], "sqeuclidean") if len(some) > 1 else np.ones(1)
        if codes.shape[1] and len(some) > 1:
            squares += 2 * codes.shape[1] * pdist(codes[some], "hamming")
        typical = float(np.median(squares[squares > 0])) if (squares > 0).any() else 1.0
        kernel = GaussianKernel(np.sqrt(typical / 2))  # the median heuristic
        prepared = kernel.prepare(points)
        columns = narrow(codes)
        self.kernel = np.zeros((len(points), len(points)), dtype=np.float32)
        for here in self._diagonal_blocks():
            above = slice(here.stop)
            block = kernel.block(prepared[above], prepared[here])
            if columns:
                differing = len(columns) - count_matches(columns, columns, above, here)
                block *= np.exp(-2 / typical * differing)
            self.kernel[above, here] = block
        # So far out, the product has lost the distance to rounding.
        for row in np.flatnonzero(np.einsum("ij,ij->i", points, points) > _FAR * typical):
            far = cdist(points[[row]], points, "sqeuclidean")
            far += 2 * (codes[row] != codes).sum(axis=1)
            self.kernel[row] = self.kernel[:, row] = np.exp(-far[0] / typical)

    def permutation_test(self, sample: FloatArray, population: FloatArray) -> Comparison:
        """Test rows of equal weight on each side by swapping them, which is exact.

        If the sample were drawn uniformly, any other rows could have been in it, whether it is
        part of the population or not.

        Parameters
        ----------
        sample, population : ndarray of shape (n,)
            The mass of each row in the sample and in the population.
        """
        signed = sample / sample.sum() - population / population.sum()
        return self._result(signed, swapped(signed, self.seed))

    def wild_bootstrap_test(self, sample: FloatArray, population: FloatArray) -> Comparison:
        """Test weighted rows by random signs of their centred features (wild bootstrap).

        The weights are treated as fixed. If they were fitted to make this distance small, the test
        is conservative.
        """
        signed = sample / sample.sum() - population / population.sum()
        return self._result(signed, flipped(signed, self.seed))

    def _result(self, signed: FloatArray, null: FloatArray) -> Comparison:
        statistic = self._squared(signed[None])[0]
        rounding = 1e-6 * (statistic + np.abs(signed).sum() ** 2 / 4)
        beyond = int((self._squared(null) >= statistic - rounding).sum())
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
        for start in range(0, self.n_rows, _BLOCK_ROWS):
            yield slice(start, min(start + _BLOCK_ROWS, self.n_rows))
