r"""Kernel mean matching with weights that are a function of the row.

.. math:: w(x) = \textstyle\sum_l \alpha_l K(x, c_l)

With :math:`\Phi_{il} = K(x_i, c_l)`, the coefficients minimise the squared distance of the weighted
sample's mean from the population's, plus a multiple of :math:`\alpha^\top K_{cc} \alpha`, the
squared norm of the function, with :math:`0 \le w(x_i) \le B` on the sample and a mean of one there.
The dual of this program has one entry for each constraint and the shape of
:mod:`~unskew.numerics.box_simplex`. Elsewhere the function is clipped to [0, B].

Because the weights are a function, they can be evaluated on held-out rows, which allows choosing
the multiple and the kernel by cross-validation. During that choice, the constraints are met by
clipping alone, which leaves a linear system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular
from scipy.stats import chi2

from unskew.numerics.box_simplex import BlockMatrix, BoxSimplex, Certificate
from unskew.numerics.exchange import solve_by_exchange
from unskew.numerics.kernels import Kernel, blocks, fill_matrix, in_threads
from unskew.numerics.low_rank import NystromFeatures
from unskew.numerics.typing import FloatArray, IntArray

MOST_ROWS_EXACT = 10_000
"""Beyond, the kernel between sample rows is Nyström's approximation on the centres."""

MOST_ROWS_JUDGED = 1_000
"""Rows of the sample at most that cross-validation uses, to bound its time: it solves as many
systems as there are kernels, smoothings and folds. Not tuned."""

N_FOLDS = 5
"""The usual number. Not tuned."""

SMOOTHINGS = 10.0 ** np.arange(-9.0, 1.0)
"""The multiples among which cross-validation chooses, relative to the size of the quadratic form:
from hardly any smoothing to an almost constant function."""

_TOLERANCE = 1e-6
"""Of the dual, whose solution gives the weights to about six digits."""

_FARTHEST = 1e100
"""Differences of means beyond this, in standard deviations, are as good as this."""

_NO_BOUND = 1e4
"""The upper bound of a dual variable, which has none; a solution there means that no function of
these centres meets the constraints. The dual is scaled so that the diagonal of its matrix is about
1. Not tuned."""


