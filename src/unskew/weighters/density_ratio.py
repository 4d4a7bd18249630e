"""The density ratio of population and sample, as a function on a kernel basis."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from unskew._compat import Interval, StrOptions
from unskew.errors import ParameterError, warn_caller
from unskew.numerics.box_simplex import Certificate
from unskew.numerics.cores import one_blas_thread
from unskew.numerics.inductive import (
    InductiveProblem,
    InductiveWeights,
    choose_smoothing,
    column_stretches,
)
from unskew.numerics.kernels import GaussianKernel, Kernel, LaplaceKernel, WithMeans, blocks
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.about import About
from unskew.population.feature_space import FeatureSpace, Scaling
from unskew.population.reservoir import Reservoir
from unskew.population.rules import Rule
from unskew.population.sample import Sample
from unskew.population.summaries import Question, Summaries, Summary
from unskew.weighters.base import InductiveWeighter
from unskew.weighters.kernel_points import (
    N_FREQUENCIES,
    KernelPoints,
    median_distance,
    needed_precision,
    one_kernel,
)
from unskew.weighters.typing import Columns, OnUncovered, Total

__all__ = ["DensityRatioWeights"]

BANDWIDTH_FACTORS = (0.5, 1.0, 2.0, 4.0)
STRENGTH_OF_MEANS = 10.0
"""The factor of the linear kernel that is added, so that the columns' means are matched first."""


