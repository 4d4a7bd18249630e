"""The density ratio of population and sample, as a function on a kernel basis."""

from __future__ import annotations

from dataclasses import field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from unskew._compat import Interval, StrOptions
from unskew.errors import OverlapError, ParameterError
from unskew.numerics.density_ratio import SMOOTHINGS, Candidate, Task, choose, judged_folds
from unskew.numerics.inductive import InductiveWeights, Smoothing
from unskew.numerics.kernels import FARTHEST, Kernel, TiltedKernel, blocks
from unskew.numerics.typing import FloatArray
from unskew.population.about import About
from unskew.population.feature_space import FeatureSpace
from unskew.population.rules import Rule
from unskew.population.sample import Sample
from unskew.population.summaries import Question, Summary
from unskew.weighters.constrained_ratio import ask_constrained, solve_constrained
from unskew.weighters.drawn_ratio import ask_rows, solve_rows
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.kernel_points import (
    FAMILIES,
    KernelPoints,
    KernelWeighter,
    median_distance,
    one_kernel,
)
from unskew.weighters.saved_state import check_numbers
from unskew.weighters.summed_ratio import ask_sums, solve_sums

BANDWIDTH_FACTORS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
"""The bandwidths that are tried, in median distances."""


class DensityRatioWeights(KernelWeighter, InductiveWeighter):
    r"""Weights :math:`w(x) = \sum_l \alpha_l \phi_l(x)`, an estimate of the density ratio.

    The basis is a kernel at centres, :math:`\phi_l(x) = e^{t(x)} K(x, c_l)`, where the tilt t is
    zero or linear in the columns. The density ratio p_U/p_S minimises each of these losses:

    - "squared": :math:`\frac12 \mathrm{mean}_S w^2 - \mathrm{mean}_U w`, with the closed form
      :math:`\alpha = (H + \lambda I)^{-1} h`, :math:`H = \mathrm{mean}_S\, \phi\phi^\top`,
      :math:`h = \mathrm{mean}_U\, \phi` (unconstrained least-squares importance fitting, uLSIF;
      with ``relative`` RuLSIF).
    - "kl": :math:`-\mathrm{mean}_U \log w` with :math:`\mathrm{mean}_S w = 1` and
      :math:`\alpha \ge 0` (the Kullback-Leibler importance estimation procedure, KLIEP), to a
      duality gap of 1e-8.

    Bandwidth, tilt and λ are chosen by the loss on held-out rows of both sides.

    Parameters
    ----------
    loss : {"squared", "kl"}, default="squared"
    relative : float, default=0.0
        With ρ > 0, the squared loss estimates the relative ratio p_U/(ρ p_U + (1 − ρ) p_S), which
        is at most 1/ρ: steadier weights that correct less.
    bandwidth : {"cv", "paper", "median"} or float, default="cv"
        The kernel's σ. "cv" tries seven multiples of the median distance and keeps about the one
        with the smallest held-out loss. "paper" is :math:`\sqrt{d/2}` for d features, d for the
        Laplace kernel; "median" the median distance between 1,000 distinct sample rows, in the
        kernel's own metric.
    n_centres : int, default=200
        The number of centres.
    smoothing : {"cv"} or float, default="cv"
        λ. The "kl" loss has none. With ``constrained``, the multiple of the function's squared norm
        in units of the quadratic form.
    centres : {"population", "sample"}, default="population"
        Where the centres are drawn from. With "sample" and the squared loss, all rows of the
        population enter, in one pass, and a saved weighter holds no population rows.
    tilt : {"cv"} or bool, default="cv"
        Whether the basis is tilted: t is then the exponential tilt under which the means of the
        columns match, with a small ridge, and the kernels correct it. "cv" tries both. Not with
        ``centres="sample"`` and the squared loss, which know the means only after the pass, and
        not for more than 200 encoded columns.
    constrained : bool, default=False
        The squared loss of kernel mean matching instead: the sample's mean in the kernel's feature
        space matches the population's as well as a function of the row can, with weights between
        zero and ``bound`` on the sample and a mean of one there. A linear term in the kernel
        matches the columns' means first. The centres are sample rows, and the held-out squared
        loss chooses the smoothness, and with ``bandwidth="cv"`` also the kernel, among four
        bandwidths with equal columns and with each column stretched by how much it differs.
    population_rows : {"auto"} or int, default="auto"
        How many population rows are drawn, uniformly; "auto" is max(100,000, 20 m) for m sample
        rows, within 1 GB, and 20,000 with ``constrained``. Where the population has no more rows,
        nothing is lost. With a given bandwidth and ``constrained``, and with ``centres="sample"``
        and the squared loss, all rows enter and none are drawn.
    <KernelWeighter parameters>
    kernel : {"gaussian", "laplace"}, default="gaussian"
    bound : float, default=1000.0
        The largest weight before weights are scaled to ``total``; their mean is one at that point.
    <Weighter parameters>
        It draws centres, folds and frequencies.

    Attributes
    ----------
    <Weighter attributes>
    bandwidth_ : float or ndarray
        One for each encoded column where cross-validation stretched them; infinite for a column
        that does not count.
    smoothing_ : float
        The λ that was used; zero for the "kl" loss.
    tilt_ : ndarray
        The slope of the tilt in each encoded column; zeros without one. Not with ``constrained``.
    cv_scores_ : dict of ndarray
        A table of what was compared, one entry for each basis and λ: bandwidth, tilted, smoothing,
        loss (on held-out rows) and its standard_error. Empty if nothing was. Not with
        ``constrained``.
    centres_, coefficients_ : ndarray
        The centres, in encoded columns, and α. Not with ``constrained``.
    gap_ : float
        With the "kl" loss, how far the objective is from its optimum at most (the duality gap).
    objective_ : float
        With the "kl" loss, the mean log ratio over the population rows that the basis reaches.
    certificate_ : Certificate
        With ``constrained``, of the dual of the program, with the objective and the residuals of
        the program itself.
    precision_ : str
        The precision of the kernel values on which coverage and distances were measured.
    mmd_before_, mmd_after_ : float
        The distance of the sample from the population in the kernel's feature space, without and
        with the weights, estimated from 256 random frequencies that the solver did not use.
    uncovered_ : float
        The share of the population that holds unseen values, or at which the kernel of every sample
        row (of every centre with ``centres="sample"``) is below 0.01. Measured on drawn rows.

    Notes
    -----
    Values of the function below zero are cut to zero. A new row that is too far from every centre
    for the kernel gets zero, and none gets more than the largest weight of the sample.

    Folds go by a hash of a row's values, so that equal rows of both sides share one; a value with
    20 or more sample rows is divided over all folds. Of the bases within one standard error of the
    best, the widest kernel counts as the simplest, and one with a tilt as simpler than one without.

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
    >>> kliep = DensityRatioWeights("kl").fit(sample, population=population)
    >>> bool(kliep.gap_ < 1e-8)
    True
    """

    loss: Literal["squared", "kl"] = field(default="squared", kw_only=False)
    relative: float = 0.0
    bandwidth: float | Literal["cv", "paper", "median"] = "cv"
    n_centres: int = 200
    smoothing: float | Literal["cv"] = "cv"
    centres: Literal["population", "sample"] = "population"
    tilt: bool | Literal["cv"] = "cv"
    constrained: bool = False
    population_rows: int | Literal["auto"] = "auto"

    assumes = "selection depends on the columns alone, and the density ratio is smooth"
    smoothed_by = ("a smaller bound",)
    _saved_types = (
        "unskew.numerics.box_simplex.Certificate",
        "unskew.numerics.inductive.InductiveWeights",
        "unskew.numerics.kernels.GaussianKernel",
        "unskew.numerics.kernels.LaplaceKernel",
        "unskew.numerics.kernels.TiltedKernel",
        "unskew.numerics.kernels.WithMeans",
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelWeighter._parameter_constraints,
        "loss": [StrOptions({"squared", "kl"})],
        "relative": [Interval(Real, 0, 1, closed="left")],
        "bandwidth": [
            StrOptions({"cv", "paper", "median"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "n_centres": [Interval(Integral, 1, None, closed="left")],
        "smoothing": [StrOptions({"cv"}), Interval(Real, 0, None, closed="neither")],
        "centres": [StrOptions({"population", "sample"})],
        "tilt": [StrOptions({"cv"}), "boolean"],
        "constrained": ["boolean"],
        "population_rows": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left")],
        "kernel": [StrOptions({"gaussian", "laplace"})],
        "bound": [Interval(Real, 1, None, closed="left")],
    }

    def _question(self, sample: Sample, about: About) -> Summary:  # noqa: ARG002
        self._check_combination()
        points = self._points(sample)
        if self.constrained:
            return ask_constrained(self, points)
        return ask_sums(self, points) if self._in_one_pass else ask_rows(self, points)

    def _solve(self, sample: Sample, answer: Question[Any]) -> FloatArray:
        if self.constrained:
            return solve_constrained(self, sample, answer)
        solve = solve_sums if self._in_one_pass else solve_rows
        return solve(self, sample, answer)

    @property
    def _in_one_pass(self) -> bool:
        """Whether sums over all rows of the population are asked for."""
        return self.loss == "squared" and self.centres == "sample"

    def _check_combination(self) -> None:
        for name, value, wrong in (
            ("relative", self.relative, self.relative > 0),
            ("constrained", self.constrained, self.constrained),
        ):
            if self.loss == "kl" and wrong:
                raise ParameterError(f'{name}={value} is only for loss="squared".')
        if self.constrained and self.relative:
            raise ParameterError(f"constrained=True estimates no relative={self.relative} ratio.")
        if self.tilt is True and (self.constrained or self._in_one_pass):
            given = "constrained=True" if self.constrained else 'centres="sample"'
            raise ParameterError(
                f"tilt=True is not for {given}: the tilt needs the population's means before the "
                "kernel's. Use tilt=False."
            )

    @property
    def _task(self) -> Task:
        smoothings = SMOOTHINGS if self.smoothing == "cv" else np.array([float(self.smoothing)])
        return Task(self.loss, self.relative, smoothings if self.loss == "squared" else np.zeros(1))

    def _kernels(self, points: FloatArray, random: np.random.RandomState) -> list[Kernel]:
        """Return the kernels among which to choose."""
        if self.bandwidth != "cv":
            return [one_kernel(self.kernel, self.bandwidth, points, random)]
        middle = median_distance(str(self.kernel), points, random)
        return [FAMILIES[str(self.kernel)](middle * factor) for factor in BANDWIDTH_FACTORS]

    def _choose(self, candidates: list[Candidate], losses: FloatArray | None) -> Smoothing:
        """Choose by held-out losses, if there is a choice, and keep them."""
        smoothings = self._task.smoothings
        self.cv_scores_: dict[str, FloatArray] = {}
        if losses is None:
            self.smoothing_ = float(smoothings[0])
            return Smoothing(0, self.smoothing_)
        judged = judged_folds(losses)
        if judged.size:
            widths = np.array([getattr(one.kernel, "bandwidth", np.nan) for one in candidates])
            error = judged.std(axis=2) / np.sqrt(max(1, judged.shape[2] - 1))
            self.cv_scores_ = {
                "bandwidth": np.repeat(widths, len(smoothings)),
                "tilted": np.repeat([one.tilted for one in candidates], len(smoothings)),
                "smoothing": np.tile(smoothings, len(candidates)),
                "loss": judged.mean(axis=2).ravel(),
                "standard_error": error.ravel(),
            }
        choice = choose(losses, smoothings)
        self.smoothing_ = choice.smoothing
        return choice

    def _make_function(
        self,
        points: KernelPoints,
        sample: Sample,
        kernel: Kernel,
        centres: FloatArray,
        alpha: FloatArray,
    ) -> FloatArray:
        """Set the attributes of the function, and return the weights of the sample's points."""
        design, n_columns = points.design(sample), points.points.shape[1]
        everywhere = np.full(n_columns, FARTHEST)
        function = InductiveWeights(kernel, centres, alpha, -everywhere, everywhere, np.inf)
        values = function.weigh(points.points)
        if not (design * values).any():
            raise OverlapError(
                "Every sample row would get weight zero: at the bandwidth of the kernel, no "
                "centre is near a sample row. Raise bandwidth=, or weigh by other columns "
                "(columns=).",
                1.0,
            )
        function = replace(function, bound=self.bound).with_mean_one(values, design)
        self.function_ = function
        self.coefficients_, self.centres_ = alpha, centres + points.centre
        self.tilt_ = kernel.tilt if isinstance(kernel, TiltedKernel) else np.zeros(n_columns)
        return design * function.weigh(points.points)

    def _weigh(self, sample: Sample) -> FloatArray:
        values, _ = self.space_.transform(sample.batch, side="new rows")
        return self.function_.weigh(values - self.centre_)

    def _check_state(self) -> None:
        super()._check_state()
        function, n_columns = self.function_, self.space_.n_features
        n_centres = len(function.centres)
        checked = [
            ("centre_", self.centre_, (n_columns,)),
            ("function_.centres", function.centres, (n_centres, n_columns)),
            ("function_.coefficients", function.coefficients, (n_centres,)),
            ("function_.low", function.low, (n_columns,)),
            ("function_.high", function.high, (n_columns,)),
        ]
        if isinstance(kernel := function.kernel, TiltedKernel):
            checked += [
                (f"function_.kernel.{name}", getattr(kernel, name), (n_columns,))
                for name in ("tilt", "low", "high")
            ]
        for name, values, shape in checked:
            check_numbers(name, values, shape, least=-np.inf)
        check_numbers("function_.bound", function.bound, ())
        check_numbers("function_.even", function.even, (), most=1.0)

    def _rule(self) -> Rule:
        return _FunctionRule(self.space_, self.centre_, self.function_)

    def _asked_at(self) -> str:
        return "centre" if self._in_one_pass and not self.constrained else "sample row"

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
