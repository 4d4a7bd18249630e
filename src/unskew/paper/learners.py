r"""The learners that evaluate the weights: the paper's SVR, and any estimator of scikit-learn.

A learner takes a sample, its labels and the test rows, and returns a function from weights to
predictions: what does not depend on the weights is then done once for all methods. Any estimator of
scikit-learn can be added to ``LEARNERS``:

    LEARNERS["ridge"] = estimator(Ridge())

On inputs in [0, 1] the SVR's kernel exp(-‖x - x'‖² / d) is so smooth that a kernel matrix of
thousands of rows has a numerical rank of hundreds: K = L Lᵀ with few columns. LIBSVM makes many
steps, each for two rows of K. Where the rank is low, an interior point method takes its place: some
twenty steps, each of which solves a system as large as the rank. With c the weights (C times the
sample weight), the program is

.. math:: \min_{v, b}\ \tfrac12 \|v\|^2 + \sum_i c_i \max(0, |y_i - L_i v - b| - \varepsilon)

and its dual has :math:`0 \le \alpha_i, \alpha^*_i \le c_i`, :math:`v = L^T(\alpha - \alpha^*)` and
:math:`\sum_i \alpha_i = \sum_i \alpha^*_i`. The gap between the two bounds the error of a
prediction: the objective is strongly convex in v, so that
:math:`|\varphi(x)^T(v - v^\circ)| \le \|\varphi(x)\| \sqrt{2\,\mathrm{gap}}`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.blas import dsyrk
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR

from unskew.errors import UnskewError
from unskew.paper.methods import Array, kernel_width

GAP = 1e-7
"""Where the method stops: predictions are then within √(2e-7) = 4.5e-4 of the optimum's.

