"""Kernel mean matching: exact, or of low rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from unskew.errors import ParameterError, warn_caller
from unskew.numerics.cores import one_blas_thread
from unskew.numerics.kernel_matrix import KernelMatrix, LowRankMatrix, NystromFeatures
from unskew.numerics.kernels import FARTHEST, CustomKernel, GaussianKernel, Kernel, LaplaceKernel
from unskew.numerics.quadratic import BoxSimplex, solve_by_exchange, solve_by_gradient_steps
from unskew.numerics.row_keys import distinct_points
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.kernel_sums import KernelSums, sum_of_waves
from unskew.population.summaries import About, Question, Summary
from unskew.rows.design import Design, Scaling
from unskew.rows.sample import Sample
from unskew.weighters.base import Weighter
from unskew.weighters.parameters import AtLeastZero, BelowOne, OneOrMore, Positive

FAMILIES: dict[str, Any] = {"gaussian": GaussianKernel, "laplace": LaplaceKernel}

N_FREQUENCIES = 256


@dataclass(frozen=True)
class KernelPoints:
    """The distinct points of the sample rows that count.

    Rows at the same point are one entry of a kernel program.

    Attributes
    ----------
    space : Design
    centre : ndarray of shape (d,)
        Subtracted from all points: single precision then keeps more digits.
    points : ndarray of shape (k, d)
    rows : ndarray of int
        The sample rows with a positive design weight, in canonical order.
    place : ndarray of int
        The point of each of these rows.
    """

    space: Design
    centre: FloatArray
    points: FloatArray
    rows: IntArray
    place: IntArray

    @classmethod
    def from_sample(cls, sample: Sample, scaling: Scaling, *, centred: bool) -> KernelPoints:
        """Return the points; a kernel that is not one of differences must not be centred."""
        rows = sample.order[sample.design[sample.order] > 0]
        counted = sample.ordered if len(rows) == len(sample) else sample.take(rows)
        space, points = counted.points(scaling)
        space.check_distances(points, side="sample")
        points, place = distinct_points(points)
        centre = points.mean(axis=0) if centred else np.zeros(points.shape[1])
        return cls(space, centre, points - centre, rows, place)

    def design(self, sample: Sample) -> FloatArray:
        """Return the design weight of each point, scaled to a mean of one over the rows."""
        design = np.bincount(self.place, weights=sample.design[self.rows])
        return design * (len(self.rows) / design.sum())

    def of_sample(self, positions: IntArray) -> IntArray:
        """Return the point of sample rows at these positions, which count."""
        places = np.zeros(int(self.rows.max()) + 1, dtype=np.int64)
        places[self.rows] = self.place
        return places[positions]

    def of_rows(self, weights: FloatArray, sample: Sample) -> FloatArray:
        """Spread the weights of points over the rows, in proportion to their design weights."""
        design = self.design(sample)[self.place]
        by_row = weights[self.place] * sample.design[self.rows]
        spread = np.zeros(len(sample))
        spread[self.rows] = np.divide(by_row, design, out=np.zeros_like(by_row), where=design > 0)
        return spread

    def locate(self, batch: Any, *, side: str) -> FloatArray:
        """Return other rows as points."""
        values = self.space.transform(batch, side=side).values - self.centre
        return np.clip(values, -FARTHEST, FARTHEST)

    def distances(self, *weights: FloatArray, answer: KernelSums) -> list[float]:
        """Estimate the distance between the sample, with each of the weights, and the population.

        It uses random frequencies that no solver has seen; NaN for a custom kernel.
        """
        if answer.frequencies is None:
            return [float("nan")] * len(weights)
        sides = np.array(weights)
        with one_blas_thread():  # each product is too small to be shared
            of_sample = sum_of_waves(self.points, sides, answer.frequencies)
        apart = of_sample / sides.sum(axis=1, keepdims=True) - answer.waves / answer.mass
        return np.sqrt(np.mean(np.abs(apart) ** 2, axis=1)).tolist()


def one_kernel(
    kernel: str | Callable[[Any, Any], Any],
    bandwidth: float | str,
    points: FloatArray,
    random: np.random.RandomState,
) -> Kernel:
    """Return the kernel that a name or function and a bandwidth describe."""
    if not isinstance(kernel, str):
        return CustomKernel(kernel)
    family = FAMILIES[kernel]
    if bandwidth == "paper":
        n_columns = points.shape[1]
        # γ = 1/d in exp(-γ‖x - y‖²), and in exp(-γ‖x - y‖₁).
        return family(float(np.sqrt(n_columns / 2) if kernel == "gaussian" else n_columns))
    if isinstance(bandwidth, Real):
        return family(float(bandwidth))
    return family(median_distance(kernel, points, random))


def median_distance(kernel: str, points: FloatArray, random: np.random.RandomState) -> float:
    """Return the median distance between 1,000 of the points in the kernel's metric, never zero."""
    few = points[random.permutation(len(points))[:1000]]
    power = 1 if kernel == "laplace" else 2
    distances = pdist(few, "minkowski", p=power) if len(few) > 1 else np.ones(1)
    return float(np.median(distances)) or float(distances.max()) or 1.0