@dataclass(frozen=True)
class InductiveWeights:
    r"""A weight function, :math:`a + (1 - a) \sum_l \alpha_l K(x, c_l)` within bounds.

    Attributes
    ----------
    low, high : ndarray of shape (d,)
        The sample's range; outside it the function keeps its value at the edge.
    bound : float
        The largest weight, never above the sample's own.
    even : float
        The share a of uniform weights; zero unless nothing else meets the bound.
    """

    kernel: Kernel
    centres: FloatArray
    coefficients: FloatArray
    low: FloatArray
    high: FloatArray
    bound: float
    even: float = 0.0

    def with_mean_one(self, values: FloatArray, design: FloatArray) -> InductiveWeights:
        """Return the function scaled to a mean of one within the bound.

        ``values`` are those of the sample rows, not negative and not all zero.
        """
        scale = _mean_one_factor(values, design, self.bound)
        bound = min(self.bound, scale * float(values.max()))
        return replace(self, coefficients=self.coefficients * scale, bound=bound)

    def weigh(self, points: FloatArray) -> FloatArray:
        """Return w(x) for each point."""
        points = np.clip(points, self.low, self.high)
        return self.at(cross_kernel(self.kernel, points, self.centres))

    def weigh_block(self, points: FloatArray) -> FloatArray:
        """Return w(x) for a few points, without threads."""
        prepared = self.kernel.prepare(np.clip(points, self.low, self.high))
        return self.at(self.kernel.block(prepared, self.kernel.prepare(self.centres)))

    def at(self, basis: FloatArray) -> FloatArray:
        """Return w(x) from the kernel between points and centres."""
        values = np.maximum(basis @ self.coefficients, 0.0)
        return np.minimum(self.even + (1 - self.even) * values, self.bound)


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
        self.points = points
        self.centres = points[components]
        self.design = design
        self.basis = cross_kernel(kernel, points, self.centres)
        weighted = design[:, None] * self.basis / design.sum()
        self._quadratic = weighted.T @ self._kernel_times(points, weighted)
        self._linear = weighted.T @ means
        self._penalty = self.basis[components]
        self._penalty = self._penalty * (np.trace(self._quadratic) / np.trace(self._penalty))

    def solve_cut(self, smoothing: float) -> InductiveWeights:
        """Return the function without its constraints, clipped at zero and scaled to mean one."""
        return self._with_mean_one(_solve_factored(self._factor(smoothing), self._linear), np.inf)

    def solve(self, smoothing: float, bound: float) -> tuple[InductiveWeights, Certificate]:
        """Return the function that meets the constraints, and the certificate of their dual.

        Where no function of these centres meets them, it is the clipped one, mixed with uniform
        weights until it meets the bound; the certificate has then not converged.
        """
        # 1) The minimiser without bounds, moved to a mean of one.
        factor = self._factor(smoothing)
        shares = self.design @ self.basis / self.design.sum()
        free, mean = (_solve_factored(factor, side) for side in (self._linear, shares))
        pull = shares @ mean
        middle = free + mean * ((1 - shares @ free) / pull)  # of mean one, not yet within bounds
        # 2) The dual: a price for each bound of each row. It has the shape of BoxSimplex.
        half = solve_triangular(factor, self.basis.T, lower=True)
        # The part of each constraint that moves the function without moving its mean.
        straight = solve_triangular(factor, shares, lower=True) / np.sqrt(pull)
        half -= np.outer(straight, straight @ half)
        scale = float(np.sqrt(np.mean(np.einsum("li,li->i", half, half)))) or 1.0
        values = self.basis @ middle
        dual: BoxSimplex[BlockMatrix] = BoxSimplex(
            _GramMatrix(np.hstack([half, -half]).T / scale),
            np.concatenate([-values, values - bound]),
            np.full(2 * len(values), _NO_BOUND),
            (0.0, _NO_BOUND * len(values)),
        )
        prices, certificate = solve_by_exchange(
            dual, tolerance=_TOLERANCE, start=np.zeros(2 * len(values)), max_iterations=200
        )
        if not certificate.converged:  # too few centres to meet the constraints
            return self._mixed(free, bound), certificate
        # 3) From prices back to the function.
        pushes = half @ (prices[: len(values)] - prices[len(values) :]) / scale**2
        found = self._with_mean_one(
            middle + solve_triangular(factor, pushes, lower=True, trans="T"), bound
        )
        weights = found.at(self.basis)
        # 4) The certificate. The gap is complementary slackness: zero where each bound is met
        #    exactly or has no price.
        gap = prices @ np.concatenate([weights, bound - weights]) / scale**2
        objective = found.coefficients @ (0.5 * self._quadratic @ found.coefficients - self._linear)
        size = self.design.sum()
        certificate = replace(
            certificate,
            objective=float(size**2 * objective),
            gap=float(size**2 * gap),
            bound_residual=max(float(weights.max()) - bound, 0.0),
            sum_residual=abs(float(np.average(weights, weights=self.design)) - 1),
        )
        if max(certificate.bound_residual, certificate.sum_residual) <= _TOLERANCE * bound:
            return found, certificate
        # 5) Prices may be at their own limit, which solves the dual and not the program.
        return self._mixed(free, bound), replace(certificate, converged=False)

    def _factor(self, smoothing: float) -> FloatArray:
        """Return the Cholesky factor of the quadratic form, with as little jitter as it needs."""
        size = len(self._linear)
        jitter = 1e-12 * np.trace(self._quadratic) / size
        while True:
            system = self._quadratic + smoothing * self._penalty + jitter * np.eye(size)
            factor, info = lapack.dpotrf(system, lower=1, clean=1)
            if info == 0:
                return factor
            jitter *= 100

    def _with_mean_one(self, coefficients: FloatArray, bound: float) -> InductiveWeights:
        values = np.maximum(self.basis @ coefficients, 0.0)
        if not values.any():  # the smoothest function of all
            coefficients = np.ones(len(coefficients))
            values = np.maximum(self.basis.sum(axis=1), 0.0)
        found = InductiveWeights(
            self.kernel,
            self.centres,
            coefficients,
            self.points.min(axis=0),
            self.points.max(axis=0),
            bound,
        )
        return found.with_mean_one(values, self.design)

    def _mixed(self, coefficients: FloatArray, bound: float) -> InductiveWeights:
        """Return the clipped function, mixed with as much uniform weight as the bound needs."""
        cut = self._with_mean_one(coefficients, np.inf)
        even = max(0.0, (cut.bound - bound) / max(cut.bound - 1.0, 1e-300))
        return replace(cut, bound=min(bound, cut.bound), even=min(even, 1.0))

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