In units of the largest target squared, where that is above 1."""

FEASIBLE = 1e-6
"""The largest residual of an equation, in units of the largest target or above."""

DAMPING = 1e-10
"""Added to the diagonal of K in a step, not in what is solved: far below the factor's own error,
and enough for b, since the constant is almost in the span of L."""

MAX_STEPS = 200


class KernelFactor(NamedTuple):
    """A pivoted Cholesky factor of a Gaussian kernel matrix, and what extends it to other rows."""

    L: Array
    pivots: Array
    block: Array
    gamma: float

    def of_rows(self, rows: Array) -> Array:
        """Return the features φ of other rows: φ(x)ᵀL_i is the kernel of x and row i."""
        kernel = _gaussian(self.pivots, rows, self.gamma)
        return solve_triangular(self.block, kernel, lower=True, overwrite_b=True).T


def factor_kernel(
    rows: Array, *, gamma: float, tolerance: float, max_rank: int
) -> KernelFactor | None:
    """Return L with K - L Lᵀ at most ``tolerance`` in each entry, or None if the rank is higher.

    The remainder is positive semidefinite, so that its largest entry stands on its diagonal.
    """
    left = np.ones(len(rows))
    L = np.zeros((max_rank, len(rows)))
    pivots: list[int] = []
    while left.max() > tolerance:
        rank, pivot = len(pivots), int(left.argmax())
        if rank == max_rank:
            return None
        column = _gaussian(rows[[pivot]], rows, gamma)[0] - L[:rank, pivot] @ L[:rank]
        L[rank] = column / np.sqrt(left[pivot])
        left = np.maximum(left - L[rank] ** 2, 0.0)
        left[pivot] = 0.0
        pivots.append(pivot)
    L = np.ascontiguousarray(L[: len(pivots)].T)
    return KernelFactor(L, rows[pivots], np.tril(L[pivots]), gamma)


def _gaussian(first: Array, second: Array, gamma: float) -> Array:
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)
    squares -= 2.0 * first @ second.T
    np.maximum(squares, 0.0, out=squares)
    squares *= -gamma
    return np.exp(squares, out=squares)


def fit_on_factor(
    L: Array, y: Array, weights: Array, *, epsilon: float = 0.1
) -> tuple[Array, float]:
    """Return v and b of the optimum, for positive weights."""
    return _RegressionInteriorPoint(L, y, weights, epsilon).solve()


class _RegressionInteriorPoint:
    """Mehrotra's predictor and corrector.

    ``alpha`` has the rows of α and then those of α*, ``left`` is c - α; ``lower`` and ``upper``
    are the multipliers of 0 ≤ α and of α ≤ c.
    """

    def __init__(self, L: Array, y: Array, weights: Array, epsilon: float) -> None:
        self.L, self.y, self.epsilon, self.m = L, y, epsilon, len(y)
        self.scale = max(1.0, float(np.abs(y).max()))
        self.sign = np.repeat([1.0, -1.0], self.m)
        self.alpha = np.tile(weights / 2.0, 2)
        self.left = self.alpha.copy()
        self.v, self.b = np.zeros(L.shape[1]), float(np.median(y))
        slack = self.sign * np.tile(self.b - y, 2) + epsilon
        self.upper = np.maximum(-slack, 0.0) + 0.1
        self.lower = slack + self.upper

    def solve(self) -> tuple[Array, float]:
        for _ in range(MAX_STEPS):
            beta = self.alpha[: self.m] - self.alpha[self.m :]
            f = self.L @ self.v + self.b
            outside = self.sign * np.tile(f - self.y, 2) + self.epsilon
            self.residual = outside + self.upper - self.lower
            self.off_v, self.off_b = self.L.T @ beta - self.v, float(beta.sum())
            gap = float(self.alpha @ self.lower + self.left @ self.upper)
            off = (np.abs(part).max() for part in (self.residual, self.off_v, self.off_b))
            if gap < GAP * self.scale**2 and max(off) < FEASIBLE * self.scale:
                return self.v, self.b
            self._step(gap)
        raise UnskewError(f"The SVR has a gap of {gap:.1e} after {MAX_STEPS} steps.")

    def _step(self, gap: float) -> None:
        self.spread = 1.0 / (self.lower / self.alpha + self.upper / self.left + DAMPING)
        self.system = self._factored_system()
        _, d_alpha, d_lower, d_upper = self._towards(
            -self.alpha * self.lower, -self.left * self.upper
        )
        length = self._longest(d_alpha, d_lower, d_upper)
        affine = (self.alpha + length * d_alpha) @ (self.lower + length * d_lower)
        affine += (self.left - length * d_alpha) @ (self.upper + length * d_upper)
        centre = (float(affine) / gap) ** 3 * gap / (4 * self.m)
        change, d_alpha, d_lower, d_upper = self._towards(
            centre - self.alpha * self.lower - d_alpha * d_lower,
            centre - self.left * self.upper + d_alpha * d_upper,
        )
        length = min(1.0, 0.995 * self._longest(d_alpha, d_lower, d_upper))
        self.v = self.v + length * change[:-1]
        self.b += length * float(change[-1])
        self.alpha = self.alpha + length * d_alpha
        self.left = self.left - length * d_alpha
        self.lower = self.lower + length * d_lower
        self.upper = self.upper + length * d_upper

    def _factored_system(self) -> Any:
        """Return the Cholesky factor of I + LᵀHL, bordered by that of b."""
        rank = self.L.shape[1]
        h = self.spread[: self.m] + self.spread[self.m :]
        scaled = np.column_stack([self.L, np.ones(self.m)]) * np.sqrt(h)[:, None]
        system = dsyrk(1.0, scaled.T)  # the upper triangle of scaledᵀ scaled
        system[np.diag_indices(rank)] += 1.0
        return cho_factor(system, check_finite=False)

    def _towards(self, r_lower: Array, r_upper: Array) -> tuple[Array, Array, Array, Array]:
        """Return Newton's step for given right-hand sides of α·lower and left·upper."""
        q = self.spread * (r_lower / self.alpha - r_upper / self.left - self.residual)
        g = q[: self.m] - q[self.m :]
        right = np.append(self.L.T @ g + self.off_v, g.sum() + self.off_b)
        change = cho_solve(self.system, right, check_finite=False)
        moved = self.L @ change[:-1] + change[-1]
        d_alpha = q - self.sign * self.spread * np.tile(moved, 2)
        d_lower = (r_lower - self.lower * d_alpha) / self.alpha
        d_upper = (r_upper + self.upper * d_alpha) / self.left
        return change, d_alpha, d_lower, d_upper

    def _longest(self, d_alpha: Array, d_lower: Array, d_upper: Array) -> float:
        """Return the longest step, up to 1 / 0.995, that keeps every value positive."""
        rates = (
            d_alpha / self.alpha,
            -d_alpha / self.left,
            d_lower / self.lower,
            d_upper / self.upper,
        )
        return 1.0 / max(0.995, *(-float(rate.min()) for rate in rates))


