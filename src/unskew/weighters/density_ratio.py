"""The density ratio of population and sample, as a function on a kernel basis."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from unskew.errors import OverlapError, ParameterError, refuse_removed, warn_caller
from unskew.numerics.cores import one_blas_thread
from unskew.numerics.density_ratio import (
    KLIEP_TOLERANCE,
    MOST_COLUMNS_TILTED,
    SMOOTHINGS,
    KernelFunction,
    Kliep,
    LikelihoodLoss,
    Side,
    SquaredLoss,
    basis_blocks,
    choose,
    cross_kernel,
    held_out_losses,
    judged_folds,
    sample_range,
    tilt_towards,
)
from unskew.numerics.kernels import Kernel, TiltedKernel, blocks
from unskew.numerics.typing import FloatArray
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import Question, Summaries
from unskew.rows.design import Design, Scaling
from unskew.rows.sample import Rule, Sample
from unskew.weighters.inductive import check_numbers
from unskew.weighters.kernel_mean_matching import (
    FAMILIES,
    KernelPoints,
    median_distance,
    one_kernel,
)
from unskew.weighters.parameters import AtLeastOne, BelowOne, OneOrMore, Positive
from unskew.weighters.ratio import RatioWeighter
from unskew.weighters.two_samples import TwoSamples, rows_within

N_FOLDS = 5
"""The usual number. Not tuned."""
BANDWIDTH_FACTORS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
"""The bandwidths that are tried, in median distances."""
N_TILTED = 4
"""How many of the kernels are also tried with a tilt, the widest: a narrow kernel makes up any
smooth function by itself."""
MOST_PAIRS = 5 * 10**7
"""Pairs of population and sample rows at most on which coverage and distances are measured."""


class DensityRatioWeights(RatioWeighter):
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
        The number of centres, which are drawn population rows. A saved weighter holds them.
    smoothing : {"cv"} or float, default="cv"
        λ. The "kl" loss has none.
    tilt : {"cv"} or bool, default="cv"
        Whether the basis is tilted: t is then the exponential tilt under which the means of the
        columns match, with a small ridge, and the kernels correct it. "cv" tries both. There is no
        tilt for more than 200 encoded columns.
    population_rows : {"auto"} or int, default="auto"
        How many population rows are drawn, uniformly; "auto" is max(100,000, 20 m) for m sample
        rows, within 1 GB. Where the population has no more rows, nothing is lost.
    scaling : {"standard", "range", None}, default="standard"
        How numbers are scaled before distances are taken; see :class:`unskew.KernelMeanMatching`.
    kernel : {"gaussian", "laplace"}, default="gaussian"
    bound : float, default=1000.0
        The largest weight before weights are scaled to ``total``; their mean is one at that point.
    <Weighter parameters>
        It draws centres, folds and frequencies.

    Attributes
    ----------
    <Weighter attributes>
    bandwidth_ : float
    smoothing_ : float
        The λ that was used; zero for the "kl" loss.
    tilt_ : ndarray
        The slope of the tilt in each encoded column; zeros without one.
    cv_scores_ : dict of ndarray
        A table of what was compared, one entry for each basis and λ: bandwidth, tilted, smoothing,
        loss (on held-out rows) and its standard_error. Empty if nothing was.
    centres_, coefficients_ : ndarray
        The centres, in encoded columns, and α.
    gap_ : float
        With the "kl" loss, how far the objective is from its optimum at most (the duality gap).
    objective_ : float
        With the "kl" loss, the mean log ratio over the population rows that the basis reaches.
    uncovered_ : float
        The share of the population that holds unseen values, or at which the kernel of every sample
        row is below 0.01. Measured on drawn rows.

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
    relative: BelowOne = 0.0
    bandwidth: Positive | Literal["cv", "paper", "median"] = "cv"
    n_centres: OneOrMore = 200
    smoothing: Positive | Literal["cv"] = "cv"
    tilt: bool | Literal["cv"] = "cv"
    scaling: Scaling = "standard"
    kernel: Literal["gaussian", "laplace"] = "gaussian"
    bound: AtLeastOne = 1000.0
    centres: Any = None
    constrained: Any = None
    precision: Any = None

    _needs_rate = False
    traits = replace(
        RatioWeighter.traits,
        assumes="selection depends on the columns alone, and the density ratio is smooth",
        uncovered_means=(
            "the share of the population that holds unseen values, or at which the kernel of every "
            "sample row is below 0.01"
        ),
        judged_by="trees",
        not_certifiable="the weights of a kernel function are not confined to a known region",
        smoothed_by=("a smaller bound",),
        refused_above=np.inf,
    )

    def _check_parameters(self) -> None:
        refuse_removed("centres", self.centres, "Centres are drawn population rows")
        refuse_removed("constrained", self.constrained, "KernelMeanMatching() solves that program")
        refuse_removed("precision", self.precision, "Kernel values are in double precision")
        if self.loss == "kl" and self.relative > 0:
            raise ParameterError(f'relative={self.relative} is only for loss="squared".')

    def _learned_from(self, sample: Sample) -> tuple[int, int]:
        n_columns = len(sample.ordered.points(self.scaling)[0])
        if self.loss == "kl":  # which holds the basis at all rows, and copies of it
            n_columns += 4 * self.n_centres
        return rows_within(self.population_rows, len(sample), n_columns)

    def _two_samples(self, sample: Sample, drawn: Reservoir) -> TwoSamples:
        # Kernels are smooth: neither rounding nor a row on both sides separates the two.
        return TwoSamples.from_reservoir(sample, drawn, None, self.random_state, apart=False)

    def _in_folds(self, rows: TwoSamples) -> TwoSamples:
        return rows.in_folds(N_FOLDS)

    def _weights(self, sample: Sample, rows: TwoSamples, answer: Question[Summaries]) -> FloatArray:  # noqa: ARG002
        # 1) Both sides, centres, and what there is to choose from.
        points = KernelPoints.from_sample(sample, self.scaling, centred=True)
        random = check_random_state(self.random_state)
        pair = _sides(rows, points)
        centres = pair[1].points[: self.n_centres]
        bases = self._bases(points.points, random)
        loss, losses = self._ratio_loss(), None
        with one_blas_thread():
            # 2) Choose among them.
            if len(bases) * len(loss.smoothings) > 1:
                losses = held_out_losses(loss, bases, centres, pair, rows.n_folds)
            place, self.smoothing_ = self._choose(bases, loss.smoothings, losses)
            plain, tilted = bases[place]
            kernel = tilt_towards(plain, pair, sample_range(pair[0])) if tilted else plain
            # 3) Solve.
            basis = basis_blocks(kernel, centres, pair[0])
            if isinstance(loss, SquaredLoss):
                other_basis = basis_blocks(kernel, centres, pair[1])
                found = loss.minimise(basis, other_basis, self.smoothing_)
                alpha = np.zeros(len(centres)) if found is None else found
            else:
                others = cross_kernel(kernel, pair[1].points, centres), pair[1].weight
                reach = basis_blocks(plain, centres, pair[0])
                alpha = self._likeliest(loss.minimise(basis, others, reach))
        weights = self._make_function(points, sample, kernel, centres, alpha)
        # 4) How much is covered, by the first rows in a random order.
        n_rows = max(1, MOST_PAIRS // len(points.points))
        few, share = pair[1].points[:n_rows], pair[1].weight[:n_rows]
        prepared = plain.prepare(points.points)
        near = [
            plain.block(plain.prepare(few[part]), prepared).max(axis=1)
            for part in blocks(len(few), len(prepared))
        ]
        beyond = float(np.average(np.concatenate(near) < plain.far, weights=share))
        self.uncovered_ = min(1.0, self.uncovered_ + (1 - self.uncovered_) * beyond)
        self.bandwidth_ = float(getattr(plain, "bandwidth", np.nan))
        self.space_, self.centre_ = points.space, points.centre
        # One function of all rows weighs them: folds have only chosen it.
        self.codes_, self.folds_ = points.space.codes, rows.folds.none()
        return points.of_rows(weights, sample)

    def _bases(
        self, points: FloatArray, random: np.random.RandomState
    ) -> list[tuple[Kernel, bool]]:
        kernels = self._kernels(points, random)
        plain = [(kernel, False) for kernel in kernels]
        if not self.tilt or points.shape[1] > MOST_COLUMNS_TILTED:
            return plain
        tilted = [(kernel, True) for kernel in kernels[-N_TILTED:]]
        return tilted if self.tilt is True else plain + tilted

    def _likeliest(self, found: Kliep) -> FloatArray:
        self.gap_, self.objective_ = found.gap, found.objective
        if found.coefficients.any() and not found.converged:
            warn_caller(
                ConvergenceWarning(
                    f"The likelihood was maximised to a duality gap of {found.gap:.2g} in "
                    f"{found.iterations} steps, short of {KLIEP_TOLERANCE:.0e}. Use fewer centres "
                    "(n_centres=) or a larger bandwidth=."
                )
            )
        return found.coefficients

    def _ratio_loss(self) -> SquaredLoss | LikelihoodLoss:
        if self.loss == "kl":
            return LikelihoodLoss()
        smoothings = SMOOTHINGS if self.smoothing == "cv" else np.array([float(self.smoothing)])
        return SquaredLoss(self.relative, smoothings)

    def _kernels(self, points: FloatArray, random: np.random.RandomState) -> list[Kernel]:
        """Return the kernels among which to choose."""
        if self.bandwidth != "cv":
            return [one_kernel(self.kernel, self.bandwidth, points, random)]
        middle = median_distance(str(self.kernel), points, random)
        return [FAMILIES[str(self.kernel)](middle * factor) for factor in BANDWIDTH_FACTORS]

    def _choose(
        self, bases: list[tuple[Kernel, bool]], smoothings: FloatArray, losses: FloatArray | None
    ) -> tuple[int, float]:
        """Return a basis and λ by held-out losses, if there is a choice, and keep the losses."""
        self.cv_scores_: dict[str, FloatArray] = {}
        if losses is None:
            return 0, float(smoothings[0])
        judged = judged_folds(losses)
        if judged.size:
            widths = np.array([getattr(one, "bandwidth", np.nan) for one, _ in bases])
            error = judged.std(axis=2) / np.sqrt(max(1, judged.shape[2] - 1))
            self.cv_scores_ = {
                "bandwidth": np.repeat(widths, len(smoothings)),
                "tilted": np.repeat([tilted for _, tilted in bases], len(smoothings)),
                "smoothing": np.tile(smoothings, len(bases)),
                "loss": judged.mean(axis=2).ravel(),
                "standard_error": error.ravel(),
            }
        return choose(losses, smoothings)

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
        function = KernelFunction(kernel, centres, alpha, np.inf)
        values = function.weigh(points.points)
        if not (design * values).any():
            raise OverlapError(
                "Every sample row would get weight zero: at the bandwidth of the kernel, no "
                "centre is near a sample row. Raise bandwidth=, or weigh by other columns "
                "(columns=).",
                1.0,
            )
        function = replace(function, bound=self.bound).with_mean_one(values, design)
        self.function_, self.cap_, self.models_ = function, function.bound, {}
        self.coefficients_, self.centres_ = alpha, centres + points.centre
        self.tilt_ = kernel.tilt if isinstance(kernel, TiltedKernel) else np.zeros(n_columns)
        return design * function.weigh(points.points)

    def _ratios(self, log_ratios: FloatArray, codes: FloatArray) -> FloatArray:  # noqa: ARG002
        return self.function_.weigh(self.space_.of_codes(codes) - self.centre_)

    def _check_state(self) -> None:
        super()._check_state()
        function, n_columns = self.function_, len(self.space_)
        n_centres = len(function.centres)
        checked = [
            ("centre_", self.centre_, (n_columns,)),
            ("function_.centres", function.centres, (n_centres, n_columns)),
            ("function_.coefficients", function.coefficients, (n_centres,)),
        ]
        if isinstance(kernel := function.kernel, TiltedKernel):
            checked += [
                (f"function_.kernel.{name}", getattr(kernel, name), (n_columns,))
                for name in ("tilt", "low", "high")
            ]
        for name, values, shape in checked:
            check_numbers(name, values, shape, least=-np.inf)
        check_numbers("function_.bound", function.bound, ())

    def _rule(self) -> Rule:
        return partial(
            _weigh_batch, space=self.space_, centre=self.centre_, function=self.function_
        )


def _sides(rows: TwoSamples, points: KernelPoints) -> tuple[Side, Side]:
    """Return the distinct rows of either side, in the order of their keys: a random one."""
    located = points.points[points.of_sample(rows.order)]
    sides = located, points.locate(rows.batch, side="population")
    found = []
    each = zip(sides, rows.split(rows.keys), rows.split(rows.hashes), rows.shares, strict=True)
    for side, keys, hashes, shares in each:
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        mass: FloatArray = np.bincount(place.reshape(-1), shares).astype(np.float64)
        found.append(Side(side[first], mass, rows.folds.number(hashes[first])))
    return found[0], found[1]


def _weigh_batch(
    batch: Any, space: Design, centre: FloatArray, function: KernelFunction
) -> FloatArray:
    """Return the function's values, computed on one thread."""
    points = space.transform(batch, side="new rows").values - centre
    parts = blocks(len(points), len(function.centres))
    return np.concatenate([np.empty(0), *(function.weigh_block(points[p]) for p in parts)])