MOST_ROWS_EXACT = 20_000
"""The largest sample for which method="auto" is exact."""

LARGEST_TOLERANCE = 1e-3
"""Of the optimality conditions by default, as in LIBSVM."""

LEAST_REGULAR = 1e-4
"""The ridge from which on single precision can factor every block of the kernel matrix: its largest
eigenvalue is some thousands, of which 6e-8 is rounding."""


class KernelMeanMatching(Weighter):
    r"""Weights under which the sample's mean in a kernel's feature space matches the population's.

    Huang, Smola, Gretton, Borgwardt and Schölkopf (2006), as the paper states it, with a ridge ρ:

    .. math:: \min_\gamma \Bigl\lVert \frac1m \sum_i \gamma_i \Phi(x_i)
              - \frac1n \sum_j \Phi(x'_j) \Bigr\rVert^2
              + \frac{\rho}{m^2} \sum_i \gamma_i^2, \qquad
              0 \le \gamma_i \le B, \quad
              \Bigl\lvert \frac1m \sum_i \gamma_i - 1 \Bigr\rvert \le \epsilon

    that is, :math:`\min \tfrac12 \gamma^\top (K + \rho I) \gamma - \kappa^\top \gamma` with
    :math:`\kappa_i = \frac mn \sum_j K(x_i, x'_j)`.

    Parameters
    ----------
    bandwidth : {"paper", "median"} or float, default="paper"
        The kernel's σ. "paper" is :math:`\sqrt{d/2}` for d features, that is
        :math:`\exp(-\lVert x - y \rVert^2 / d)`, and d for the Laplace kernel; "median" the median
        distance between 1,000 distinct sample rows, in the kernel's own metric.
    scaling : {"standard", "range", None}, default="standard"
        How numbers are scaled before distances are taken: to mean 0 and variance 1 on the sample,
        to [0, 1], or not at all. It determines what a bandwidth means: with ``None``, columns in
        large units dominate the others.
    precision : {"single", "double"}, default="single"
        The precision of the population's kernel values; they are added up in double precision in
        either case. Where sample points are more than 30 bandwidths from the centre, double is
        used; see ``precision_``.
    kernel : {"gaussian", "laplace"} or callable, default="gaussian"
        A callable takes two matrices of rows and returns the matrix of a positive definite kernel;
        ``bandwidth`` is then not used.
    bound : float, default=1000.0
        The largest weight B before weights are scaled to ``total``; without slack their mean is one
        at that point.
    slack : float, default=0.0
        The paper's ε: how far the mean weight may be from one before it is scaled to ``total``.
    ridge : float, default=0.001
        ρ, in units of K(x, x), which is one for the Gaussian and the Laplace kernel. More makes
        weights more equal; the result is kernel balancing. Zero is the paper's program, which
        determines the mean but hardly the weights: many of them match it equally well up to
        rounding, and which of these results depends on the last bits of the population's sums, so
        on the order of its rows and on the processor. The default determines them: they are the
        same to about 1e-4 of their sum, whatever the population's form.
    method : {"auto", "exact", "low-rank"}, default="auto"
        "exact" solves the program. "low-rank" solves it for Nyström's approximation of the kernel
        with ``n_components`` landmarks drawn from the sample, for samples of any size. "auto" is
        exact up to 20,000 rows.
    n_components : int, default=512
        The number of landmarks.
    tolerance : float, optional
        The largest violation of the optimality conditions, in units of the gradient
        :math:`(K + \rho I) \gamma - \kappa`, as in LIBSVM. A violation τ leaves weights open by
        about τ/ρ: the default is a hundredth of the ridge, at most 1e-3, and 1e-3 without a ridge.
        With low rank it is at least 1e-4 of κ's mean, far below the error of the approximation
        itself.
    memory : float, default=2**31
        Bytes that the rows of the kernel matrix may take which an exact solution needs again and
        again. If not all of them fit, a quarter of it is used, and the others are computed each
        time. The square block of the rows with positive weight is held as well, to solve with it.
    max_iterations : int, default=5000
        Rounds of the exact solver, which rarely needs more than fifty, or gradient steps with low
        rank. Reaching it gives a warning with the remaining duality gap.
    <Weighter parameters>
        It draws landmarks and frequencies.

    Attributes
    ----------
    <Weighter attributes>
    method_ : str
        The method that was used.
    bandwidth_ : float
        The bandwidth that was used; NaN for a custom kernel.
    certificate_ : BoxCertificate
        Objective, duality gap, violation of the optimality conditions, residuals of the
        constraints, iterations. With low rank, of the approximate program.
    precision_ : str
        The precision that was used.
    mmd_before_, mmd_after_ : float
        The distance of the sample from the population in the kernel's feature space, without and
        with the weights, estimated from 256 random frequencies that the solver did not use; NaN for
        a custom kernel.
    mmd_outside_ : float
        With low rank, the part of ``mmd_after_`` that the landmarks cannot represent, whatever the
        weights.
    uncovered_ : float
        The share of the population that holds unseen values, or at which the kernel of every sample
        row (every landmark with low rank) is below 0.01. For a custom kernel, which has no scale,
        only unseen values count.

    Notes
    -----
    Design weights d of the sample, scaled to mean one, and v of the population enter as
    :math:`w_i = d_i \gamma_i`: :math:`\kappa_i = m \sum_u v_u K(x_i, u) / \sum_u v_u`,
    :math:`0 \le w_i \le B d_i`, :math:`\sum_i w_i = m`, and the ridge is on
    :math:`\sum_i w_i^2 / d_i`. Rows at the same point share its weight in proportion to their d.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import KernelMeanMatching
    >>> random = np.random.RandomState(0)
    >>> sample, population = random.normal(0, 1, (300, 1)), random.normal(0.5, 1, (400, 1))
    >>> weighter = KernelMeanMatching().fit(sample, population=population)
    >>> weighter.method_, weighter.certificate_.converged
    ('exact', True)
    >>> weighter.mmd_after_ < 0.1 * weighter.mmd_before_
    True
    """

    bandwidth: Positive | Literal["paper", "median"] = "paper"
    scaling: Scaling = "standard"
    kernel: Literal["gaussian", "laplace"] | Callable[[Any, Any], Any] = "gaussian"
    bound: Positive = 1000.0
    precision: Literal["single", "double"] = "single"
    slack: BelowOne = 0.0
    ridge: AtLeastZero = 1e-3
    method: Literal["auto", "exact", "low-rank"] = "auto"
    n_components: OneOrMore = 512
    tolerance: Positive | None = None
    memory: AtLeastZero = 2**31
    max_iterations: OneOrMore = 5000

    traits = replace(
        Weighter.traits,
        assumes=(
            "selection depends on the columns alone, and the kernel's feature space holds the true "
            "weights"
        ),
        uncovered_means=(
            "the share of the population that holds unseen values, or at which the kernel of every "
            "sample row is below 0.01"
        ),
        judged_by="trees",
        matches_kernel_means=True,
        smoothed_by=("a larger ridge", "a smaller bound"),
        sharpened_by=("a smaller ridge",),
    )

    def _question(self, sample: Sample, about: About) -> Summary:  # noqa: ARG002
        if self.bound < 1 - self.slack:
            raise ParameterError(
                f"bound={self.bound} with slack={self.slack} cannot be met: weights of at most "
                f"{self.bound} cannot have a mean of at least {1 - self.slack}. Raise bound to 1 "
                "or more."
            )
        points = KernelPoints.from_sample(sample, self.scaling, centred=not callable(self.kernel))
        random = check_random_state(self.random_state)
        kernel = one_kernel(self.kernel, self.bandwidth, points.points, random)
        n_points, n_columns = points.points.shape
        frequencies = kernel.draw_frequencies(n_columns, N_FREQUENCIES, random)
        drawn = np.sort(random.permutation(n_points)[: self.n_components])
        # The error of single precision is 1e-7 of the largest squared norm, in bandwidths.
        width = getattr(kernel, "bandwidth", np.inf)
        far = np.sum((points.points / width) ** 2, axis=1).max() > 1e3
        asked = KernelSums(
            points.space,
            kernel,
            points.points if self._method_for(sample) == "exact" else points.points[drawn],
            points.centre,
            frequencies=frequencies,
            dtype=np.float64 if far or self.precision == "double" else np.float32,
        )
        return Question(asked, (points, drawn))

    def _method_for(self, sample: Sample) -> str:
        if self.method != "auto":
            return self.method
        return "exact" if len(sample) <= MOST_ROWS_EXACT else "low-rank"

    def _solve(self, sample: Sample, answer: Question[KernelSums]) -> FloatArray:
        self.method_ = self._method_for(sample)
        (points, drawn), sums = answer.learned, answer.summary
        design = points.design(sample)
        weights = np.zeros(len(design))
        used = np.flatnonzero(design > 0)  # a replicate may leave rows out
        if self.method_ == "exact":
            weights[used] = self._solve_exact(points, sums, design[used], used)
        else:
            weights[used] = self._solve_low_rank(points, drawn, sums, design[used], used)
        if not self.certificate_.converged:
            warn_caller(ConvergenceWarning(self._describe_failure()))
        self.uncovered_ = sums.uncovered / sums.mass
        self.bandwidth_ = getattr(sums.kernel, "bandwidth", np.nan)
        self.precision_ = "single" if sums.dtype == np.float32 else "double"
        self.space_, self.centre_ = points.space, points.centre
        self.mmd_before_, self.mmd_after_ = points.distances(design, weights, answer=sums)
        return points.of_rows(weights, sample)

    def _tolerance(self) -> float:
        if self.tolerance is not None:
            return self.tolerance
        return min(LARGEST_TOLERANCE, 0.01 * self.ridge or LARGEST_TOLERANCE)

    def _program(self, matrix: Any, linear: FloatArray, design: FloatArray) -> BoxSimplex:
        size = float(design.sum())
        return BoxSimplex(
            matrix,
            linear,
            upper=self.bound * design,
            total=(size * (1 - self.slack), size * min(1 + self.slack, self.bound)),
        )

    def _solve_exact(
        self, points: KernelPoints, sums: KernelSums, design: FloatArray, used: IntArray
    ) -> FloatArray:
        matrix = KernelMatrix(
            sums.kernel,
            points.points[used],
            ridge=self.ridge / design,
            memory=self.memory,
        )
        linear = float(design.sum()) * (sums.sums / sums.mass)[used]
        # On its blocks, threads of BLAS cost more than they bring.
        with one_blas_thread():
            weights, self.certificate_ = solve_by_exchange(
                self._program(matrix, linear, design),
                tolerance=self._tolerance(),
                regular=bool(matrix.ridge.min() >= LEAST_REGULAR),
                max_iterations=self.max_iterations,
            )
        return weights

    def _solve_low_rank(
        self,
        points: KernelPoints,
        drawn: IntArray,
        sums: KernelSums,
        design: FloatArray,
        used: IntArray,
    ) -> FloatArray:
        features = NystromFeatures(sums.kernel, points.points[drawn])
        matrix = LowRankMatrix(features.transform(points.points[used]), ridge=self.ridge / design)
        target = features.of_sums(sums.sums / sums.mass)
        product = (matrix.features @ target.astype(np.float32)).astype(np.float64)
        linear = float(design.sum()) * product
        weights, self.certificate_ = solve_by_gradient_steps(
            self._program(matrix, linear, design),
            tolerance=max(self._tolerance(), 1e-4 * float(np.abs(linear).mean())),
            max_iterations=self.max_iterations,
        )
        mean = weights @ matrix.features / weights.sum()
        within = float(np.sum((mean - target) ** 2))
        on_all = np.zeros(len(points.points))
        on_all[used] = weights
        (distance,) = points.distances(on_all, answer=sums)
        outside = distance**2 - within
        self.mmd_outside_ = float(np.sqrt(max(outside, 0.0)))
        return weights

    def _describe_failure(self) -> str:
        certificate = self.certificate_
        return (
            f"Kernel mean matching stopped after {certificate.iterations} iterations with a "
            f"violation of {certificate.violation:.2g} (tolerance={certificate.tolerance:.2g}) and "
            f"a duality gap of {certificate.gap:.2g} at an objective of "
            f"{certificate.objective:.6g}. Raise max_iterations, tolerance or ridge."
        )

    def _describe_uncovered(self) -> str:
        place = "sample row" if self.method_ == "exact" else "landmark"
        return (
            f"{self.uncovered_:.1%} of the population holds unseen values, or is too far from "
            f"every {place} for the kernel; the remaining distance (MMD) is {self.mmd_after_:.3g}, "
            f"before weighting {self.mmd_before_:.3g}. No weights make the sample represent it."
        )