Trained = Callable[[Array], Array]
Learner = Callable[[Array, Array, Array], Trained]

CACHE_MEGABYTES = 1000

RANK_TOLERANCE = 1e-7
"""The largest error of an entry of the kernel matrix; predictions are then nearer to the optimum
than those of LIBSVM, which stops at a violation of 1e-3."""

ROWS_A_RANK = 30
"""How many rows a rank must stand for: with fewer, LIBSVM is faster."""


def paper_svr(sample: Array, labels: Array, test: Array) -> Trained:
    """Return the paper's SVR: C = 1, ε = 0.1, Gaussian kernel with σ = √(d/2), by LIBSVM."""
    return gaussian_svr(sample, labels, test, width=kernel_width(sample.shape[1]))


def gaussian_svr(sample: Array, labels: Array, test: Array, *, width: float) -> Trained:
    """Return ``SVR(C=1, epsilon=0.1)`` with a kernel that is computed once for all weights.

    Where the kernel matrix has a low rank, it is never made: see :func:`factor_kernel`.
    """
    gamma = 1.0 / (2.0 * width**2)
    factor = factor_kernel(
        sample, gamma=gamma, tolerance=RANK_TOLERANCE, max_rank=len(sample) // ROWS_A_RANK
    )
    if factor is not None:
        return _on_factor(factor, labels, factor.of_rows(test))
    kernel, test_kernel = rbf_kernel(sample, gamma=gamma), rbf_kernel(test, sample, gamma=gamma)

    def predict(weights: Array) -> Array:
        # A row of weight zero has no part in the solution. LIBSVM drops such rows by itself, but
        # then scikit-learn's predict takes the wrong columns of a kernel that is given as a matrix.
        kept = np.flatnonzero(weights)
        among, against = kernel, test_kernel
        if len(kept) < len(weights):
            among, against = kernel[np.ix_(kept, kept)], test_kernel[:, kept]
        svr = SVR(kernel="precomputed", C=1.0, epsilon=0.1, cache_size=CACHE_MEGABYTES)
        svr.fit(among, labels[kept], sample_weight=weights[kept])
        return np.asarray(svr.predict(against))

    return predict


def _on_factor(factor: KernelFactor, labels: Array, features: Array) -> Trained:
    def predict(weights: Array) -> Array:
        kept = np.flatnonzero(weights)
        among = factor.L if len(kept) == len(weights) else factor.L[kept]
        v, b = fit_on_factor(among, labels[kept], weights[kept])
        return np.asarray(features @ v + b)

    return predict


def estimator(prototype: Any) -> Learner:
    """Return a learner that trains clones of a scikit-learn estimator."""

    def learner(sample: Array, labels: Array, test: Array) -> Trained:
        def predict(weights: Array) -> Array:
            fitted = clone(prototype).fit(sample, labels, sample_weight=weights)
            return np.asarray(fitted.predict(test))

        return predict

    return learner


LEARNERS: dict[str, Learner] = {"svr": paper_svr}
