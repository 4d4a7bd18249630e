"""The density ratio of population and sample, as a function on a kernel basis."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from unskew._compat import Interval, StrOptions
from unskew.errors import ParameterError
from unskew.numerics.cores import one_blas_thread
from unskew.numerics.inductive import (
    InductiveProblem,
    InductiveWeights,
    choose_smoothing,
    column_stretches,
)
from unskew.numerics.kernels import Kernel, WithMeans, blocks
from unskew.numerics.typing import FloatArray
from unskew.population.about import About
from unskew.population.feature_space import FeatureSpace
from unskew.population.reservoir import Reservoir
from unskew.population.rules import Rule
from unskew.population.sample import Sample
from unskew.population.summaries import Question, Summaries, Summary
from unskew.weighters.base import InductiveWeighter
from unskew.weighters.kernel_points import FAMILIES, KernelWeighter, median_distance, one_kernel
from unskew.weighters.saved_state import check_numbers

BANDWIDTH_FACTORS = (0.5, 1.0, 2.0, 4.0)
STRENGTH_OF_MEANS = 10.0
"""The factor of the linear kernel that is added, so that the columns' means are matched first."""


class DensityRatioWeights(KernelWeighter, InductiveWeighter):
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
    <KernelWeighter parameters>
    kernel : {"gaussian", "laplace"} or callable, default="gaussian"
        A callable takes two matrices of rows and returns the matrix of a positive definite kernel;
        it needs a ``bandwidth`` other than "cv", which is then not used.
    bound : float, default=1000.0
        The largest weight before weights are scaled to ``total``; their mean is one at that point.
    n_centres : int, default=200
        The number of centres, drawn from the sample.
    population_rows : int, default=20_000
        The number of population rows that are drawn for ``bandwidth="cv"``.
    <Weighter parameters>
        It draws centres, folds and frequencies.

    Attributes
    ----------
    <Weighter attributes>
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

    bandwidth: float | Literal["cv", "paper", "median"] = "cv"
    n_centres: int = 200
    population_rows: int = 20_000

    assumes = "selection depends on the columns alone, and the density ratio is smooth"
    _saved_types = (
        "unskew.numerics.box_simplex.Certificate",
        "unskew.numerics.inductive.InductiveWeights",
        "unskew.numerics.kernels.GaussianKernel",
        "unskew.numerics.kernels.LaplaceKernel",
        "unskew.numerics.kernels.WithMeans",
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelWeighter._parameter_constraints,
        "bandwidth": [
            StrOptions({"cv", "paper", "median"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "bound": [Interval(Real, 1, None, closed="left")],
        "n_centres": [Interval(Integral, 1, None, closed="left")],
        "population_rows": [Interval(Integral, 2, None, closed="left")],
    }

    def _question(self, sample: Sample, about: About) -> Summary:  # noqa: ARG002
        if callable(self.kernel) and self.bandwidth == "cv":
            raise ParameterError(
                'bandwidth="cv" has no bandwidths to choose from for a custom kernel. Use another '
                "bandwidth."
            )
        points = self._points(sample)
        if self.bandwidth == "cv":
            return Question(Reservoir(self.population_rows), points)
        random = check_random_state(self.random_state)
        kernel = one_kernel(self.kernel, self.bandwidth, points.points, random)
        return self._ask_sums(points, [kernel], self.n_centres, random)

    def _solve(self, sample: Sample, answer: Question[Any]) -> FloatArray:
        if self.bandwidth == "cv":
            answer = self._ask_drawn(sample, answer)
        learned, sums = answer.learned, answer.summary.parts
        points, design = learned.points.points, learned.points.design(sample)
        kernels = [
            WithMeans(one, n_columns=points.shape[1], strength=STRENGTH_OF_MEANS)
            for one in learned.kernels
        ]
        means = [
            kernel.means(one.sums / one.mass, points, one.points / one.mass)
            for kernel, one in zip(kernels, sums, strict=True)
        ]
        random = np.random.RandomState()
        random.set_state(learned.state)
        best, self.smoothing_ = choose_smoothing(
            kernels, points, means, design, learned.drawn, random
        )
        with one_blas_thread():
            self.function_, self.certificate_ = InductiveProblem(
                kernels[best], points, means[best], design, learned.drawn
            ).solve(self.smoothing_, self.bound)
        return self._finish(sample, answer, design * self.function_.weigh(points), best)

    def _ask_drawn(self, sample: Sample, answer: Question[Reservoir]) -> Question[Summaries]:
        """Ask the population rows that were drawn, with all kernels among which to choose."""
        points, drawn = answer.learned, answer.summary
        random = check_random_state(self.random_state)
        kernels = self._multiples(points.points, 1.0, random)
        # More candidates, in which columns count as much as they differ.
        others = points.locate(drawn.rows, side="population")
        stretches = column_stretches(points.points, points.design(sample), others, drawn.weight)
        if (stretches != stretches[0]).any():
            kernels += self._multiples(points.points, stretches, random)
        question = self._ask_sums(points, kernels, self.n_centres, random)
        drawn.answer(question)
        return question

    def _multiples(
        self, points: FloatArray, stretches: FloatArray | float, random: np.random.RandomState
    ) -> list[Kernel]:
        middle = median_distance(str(self.kernel), points * stretches, random)
        family = FAMILIES[str(self.kernel)]
        with np.errstate(divide="ignore"):  # a column that does not count is infinitely wide
            return [family(middle * factor / stretches) for factor in BANDWIDTH_FACTORS]

    def _weigh(self, sample: Sample) -> FloatArray:
        values, _ = self.space_.transform(sample.batch, side="new rows")
        return self.function_.weigh(values - self.centre_)

    def _check_state(self) -> None:
        super()._check_state()
        function, n_columns = self.function_, self.space_.n_features
        n_centres = len(function.centres)
        for name, values, shape in (
            ("centre_", self.centre_, (n_columns,)),
            ("function_.centres", function.centres, (n_centres, n_columns)),
            ("function_.coefficients", function.coefficients, (n_centres,)),
            ("function_.low", function.low, (n_columns,)),
            ("function_.high", function.high, (n_columns,)),
        ):
            check_numbers(name, values, shape, least=-np.inf)
        check_numbers("function_.bound", function.bound, ())
        check_numbers("function_.even", function.even, (), most=1.0)

    def _rule(self) -> Rule:
        return _FunctionRule(self.space_, self.centre_, self.function_)

    def _describe_failure(self) -> str:
        return (
            f"No function of the {len(self.function_.centres)} centres has a mean of one within 0 "
            f"and bound={self.bound} on the sample; weights were clipped to [0, bound] and mixed "
            f"with {self.function_.even:.1%} uniform weights. Raise bound or n_centres."
        )


class _FunctionRule(NamedTuple):
    """The weight of a row is the function's value, computed on one thread."""

    space: FeatureSpace
    centre: FloatArray
    function: InductiveWeights

    def __call__(self, batch: Any) -> FloatArray:
        points = self.space.transform(batch, side="new rows").values - self.centre
        parts = blocks(len(points), len(self.function.centres))
        return np.concatenate([np.empty(0), *(self.function.weigh_block(points[p]) for p in parts)])