class _GramMatrix(BlockMatrix):
    """F Fᵀ of an F in double precision with few columns."""

    def __init__(self, features: FloatArray) -> None:
        self.features = features
        self.size = len(features)

    def exact_product(self, vector: FloatArray) -> FloatArray:
        return self.features @ (self.features.T @ vector)

    def quick_product(self, vector: FloatArray) -> FloatArray:
        return self.exact_product(vector)

    def block(
        self,
        rows: IntArray,
        columns: IntArray,
        *,
        exact: bool,  # noqa: ARG002
        lower: bool = False,  # noqa: ARG002
    ) -> FloatArray:
        return self.features[rows] @ self.features[columns].T


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
    smoothings: FloatArray = SMOOTHINGS,
) -> Smoothing:
    r"""Return the kernel and the smoothing with about the smallest held-out squared error.

    Of the kernels within one standard error of the best, the last; of its smoothings, the best.

    Up to a constant, the squared distance between w and the true ratio is
    :math:`\frac12 \mathrm{mean}_S w^2 - \mathrm{mean}_U w`. The first mean is over rows that the
    fit did not see; the second needs the population's mean kernel value at the centres, which are
    sample rows, so that it is known from the one pass. At most 1,000 rows are used.
    """
    # 1) Choose rows, centres first, and split them into folds.
    others = np.setdiff1d(np.arange(len(points)), components)
    rows = np.concatenate([components, random.permutation(others)])[:MOST_ROWS_JUDGED]
    folds = random.permutation(len(rows)) % min(N_FOLDS, len(rows))
    # 2) The held-out loss of each kernel and smoothing.
    losses = np.empty((len(kernels), len(smoothings), folds.max() + 1))
    for candidate, (kernel, mean) in enumerate(zip(kernels, means, strict=True)):
        for fold in range(folds.max() + 1):
            train, test = rows[folds != fold], rows[folds == fold]
            train = train if len(train) else test
            centres = np.flatnonzero(np.isin(train, components))
            centres = centres if len(centres) else np.arange(len(train))
            problem = InductiveProblem(kernel, points[train], mean[train], design[train], centres)
            for place, smoothing in enumerate(smoothings):
                fitted = problem.solve_cut(smoothing)
                square = np.average(fitted.weigh(points[test]) ** 2, weights=design[test])
                losses[candidate, place, fold] = (
                    0.5 * square - mean[train][centres] @ fitted.coefficients
                )
    # 3) Of those that are as good as the best, the simplest.
    return simplest_of_the_best(losses, smoothings)


def simplest_of_the_best(losses: FloatArray, smoothings: FloatArray) -> Smoothing:
    """Return the last candidate within one standard error of the best, with its own smoothing.

    Candidates come from the narrowest to the widest kernel, then those with stretched columns, or
    with a tilt, likewise.
    """
    best = np.unravel_index(np.argmin(losses.mean(axis=2)), losses.shape[:2])
    behind = losses - losses[best]
    error = behind.std(axis=2) / np.sqrt(max(1, losses.shape[2] - 1))
    candidate = int(np.argwhere(behind.mean(axis=2) <= error)[-1][0])
    return Smoothing(candidate, float(smoothings[losses[candidate].mean(axis=1).argmin()]))


def cross_kernel(kernel: Kernel, points: FloatArray, centres: FloatArray) -> FloatArray:
    """Return the kernel between points and centres in double precision."""
    values = np.empty((len(points), len(centres)))
    return fill_matrix(kernel, kernel.prepare(points), kernel.prepare(centres), values)


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


def _solve_factored(factor: FloatArray, right: FloatArray) -> FloatArray:
    solved, _ = lapack.dpotrs(factor, right, lower=1)
    return np.asarray(solved).reshape(-1)


def column_stretches(
    points: FloatArray, design: FloatArray, others: FloatArray, weight: FloatArray
) -> FloatArray:
    r"""Return how much each column differs between two sets of points, at most one.

    Differences of mean and of log spread, in standard errors, add up to about a chi-squared with
    two degrees of freedom where there are none; what exceeds its 99 % quantile counts. If nothing
    does, all columns are treated alike.
    """
    design, weight = design / design.max(), weight / weight.max()  # so that squares are numbers
    error = sum(np.sum(w**2) / np.sum(w) ** 2 for w in (design, weight))
    sides = ((points, design), (others, weight))
    with np.errstate(over="ignore", invalid="ignore"):  # far is far
        means = [np.nan_to_num(np.average(p, axis=0, weights=w)) for p, w in sides]
        spreads = [
            np.nan_to_num(np.sqrt(np.average((p - mean) ** 2, axis=0, weights=w)))
            for (p, w), mean in zip(sides, means, strict=True)
        ]
    apart = (means[1] - means[0]) / np.where(spreads[0] > 0, spreads[0], 1.0)
    known = (spreads[0] > 0) & (spreads[1] > 0)
    wider = np.log(np.where(known, spreads[1], 1.0) / np.where(known, spreads[0], 1.0))
    apart = np.clip(apart, -_FARTHEST, _FARTHEST)
    excess = np.maximum((apart**2 + 2 * wider**2) / error - chi2(2).ppf(0.99), 0.0)
    return np.sqrt(excess / excess.max()) if excess.any() else np.ones(len(apart))