class DensityRatioWeights(InductiveWeighter):
    r"""Weights :math:`w(x) = \sum_l \alpha_l K(x, c_l)`, an estimate of the density ratio.

    Kernel mean matching with weights that are a function of the row: the sample's mean in the
    kernel's feature space matches the population's as well as such a function can, with weights
    between zero and ``bound`` on the sample and a mean of one there. A linear term in the kernel
    matches the columns' means first. The smoothness is chosen by the held-out criterion
    :math:`\frac12 \mathrm{mean}_S \hat w^2 - \mathrm{mean}_U \hat w`, the squared loss of the
    ratio (as in least-squares importance fitting).

    Parameters
    ----------
    bandwidth : {"cv", "paper", "median"} or float, default="cv"
        The kernel's σ. "cv" tries four multiples of the median distance, with equal columns and
        with each column stretched by how much it differs between sample and population, and keeps
        about the one with the smallest held-out loss; it asks the population for a uniform random
        sample of ``population_rows`` rows instead of sums over all of them. "paper" is
        :math:`\sqrt{d/2}` for d features, d for the Laplace kernel; "median" the median distance
        between 1,000 distinct sample rows, in the kernel's own metric.
    scaling : {"standard", "range", None}, default="standard"
        How numbers are scaled before distances are taken: to mean 0 and variance 1 on the sample,
        to [0, 1], or not at all.
    kernel : {"gaussian", "laplace"} or callable, default="gaussian"
        A callable takes two matrices of rows and returns the matrix of a positive definite kernel;
        it needs a ``bandwidth`` other than "cv", which is then not used.
    bound : float, default=1000.0
        The largest weight before weights are scaled to ``total``; their mean is one at that point.
    n_centres : int, default=200
        The number of centres, drawn from the sample.
    population_rows : int, default=20_000
        The number of population rows that are drawn for ``bandwidth="cv"``.
    precision : {"single", "double"}, default="single"
        The precision of the population's kernel values; they are added up in double precision in
        either case. Where sample points are more than 30 bandwidths from the centre, double is
        used; see ``precision_``.
    <shared parameters>
        It draws centres, folds and frequencies.

    Attributes
    ----------
    <shared attributes>
    bandwidth_ : float or ndarray
        One for each encoded column where cross-validation stretched them; infinite for a column
        that does not count.
    smoothing_ : float
        The multiple of the function's squared norm that was chosen.
    certificate_ : Certificate
        Of the dual of the program, with the objective and the residuals of the program itself.
    precision_ : str
        The precision that was used.
    mmd_before_, mmd_after_ : float
        The distance of the sample from the population in the kernel's feature space, without and
        with the weights, estimated from 256 random frequencies that the solver did not use; NaN for
        a custom kernel.
    uncovered_ : float
        The share of the population that holds unseen values, or at which the kernel of every sample
        row is below 0.01.

    Notes
    -----
    New rows get weights that are never negative and never above the largest weight of the sample; a
    row that is too far from every centre for the kernel gets zero.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import DensityRatioWeights
    >>> random = np.random.RandomState(0)
    >>> sample, population = random.normal(0, 1, (300, 1)), random.normal(0.5, 1, (400, 1))
    >>> weighter = DensityRatioWeights().fit(sample, population=population)
    >>> low, high = weighter.weigh([[-1.0], [1.0]])
    >>> bool(low < 1 < high)
    True
    """

    assumes = "selection depends on the columns alone, and the density ratio is smooth"
    uncovered_means = (
        "the share of the population that holds unseen values, or at which the kernel of every "
        "sample row is below 0.01"
    )
    judged_by = "trees"
    _matches_kernel_means = True
    _saved_types = (
        "unskew.numerics.box_simplex.Certificate",
        "unskew.numerics.inductive.InductiveWeights",
        "unskew.numerics.kernels.GaussianKernel",
        "unskew.numerics.kernels.LaplaceKernel",
        "unskew.numerics.kernels.WithMeans",
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **InductiveWeighter._parameter_constraints,
        "bandwidth": [
            StrOptions({"cv", "paper", "median"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "scaling": [StrOptions({"standard", "range"}), None],
        "kernel": [StrOptions({"gaussian", "laplace"}), callable],
        "bound": [Interval(Real, 1, None, closed="left")],
        "n_centres": [Interval(Integral, 1, None, closed="left")],
        "population_rows": [Interval(Integral, 2, None, closed="left")],
        "precision": [StrOptions({"single", "double"})],
    }

    def __init__(
        self,
        *,
        bandwidth: float | Literal["cv", "paper", "median"] = "cv",
        scaling: Scaling = "standard",
        kernel: Literal["gaussian", "laplace"] | Callable[[Any, Any], Any] = "gaussian",
        bound: float = 1000.0,
        n_centres: int = 200,
        population_rows: int = 20_000,
        precision: Literal["single", "double"] = "single",
        columns: Columns = None,
        total: Total = "sample",
        overlap: OnUncovered = "warn",
        random_state: Any = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.scaling = scaling
        self.kernel = kernel
        self.bound = bound
        self.n_centres = n_centres
        self.population_rows = population_rows
        self.precision = precision
        self.columns = columns
        self.total = total
        self.overlap = overlap
        self.random_state = random_state

    certificate_: Certificate

    def _question(self, sample: Sample, about: About) -> Summary:  # noqa: ARG002
        if callable(self.kernel) and self.bandwidth == "cv":
            raise ParameterError(
                'bandwidth="cv" has no bandwidths to choose from for a custom kernel. Use another '
                "bandwidth."
            )
        points = KernelPoints.of(sample, self.scaling, centred=not callable(self.kernel))
        if self.bandwidth == "cv":
            return Question(Reservoir(self.population_rows), points)
        return self._candidates(points, points.design(sample), None)

    def _solve(self, sample: Sample, answer: Question[Any]) -> FloatArray:
        if self.bandwidth == "cv":
            points, drawn = answer.learned, answer.summary
            answer = self._candidates(points, points.design(sample), drawn)
            drawn.answer(answer)
        learned = answer.learned
        points = learned.points
        design = points.design(sample)
        sums = answer.summary.parts
        kernels = [
            WithMeans(one, n_columns=points.points.shape[1], strength=STRENGTH_OF_MEANS)
            for one in learned.kernels
        ]
        means = [
            kernel.means(one.sums / one.mass, points.points, one.points / one.mass)
            for kernel, one in zip(kernels, sums, strict=True)
        ]
        best, self.smoothing_ = choose_smoothing(
            kernels, points.points, means, design, learned.centres, learned.random()
        )
        self.uncovered_ = sums[best].uncovered / sums[best].mass
        self.bandwidth_ = getattr(learned.kernels[best], "bandwidth", np.nan)
        self.precision_ = learned.precision
        self.space_, self.centre_ = points.space, points.centre
        with one_blas_thread():
            self.function_, self.certificate_ = InductiveProblem(
                kernels[best], points.points, means[best], design, learned.centres
            ).solve(self.smoothing_, self.bound)
        weights = design * self.function_.weigh(points.points)
        self.mmd_before_, self.mmd_after_ = (
            points.distance(vector, sums[best]) for vector in (design, weights)
        )
        self._warn_unless_converged(len(learned.centres))
        return points.of_rows(weights, sample)

    def _candidates(
        self, points: KernelPoints, design: FloatArray, drawn: Reservoir | None
    ) -> Question[Summaries]:
        """Return the question for kernel sums, of all kernels among which to choose."""
        random = check_random_state(self.random_state)
        if drawn is None:
            kernels = [one_kernel(self.kernel, self.bandwidth, points.points, random)]
        else:
            kernels = self._bandwidths(points.points, random)
            kernels += self._stretched(points, design, drawn, random)
        n_points, n_columns = points.points.shape
        frequencies = [one.draw_frequencies(n_columns, N_FREQUENCIES, random) for one in kernels]
        centres = np.sort(random.permutation(n_points)[: min(self.n_centres, n_points)])
        precision = needed_precision(kernels, points.points, self.precision)
        question = Summaries(
            [
                points.sums(kernel, points.points, waves, precision)
                for kernel, waves in zip(kernels, frequencies, strict=True)
            ]
        )
        state = random.get_state()
        return Question(question, _Learned(points, kernels, centres, precision, state))

    def _bandwidths(self, points: FloatArray, random: np.random.RandomState) -> list[Kernel]:
        middle = median_distance(str(self.kernel), points, random)
        return [self._family(middle * factor) for factor in BANDWIDTH_FACTORS]

    def _stretched(
        self,
        points: KernelPoints,
        design: FloatArray,
        drawn: Reservoir,
        random: np.random.RandomState,
    ) -> list[Kernel]:
        """Return more candidates, in which columns count as much as they differ."""
        others = points.locate(drawn.rows, side="population")
        stretches = column_stretches(points.points, design, others, drawn.weight)
        if (stretches == stretches[0]).all():
            return []
        middle = median_distance(str(self.kernel), points.points * stretches, random)
        with np.errstate(divide="ignore"):  # a column that does not count is infinitely wide
            return [self._family(middle * factor / stretches) for factor in BANDWIDTH_FACTORS]

    @property
    def _family(self) -> type[GaussianKernel] | type[LaplaceKernel]:
        return GaussianKernel if self.kernel == "gaussian" else LaplaceKernel

    def _weigh(self, sample: Sample) -> FloatArray:
        values, _ = self.space_.transform(sample.batch, side="new rows")
        return self.function_.weigh(values - self.centre_)

    def _rule(self) -> Rule:
        return _FunctionRule(self.space_, self.centre_, self.function_)

    def _warn_unless_converged(self, n_centres: int) -> None:
        if not self.certificate_.converged:
            warn_caller(
                ConvergenceWarning(
                    f"No function of the {n_centres} centres has a mean of one within 0 and "
                    f"bound={self.bound} on the sample; weights were clipped to [0, bound] and "
                    f"mixed with {self.function_.even:.1%} uniform weights. Raise bound or "
                    "n_centres."
                )
            )

    def _describe_uncovered(self) -> str:
        return (
            f"{self.uncovered_:.1%} of the population holds unseen values, or is too far from "
            "every sample row for the kernel; the remaining distance (MMD) is "
            f"{self.mmd_after_:.3g}, before weighting {self.mmd_before_:.3g}. No weights make the "
            "sample represent it."
        )


class _Learned(NamedTuple):
    """What the question was asked with."""

    points: KernelPoints
    kernels: list[Kernel]
    centres: IntArray
    precision: str
    state: Any

    def random(self) -> np.random.RandomState:
        """Return the random generator as it was when the question was asked."""
        random = np.random.RandomState()
        random.set_state(self.state)
        return random


class _FunctionRule(NamedTuple):
    """The weight of a row is the function's value, computed on one thread."""

    space: FeatureSpace
    centre: FloatArray
    function: InductiveWeights

    def __call__(self, batch: Any) -> FloatArray:
        points = self.space.transform(batch, side="new rows").values - self.centre
        parts = blocks(len(points), len(self.function.centres))
        return np.concatenate([np.empty(0), *(self.function.weigh_block(points[p]) for p in parts)])
