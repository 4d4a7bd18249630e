"""Kernel mean matching: exact, of low rank, or inductive."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from unskew._compat import Interval, StrOptions
from unskew.errors import InputError, ParameterError, warn_caller
from unskew.numerics.box_simplex import BoxSimplex, Certificate
from unskew.numerics.cores import one_blas_thread
from unskew.numerics.exchange import solve_by_exchange
from unskew.numerics.inductive import (
    InductiveProblem,
    InductiveWeights,
    choose_smoothing,
    column_stretches,
)
from unskew.numerics.kernel_matrix import KernelMatrix
from unskew.numerics.kernels import (
    CustomKernel,
    GaussianKernel,
    Kernel,
    LaplaceKernel,
    WithMeans,
    blocks,
)
from unskew.numerics.low_rank import LowRankMatrix, NystromFeatures
from unskew.numerics.projected_gradient import solve_by_gradient_steps
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.encode import FeatureSpace, Scaling
from unskew.population.population import Population
from unskew.population.summaries import KernelSums, Reservoir, Summaries, sum_of_waves
from unskew.weighters.base import InductiveWeighter, Sample, canonical_order
from unskew.weighters.rules import Rule
from unskew.weighters.typing import OnUncovered, Total

__all__ = ["KernelMeanMatching"]

Method = Literal["auto", "exact", "low-rank", "inductive"]

MOST_ROWS_EXACT = 20_000
"""The largest sample for which method="auto" is exact."""

N_FREQUENCIES = 256
BANDWIDTH_FACTORS = (0.5, 1.0, 2.0, 4.0)
MOST_ROWS_OF_POPULATION = 20_000
STRENGTH_OF_MEANS = 10.0


def _is_inductive(weighter: KernelMeanMatching) -> bool:
    return weighter.method == "inductive" or weighter.bandwidth == "cv"


class KernelMeanMatching(InductiveWeighter):
    r"""Weights under which the sample's mean in a kernel's feature space is the population's.

    Huang, Smola, Gretton, Borgwardt and Schölkopf (2006), as the paper states it:

    .. math:: \min_\gamma \Bigl\lVert \frac1m \sum_i \gamma_i \Phi(x_i)
              - \frac1n \sum_j \Phi(x'_j) \Bigr\rVert, \qquad
              0 \le \gamma_i \le B, \quad
              \Bigl\lvert \frac1m \sum_i \gamma_i - 1 \Bigr\rvert \le \epsilon

    Parameters
    ----------
    bandwidth : {"paper", "median", "cv"} or float, default="paper"
        The kernel's σ. "paper" is :math:`\sqrt{d/2}` for d features, that is
        :math:`\exp(-\lVert x - y \rVert^2 / d)`, and d for the Laplace kernel; "median" the median
        distance between 1,000 distinct sample rows, in the kernel's own metric;
        "cv" tries four multiples of that median, with all columns alike and with each stretched by
        how much it differs between sample and population, and keeps about the one with the smallest
        held-out :math:`\frac12 \mathrm{mean}_S \hat w^2 - \mathrm{mean}_U \hat w`. It needs the
        inductive form, brings it with it, and asks the population for a uniform reservoir of 20,000
        rows instead of sums over all of them.
    scaling : {"standard", "range", None}, default="standard"
        How numbers are scaled before distances are taken, by the sample's mean and variance, to
        [0, 1], or not at all. It decides what a bandwidth means: with ``None``, columns in large
        units drown the others.
    kernel : {"gaussian", "laplace"} or callable, default="gaussian"
        A callable takes two matrices of rows and returns the matrix of a positive definite kernel;
        it ignores ``bandwidth``.
    bound : float, default=1000.0
        The largest weight B before weights are scaled to ``total``; without slack they then average
        one.
    slack : float, default=0.0
        The paper's ε: how far the mean weight may be from one before it is scaled to ``total``. The
        inductive form has a mean of one whatever it is.
    ridge : float, default=0.0
        Adds ``ridge / 2 · Σ γ²`` to half the squared norm times m². More makes weights more even;
        the result is kernel balancing. The inductive form has its own smoothing instead.
    method : {"auto", "exact", "low-rank", "inductive"}, default="auto"
        "exact" solves the program. "low-rank" solves it for Nyström's approximation of the kernel
        with ``n_components`` landmarks drawn from the sample, for samples of any size. "inductive"
        looks for weights of the form :math:`w(x) = \sum_l \alpha_l K(x, c_l)` with centres drawn
        from the sample, between zero and the bound on the sample and of mean one there; a linear
        term in the kernel makes it match the columns' means first. Their smoothness is chosen by
        the held-out criterion above. Only these can weigh new rows. "auto" is inductive where
        ``bandwidth="cv"`` asks for it, else exact up to 20,000 rows, else of low rank.
    n_components : int, default=512
        The number of landmarks or centres; 200 centres at the most.
    tolerance : float, default=1e-3
        The largest violation of the optimality conditions, in units of the gradient
        :math:`K\gamma - \kappa`, as LIBSVM has it. With low rank it is at least 1e-4 of κ's mean,
        far below what the approximation itself leaves open.
    precision : {"single", "double"}, default="single"
        In which the kernel of the population is taken; sums are in double precision anyway. Where
        the sample reaches further than 30 bandwidths, double is used; see ``precision_``.
    memory : float, default=2**31
        Bytes that the kernel matrix may take. Beyond, an exact solution computes the columns that
        it needs on demand; the square block of the rows with positive weight is still held, to be
        factored.
    max_iterations : int, default=5000
        Rounds of the exact solver, which rarely needs more than fifty, or gradient steps with low
        rank. Reaching it gives a warning with the gap that is left.
    total : {"sample", "population"}, default="sample"
        What the weights sum to: the number of sample rows, or the population's size.
    overlap : {"warn", "raise", "ignore"} or float, default="warn"
        What to do where the sample does not reach part of the population. "warn" if the method
        leaves more than 1 % of it uncovered, or if regions without sample rows hold more than 5 %
        of it; "raise" an ``OverlapError`` at 1 % and 5 %, a number at that share of either.
        ``overlap_`` tells in words which regions. "ignore" also saves the time that looking for
        them takes.
    random_state : int, RandomState instance or None, default=0
        Draws landmarks, centres, folds and frequencies.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
    overlap_ : Overlap or None
        Which part of the population the sample does not reach, and where; None if ignored.
    method_ : str
        The method that was used.
    bandwidth_ : float or ndarray
        One for each encoded column where cross-validation stretched them; infinite for a column
        that does not count.
    certificate_ : Certificate
        Objective, duality gap, violation of the optimality conditions, residuals of the
        constraints, iterations. With low rank, of the approximate program; with the inductive form,
        of the dual of its program, with the objective and the residuals of the program itself.
    precision_ : str
        The precision that was used.
    smoothing_ : float
        The multiple of the function's squared norm that the inductive form chose.
    mmd_before_, mmd_after_ : float
        The distance of the sample from the population in the kernel's feature space, without and
        with the weights, estimated from 256 random frequencies that the solver did not see; NaN for
        a kernel of your own.
    mmd_outside_ : float
        With low rank, how much of ``mmd_after_`` is out of the landmarks' reach: the part that the
        approximation could not match, whatever the weights.
    uncovered_ : float
        The share of the population that holds novel values, or at which the kernel of every sample
        row (every landmark with low rank) is below 0.01. Of a kernel of your own it is not known
        which values are small: novel values alone count.

    Notes
    -----
    Design weights d of the sample, scaled to mean one, and v of the population enter as
    :math:`w_i = d_i \gamma_i`: :math:`\kappa_i = m \sum_u v_u K(x_i, u) / \sum_u v_u`,
    :math:`0 \le w_i \le B d_i`, :math:`\sum_i w_i = m`, and the ridge is on
    :math:`\sum_i w_i^2 / d_i`. Rows at the same point share its weight as their d say.

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

    _matches_kernel_means = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **InductiveWeighter._parameter_constraints,
        "bandwidth": [
            StrOptions({"paper", "median", "cv"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "scaling": [StrOptions({"standard", "range"}), None],
        "kernel": [StrOptions({"gaussian", "laplace"}), callable],
        "bound": [Interval(Real, 0, None, closed="neither")],
        "slack": [Interval(Real, 0, 1, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "method": [StrOptions({"auto", "exact", "low-rank", "inductive"})],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "tolerance": [Interval(Real, 0, None, closed="neither")],
        "precision": [StrOptions({"single", "double"})],
        "memory": [Interval(Real, 0, None, closed="left")],
        "max_iterations": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        bandwidth: float | Literal["paper", "median", "cv"] = "paper",
        scaling: Scaling = "standard",
        kernel: Literal["gaussian", "laplace"] | Callable[[Any, Any], Any] = "gaussian",
        bound: float = 1000.0,
        slack: float = 0.0,
        ridge: float = 0.0,
        method: Method = "auto",
        n_components: int = 512,
        tolerance: float = 1e-3,
        precision: Literal["single", "double"] = "single",
        memory: float = 2**31,
        max_iterations: int = 5000,
        total: Total = "sample",
        overlap: OnUncovered = "warn",
        random_state: Any = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.scaling = scaling
        self.kernel = kernel
        self.bound = bound
        self.slack = slack
        self.ridge = ridge
        self.method = method
        self.n_components = n_components
        self.tolerance = tolerance
        self.precision = precision
        self.memory = memory
        self.max_iterations = max_iterations
        self.total = total
        self.overlap = overlap
        self.random_state = random_state

    certificate_: Certificate

    @available_if(_is_inductive)
    def weigh(self, X: Any, *, name: str = "weight") -> Any:
        """Return the weights of new rows; see :meth:`InductiveWeighter.weigh`.

        They are never negative and never above the largest weight of the sample; a row out of the
        kernel's reach of every centre gets zero.
        """
        return super().weigh(X, name=name)

    def _fit(self, sample: Sample, population: Population) -> FloatArray:
        self._check_feasible()
        for stale in ("inductive_", "smoothing_", "mmd_outside_"):
            if hasattr(self, stale):
                delattr(self, stale)
        self.method_ = self._chosen_method(len(sample))
        kept = canonical_order(sample)
        kept = kept[sample.design[kept] > 0]
        problem, place = self._problem(sample.take(kept), population)
        solved = {
            "exact": self._solve_exact,
            "low-rank": self._solve_low_rank,
            "inductive": self._solve_inductive,
        }[self.method_](problem)
        self._report(problem, solved)
        weights = np.zeros(len(sample))
        # Rows at one point share its weight as their design weights say.
        weights[kept] = solved[place] * sample.design[kept] / problem.design[place]
        return weights

    def _weigh(self, sample: Sample) -> FloatArray:
        values, _ = self.space_.transform(sample.rows.batch, side="new rows")
        return self.inductive_.weigh(values - self.centre_)

    def _rule(self) -> Rule:
        return _InductiveRule(self.space_, self.centre_, self.inductive_)

    def _check_feasible(self) -> None:
        if self.bound < 1 - self.slack:
            raise ParameterError(
                f"bound={self.bound} with slack={self.slack} cannot be met: weights of at most "
                f"{self.bound} cannot have a mean of at least {1 - self.slack}. Raise bound to 1 "
                "or more."
            )
        if _is_inductive(self) and self.bound < 1:
            raise ParameterError(
                f"bound={self.bound} cannot be met by the inductive form, whose weights have a "
                "mean of one whatever slack is. Raise bound to 1 or more."
            )
        if self.bandwidth == "cv" and (self.method not in ("auto", "inductive")):
            raise ParameterError(
                f'bandwidth="cv" needs weights for held-out rows, which method="{self.method}" '
                'cannot give. Use method="inductive" or "auto".'
            )
        if callable(self.kernel) and self.bandwidth == "cv":
            raise ParameterError('bandwidth="cv" has nothing to choose for a kernel of your own.')

    def _chosen_method(self, n_samples: int) -> str:
        if self.method != "auto":
            return self.method
        if self.bandwidth == "cv":
            return "inductive"
        return "exact" if n_samples <= MOST_ROWS_EXACT else "low-rank"

    def _problem(self, sample: Sample, population: Population) -> tuple[_Problem, IntArray]:
        """Ask the population its one question and put the program together.

        Rows at the same point are one entry of the program; the second result is each row's.
        """
        batch = sample.rows.batch
        self.space_ = FeatureSpace(scaling=self.scaling).fit(batch)
        points = self.space_.transform(batch, side="sample").values
        if not np.isfinite(points).all():
            raise InputError("Some values are too large to take distances. Rescale the columns.")
        points, place = np.unique(points, axis=0, return_inverse=True)
        place = place.reshape(-1)
        self.centre_ = points.mean(axis=0)
        if callable(self.kernel):  # it may not be one of differences
            self.centre_ = np.zeros(points.shape[1])
        points = points - self.centre_
        design = np.bincount(place, weights=sample.design)
        design = design * (len(sample) / design.sum())
        random = check_random_state(self.random_state)
        kernels = self._kernels(points, random)
        ask: Callable[[Summaries], Summaries] = population.reduce
        if self.bandwidth == "cv":
            kept = population.reduce(Reservoir(MOST_ROWS_OF_POPULATION))
            kernels += self._stretched(points, design, kept, random)
            ask = kept.answer
        waves = [
            kernel.draw_frequencies(points.shape[1], N_FREQUENCIES, random) for kernel in kernels
        ]
        components = self._components(len(points), random)
        asked = points[components] if self.method_ == "low-rank" else points
        self.precision_ = self._needed_precision(kernels, points)
        dtype = np.float32 if self.precision_ == "single" else np.float64
        question = Summaries(
            [
                KernelSums(self.space_, kernel, asked, self.centre_, frequencies=ws, dtype=dtype)
                for kernel, ws in zip(kernels, waves, strict=True)
            ]
        )
        answers: list[KernelSums] = ask(question).parts
        means = [answer.sums / answer.mass for answer in answers]
        best = 0
        if self.method_ == "inductive":
            with_means = [
                WithMeans(kernel, n_columns=points.shape[1], strength=STRENGTH_OF_MEANS)
                for kernel in kernels
            ]
            means = [
                kernel.means(inner, points, answer.points / answer.mass)
                for kernel, inner, answer in zip(with_means, means, answers, strict=True)
            ]
            best, self.smoothing_ = choose_smoothing(
                with_means, points, means, design, components, random
            )
        self.uncovered_: float = answers[best].uncovered / answers[best].mass
        self.bandwidth_ = getattr(kernels[best], "bandwidth", np.nan)
        problem = _Problem(
            with_means[best] if self.method_ == "inductive" else kernels[best],
            points,
            means[best],
            design,
            components,
            waves[best],
            answers[best].waves / answers[best].mass,
        )
        return problem, place

    def _kernels(self, points: FloatArray, random: np.random.RandomState) -> list[Kernel]:
        """Return the kernel, or the candidates among which to choose."""
        if callable(self.kernel):
            return [CustomKernel(self.kernel)]
        family = GaussianKernel if self.kernel == "gaussian" else LaplaceKernel
        if self.bandwidth == "paper":
            n_columns = points.shape[1]
            # γ = 1/d in exp(-γ‖x - y‖²), and in exp(-γ‖x - y‖₁).
            gaussian = family is GaussianKernel
            return [family(float(np.sqrt(n_columns / 2) if gaussian else n_columns))]
        if isinstance(self.bandwidth, Real):
            return [family(float(self.bandwidth))]
        middle = self._median_distance(points, random)
        if self.bandwidth == "median":
            return [family(middle)]
        return [family(middle * factor) for factor in BANDWIDTH_FACTORS]

    def _stretched(
        self,
        points: FloatArray,
        design: FloatArray,
        kept: Reservoir,
        random: np.random.RandomState,
    ) -> list[Kernel]:
        """Return more candidates, in which columns count as much as they differ."""
        others = self.space_.transform(kept.rows, side="population").values - self.centre_
        stretches = column_stretches(points, design, others, kept.weight)
        if (stretches == stretches[0]).all():
            return []
        family = GaussianKernel if self.kernel == "gaussian" else LaplaceKernel
        middle = self._median_distance(points * stretches, random)
        with np.errstate(divide="ignore"):  # a column that does not count is infinitely wide
            return [family(middle * factor / stretches) for factor in BANDWIDTH_FACTORS]

    def _median_distance(self, points: FloatArray, random: np.random.RandomState) -> float:
        """Return the median distance between some of the points, never zero."""
        few = points[random.permutation(len(points))[:1000]]
        power = 1 if self.kernel == "laplace" else 2
        distances = pdist(few, "minkowski", p=power) if len(few) > 1 else np.ones(1)
        return float(np.median(distances)) or float(distances.max()) or 1.0

    def _needed_precision(self, kernels: list[Kernel], points: FloatArray) -> str:
        """Return the precision asked for, or double where single would not do.

        Its error is 1e-7 of the largest squared norm, in bandwidths.
        """
        widths = [getattr(kernel, "bandwidth", np.inf) for kernel in kernels]
        farthest = max(float(np.max(np.sum((points / width) ** 2, axis=1))) for width in widths)
        return "double" if farthest > 1e3 else self.precision

    def _components(self, n_samples: int, random: np.random.RandomState) -> IntArray:
        """Draw landmarks or centres evenly from the sample."""
        most = min(self.n_components, 200 if self.method_ == "inductive" else n_samples)
        return np.sort(random.permutation(n_samples)[:most])

    def _program(self, matrix: Any, linear: FloatArray, problem: _Problem) -> BoxSimplex[Any]:
        size = problem.size
        return BoxSimplex(
            matrix,
            linear,
            upper=self.bound * problem.design,
            total=(size * (1 - self.slack), size * min(1 + self.slack, self.bound)),
        )

    def _solve_exact(self, problem: _Problem) -> FloatArray:
        matrix = KernelMatrix(
            problem.kernel,
            problem.points,
            ridge=self.ridge / problem.design,
            memory=self.memory,
        )
        with one_blas_thread():  # its threads cost more than they bring on blocks of this size
            weights, self.certificate_ = solve_by_exchange(
                self._program(matrix, problem.size * problem.means, problem),
                tolerance=self.tolerance,
                max_iterations=self.max_iterations,
            )
        return weights

    def _solve_low_rank(self, problem: _Problem) -> FloatArray:
        features = NystromFeatures(problem.kernel, problem.points[problem.components])
        matrix = LowRankMatrix(
            features.transform(problem.points), ridge=self.ridge / problem.design
        )
        target = features.of_sums(problem.means)
        linear = problem.size * (matrix.features @ target.astype(np.float32)).astype(np.float64)
        weights, self.certificate_ = solve_by_gradient_steps(
            self._program(matrix, linear, problem),
            tolerance=max(self.tolerance, 1e-4 * float(np.abs(linear).mean())),
            max_iterations=self.max_iterations,
        )
        mean = weights @ matrix.features / weights.sum()
        within = float(np.sum((mean - target) ** 2))
        self.mmd_outside_ = float(np.sqrt(max(problem.distance(weights) ** 2 - within, 0.0)))
        return weights

    def _solve_inductive(self, problem: _Problem) -> FloatArray:
        with one_blas_thread():
            self.inductive_, self.certificate_ = InductiveProblem(
                problem.kernel, problem.points, problem.means, problem.design, problem.components
            ).solve(self.smoothing_, self.bound)
        return problem.design * self.inductive_.weigh(problem.points)

    def _report(self, problem: _Problem, weights: FloatArray) -> None:
        self.mmd_before_, self.mmd_after_ = (
            problem.distance(vector) for vector in (problem.design, weights)
        )
        certificate = self.certificate_
        if not certificate.converged and self.method_ == "inductive":
            warn_caller(
                ConvergenceWarning(
                    f"No function of the {len(problem.components)} centres has mean one within "
                    f"0 and bound={self.bound} on the sample; the weights are cut, and evened by "
                    f"{self.inductive_.even:.1%} of a constant. Raise bound or n_components."
                )
            )
        elif not certificate.converged:
            warn_caller(
                ConvergenceWarning(
                    f"Kernel mean matching stopped after {certificate.iterations} iterations with "
                    f"a violation of {certificate.violation:.2g} "
                    f"(tolerance={certificate.tolerance:.2g}) and a duality gap of "
                    f"{certificate.gap:.2g} at an objective of {certificate.objective:.6g}. Raise "
                    "max_iterations, tolerance or ridge."
                )
            )

    def _told_uncovered(self) -> str:
        asked = "landmark" if self.method_ == "low-rank" else "sample row"
        return (
            f"{self.uncovered_:.1%} of the population is out of the kernel's reach of every "
            f"{asked}; the distance that remains (MMD) is {self.mmd_after_:.3g}, before weighting "
            f"{self.mmd_before_:.3g}. No weights make the sample stand for it."
        )


class _InductiveRule(NamedTuple):
    """The weight of a row is the function's value, computed on one thread."""

    space: FeatureSpace
    centre: FloatArray
    function: InductiveWeights

    def __call__(self, batch: Any) -> FloatArray:
        points = self.space.transform(batch, side="new rows").values - self.centre
        parts = blocks(len(points), len(self.function.centres))
        return np.concatenate([np.empty(0), *(self.function.weigh_block(points[p]) for p in parts)])


class _Problem(NamedTuple):
    """The program's data: what the sample is and what the population answered."""

    kernel: Kernel
    points: FloatArray
    means: FloatArray
    """The population's mean kernel value at each point, or at each landmark."""
    design: FloatArray
    components: IntArray
    frequencies: FloatArray | None
    waves: Any

    @property
    def size(self) -> float:
        """The number of sample rows, to which the design weights sum."""
        return float(self.design.sum())

    def distance(self, weights: FloatArray) -> float:
        """Estimate the distance between the weighted sample and the population."""
        if self.frequencies is None:
            return float("nan")
        mine = sum_of_waves(self.points, weights, self.frequencies) / weights.sum()
        return float(np.sqrt(np.mean(np.abs(mine - self.waves) ** 2)))
