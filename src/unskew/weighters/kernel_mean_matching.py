"""Kernel mean matching: exact, or of low rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from unskew.errors import ParameterError, warn_caller
from unskew.numerics.cores import one_blas_thread
from unskew.numerics.kernel_matrix import KernelMatrix, LowRankMatrix, NystromFeatures
from unskew.numerics.quadratic import BoxSimplex, solve_by_exchange, solve_by_gradient_steps
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.kernel_sums import KernelSums
from unskew.population.summaries import About, Question, Summaries, Summary
from unskew.rows.sample import Sample
from unskew.weighters.kernel_points import KernelWeighter, Learned, one_kernel
from unskew.weighters.parameters import AtLeastZero, BelowOne, OneOrMore, Positive

MOST_ROWS_EXACT = 20_000
"""The largest sample for which method="auto" is exact."""

LARGEST_TOLERANCE = 1e-3
"""Of the optimality conditions by default, as in LIBSVM."""

LEAST_REGULAR = 1e-4
"""The ridge from which on single precision can factor every block of the kernel matrix: its largest
eigenvalue is some thousands, of which 6e-8 is rounding."""


class KernelMeanMatching(KernelWeighter):
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
    <KernelWeighter parameters>
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
    slack: BelowOne = 0.0
    ridge: AtLeastZero = 1e-3
    method: Literal["auto", "exact", "low-rank"] = "auto"
    n_components: OneOrMore = 512
    tolerance: Positive | None = None
    memory: AtLeastZero = 2**31
    max_iterations: OneOrMore = 5000

    traits = replace(
        KernelWeighter.traits,
        assumes=(
            "selection depends on the columns alone, and the kernel's feature space holds the true "
            "weights"
        ),
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
        points = self._points(sample)
        random = check_random_state(self.random_state)
        kernel = one_kernel(self.kernel, self.bandwidth, points.points, random)
        low_rank = self._method_for(sample) == "low-rank"
        return self._ask_sums(points, [kernel], self.n_components, random, at_drawn=low_rank)

    def _method_for(self, sample: Sample) -> str:
        if self.method != "auto":
            return self.method
        return "exact" if len(sample) <= MOST_ROWS_EXACT else "low-rank"

    def _solve(self, sample: Sample, answer: Question[Summaries]) -> FloatArray:
        self.method_ = self._method_for(sample)
        design = answer.learned.points.design(sample)
        solve = self._solve_exact if self.method_ == "exact" else self._solve_low_rank
        weights = np.zeros(len(design))
        used = np.flatnonzero(design > 0)  # a replicate may leave rows out
        weights[used] = solve(answer.learned, answer.summary.parts[0], design[used], used)
        if not self.certificate_.converged:
            warn_caller(ConvergenceWarning(self._describe_failure()))
        return self._finish(sample, answer, weights)

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
        self, learned: Learned, sums: KernelSums, design: FloatArray, used: IntArray
    ) -> FloatArray:
        matrix = KernelMatrix(
            learned.kernels[0],
            learned.points.points[used],
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
        self, learned: Learned, sums: KernelSums, design: FloatArray, used: IntArray
    ) -> FloatArray:
        points = learned.points.points
        features = NystromFeatures(learned.kernels[0], points[learned.drawn])
        matrix = LowRankMatrix(features.transform(points[used]), ridge=self.ridge / design)
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
        on_all = np.zeros(len(points))
        on_all[used] = weights
        (distance,) = learned.points.distances(on_all, answer=sums)
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

    def _asked_at(self) -> str:
        return "sample row" if self.method_ == "exact" else "landmark"
