r"""Kernel mean matching with weights that are a function of the row.

.. math:: w(x) = \min\bigl(B,\ c \max(0, \textstyle\sum_l \alpha_l K(x, c_l))\bigr)

With :math:`\Phi_{il} = K(x_i, c_l)`, the coefficients minimise the squared distance of the weighted
sample's mean from the population's, plus a multiple of :math:`\alpha^\top K_{cc} \alpha`, the
squared norm of the function: a linear system of the size of the number of centres. The function is
cut at zero and at the bound, and c makes its mean on the sample one. As it has a formula, it can be
judged on rows that were held out, and so the multiple, and the bandwidth, can be chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from unskew.numerics.kernels import Kernel, blocks, in_threads
from unskew.numerics.low_rank import NystromFeatures
from unskew.numerics.typing import FloatArray, IntArray

__all__ = ["InductiveProblem", "InductiveWeights", "Smoothing", "choose_smoothing"]

MOST_ROWS_EXACT = 10_000
"""Beyond, the kernel between sample rows is Nyström's approximation on the centres."""

MOST_ROWS_JUDGED = 1_000
N_FOLDS = 5
SMOOTHINGS = 10.0 ** np.arange(-9.0, 1.0)


@dataclass(frozen=True)
class InductiveWeights:
    """A weight function."""

    kernel: Kernel
    centres: FloatArray
    coefficients: FloatArray
    bound: float

    def weigh(self, points: FloatArray) -> FloatArray:
        """Return w(x) for each point."""
        values = cross_kernel(self.kernel, points, self.centres) @ self.coefficients
        return np.clip(values, 0.0, self.bound)


class InductiveProblem:
    """The linear system for the coefficients, put together once for all smoothings."""

    def __init__(
        self,
        kernel: Kernel,
        points: FloatArray,
        means: FloatArray,
        design: FloatArray,
        components: IntArray,
    ) -> None:
        self.kernel = kernel
        self.centres = points[components]
        self.design = design
        self.basis = cross_kernel(kernel, points, self.centres)
        weighted = design[:, None] * self.basis / design.sum()
        self._quadratic = weighted.T @ self._kernel_times(points, weighted)
        self._linear = weighted.T @ means
        self._penalty = self.basis[components]
        self._penalty = self._penalty * (np.trace(self._quadratic) / np.trace(self._penalty))

    def solve(self, smoothing: float, *, bound: float = np.inf) -> InductiveWeights:
        """Return the weight function for a smoothing, with mean one on the sample."""
        size = len(self._linear)
        jitter = 1e-12 * np.trace(self._quadratic) / size
        while True:
            system = self._quadratic + smoothing * self._penalty + jitter * np.eye(size)
            factor, info = lapack.dpotrf(system, lower=1)
            if info == 0:
                break
            jitter *= 100
        coefficients, _ = lapack.dpotrs(factor, self._linear, lower=1)
        coefficients = coefficients.reshape(-1)
        values = np.maximum(self.basis @ coefficients, 0.0)
        if not values.any():  # the smoothest function of all
            coefficients, values = np.ones(size), self.basis.sum(axis=1)
        scale = _mean_one_factor(values, self.design, bound)
        return InductiveWeights(self.kernel, self.centres, coefficients * scale, bound)

    def _kernel_times(self, points: FloatArray, matrix: FloatArray) -> FloatArray:
        if len(points) > MOST_ROWS_EXACT:
            features = NystromFeatures(self.kernel, self.centres).transform(points)
            return (features @ (features.T @ matrix.astype(np.float32))).astype(np.float64)
        prepared = self.kernel.prepare(points)
        product = np.empty_like(matrix)

        def multiply(part: slice) -> None:
            product[part] = self.kernel.block(prepared[part], prepared) @ matrix

        in_threads(multiply, blocks(len(points), len(points)))
        return product


class Smoothing(NamedTuple):
    """What cross-validation chose."""

    candidate: int
    smoothing: float


def choose_smoothing(
    kernels: Sequence[Kernel],
    points: FloatArray,
    means: Sequence[FloatArray],
    design: FloatArray,
    components: IntArray,
    random: np.random.RandomState,
) -> Smoothing:
    r"""Return the kernel and the smoothing with about the smallest held-out squared error.

    Of the kernels within one standard error of the best, the widest; of its smoothings, the best.

    Up to a constant, the squared distance between w and the true ratio is
    :math:`\frac12 \mathrm{mean}_S w^2 - \mathrm{mean}_U w`. The first mean is over rows that the
    fit did not see; the second needs the population's mean kernel value at the centres, which are
    sample rows, so that the one pass has brought it already. At most 1,000 rows are judged.
    """
    others = np.setdiff1d(np.arange(len(points)), components)
    rows = np.concatenate([components, random.permutation(others)])[:MOST_ROWS_JUDGED]
    folds = random.permutation(len(rows)) % min(N_FOLDS, len(rows))
    losses = np.empty((len(kernels), len(SMOOTHINGS), folds.max() + 1))
    for candidate, (kernel, mean) in enumerate(zip(kernels, means, strict=True)):
        for fold in range(folds.max() + 1):
            train, test = rows[folds != fold], rows[folds == fold]
            train = train if len(train) else test
            centres = np.flatnonzero(np.isin(train, components))
            centres = centres if len(centres) else np.arange(len(train))
            problem = InductiveProblem(kernel, points[train], mean[train], design[train], centres)
            for place, smoothing in enumerate(SMOOTHINGS):
                fitted = problem.solve(smoothing)
                square = np.average(fitted.weigh(points[test]) ** 2, weights=design[test])
                losses[candidate, place, fold] = (
                    0.5 * square - mean[train][centres] @ fitted.coefficients
                )
    return _widest_of_the_best(losses)


def _widest_of_the_best(losses: FloatArray) -> Smoothing:
    """Return the widest kernel within one standard error of the best, with its own smoothing."""
    best = np.unravel_index(np.argmin(losses.mean(axis=2)), losses.shape[:2])
    behind = losses - losses[best]
    error = behind.std(axis=2) / np.sqrt(max(1, losses.shape[2] - 1))
    candidate = int(np.argwhere(behind.mean(axis=2) <= error)[-1][0])
    return Smoothing(candidate, float(SMOOTHINGS[losses[candidate].mean(axis=1).argmin()]))


def cross_kernel(kernel: Kernel, points: FloatArray, centres: FloatArray) -> FloatArray:
    """Return the kernel between points and centres in double precision."""
    prepared = kernel.prepare(centres)
    values = np.empty((len(points), len(centres)))

    def fill(part: slice) -> None:
        values[part] = kernel.block(kernel.prepare(points[part]), prepared)

    in_threads(fill, blocks(len(points), len(centres)))
    return values


def _mean_one_factor(weights: FloatArray, design: FloatArray, bound: float) -> float:
    """Return the factor f for which min(f w, bound) has mean one, by bisection."""
    factor = float(1.0 / np.average(weights, weights=design))
    if (factor * weights).max() <= bound:
        return factor
    low, high = factor, factor * 2.0**60
    for _ in range(200):
        middle = float(np.sqrt(low * high))
        if np.average(np.minimum(middle * weights, bound), weights=design) < 1:
            low = middle
        else:
            high = middle
    return high
