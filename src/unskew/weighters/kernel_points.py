"""The distinct points of a sample, kernels between them, and what kernel weighters share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from unskew.numerics.cores import one_blas_thread
from unskew.numerics.kernels import FARTHEST, CustomKernel, GaussianKernel, Kernel, LaplaceKernel
from unskew.numerics.row_keys import distinct_points
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.kernel_sums import KernelSums, sum_of_waves
from unskew.population.summaries import Question, Summaries
from unskew.rows.design import Design, Scaling
from unskew.rows.sample import Sample
from unskew.weighters.base import Weighter
from unskew.weighters.parameters import Positive

FAMILIES = {"gaussian": GaussianKernel, "laplace": LaplaceKernel}

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
    def of(cls, sample: Sample, scaling: Scaling, *, centred: bool) -> KernelPoints:
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
        mine = weights[self.place] * sample.design[self.rows]
        spread = np.zeros(len(sample))
        spread[self.rows] = np.divide(mine, design, out=np.zeros_like(mine), where=design > 0)
        return spread

    def locate(self, batch: Any, *, side: str) -> FloatArray:
        """Return other rows as points."""
        values = self.space.transform(batch, side=side).values - self.centre
        return np.clip(values, -FARTHEST, FARTHEST)

    def sums(
        self, kernel: Kernel, at: FloatArray, frequencies: FloatArray | None, precision: str
    ) -> KernelSums:
        """Return the question for the population's kernel sums at some of the points."""
        dtype = np.float32 if precision == "single" else np.float64
        return KernelSums(self.space, kernel, at, self.centre, frequencies=frequencies, dtype=dtype)

    def distances(self, *weights: FloatArray, answer: KernelSums) -> list[float]:
        """Estimate the distance between the sample, with each of the weights, and the population.

        It uses random frequencies that no solver has seen; NaN for a custom kernel.
        """
        if answer.frequencies is None:
            return [float("nan")] * len(weights)
        sides = np.array(weights)
        with one_blas_thread():  # each product is too small to be shared
            mine = sum_of_waves(self.points, sides, answer.frequencies)
        apart = mine / sides.sum(axis=1, keepdims=True) - answer.waves / answer.mass
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


class Learned(NamedTuple):
    """What a kernel weighter asked its question with."""

    points: KernelPoints
    kernels: list[Kernel]
    drawn: IntArray
    """The points drawn as landmarks or centres."""
    precision: str
    state: Any
    """Of the random generator, after all this was drawn."""


class KernelWeighter(Weighter):
    """Matches the population's mean in the feature space of a kernel.

    Parameters
    ----------
    scaling : {"standard", "range", None}, default="standard"
        How numbers are scaled before distances are taken: to mean 0 and variance 1 on the sample,
        to [0, 1], or not at all. It determines what a bandwidth means: with ``None``, columns in
        large units dominate the others.
    precision : {"single", "double"}, default="single"
        The precision of the population's kernel values; they are added up in double precision in
        either case. Where sample points are more than 30 bandwidths from the centre, double is
        used; see ``precision_``.
    """

    scaling: Scaling = "standard"
    kernel: Literal["gaussian", "laplace"] | Callable[[Any, Any], Any] = "gaussian"
    bound: Positive = 1000.0
    precision: Literal["single", "double"] = "single"

    traits = replace(
        Weighter.traits,
        uncovered_means=(
            "the share of the population that holds unseen values, or at which the kernel of every "
            "sample row is below 0.01"
        ),
        judged_by="trees",
        matches_kernel_means=True,
    )

    def _points(self, sample: Sample) -> KernelPoints:
        return KernelPoints.of(sample, self.scaling, centred=not callable(self.kernel))

    def _ask_sums(
        self,
        points: KernelPoints,
        kernels: list[Kernel],
        n_drawn: int,
        random: np.random.RandomState,
        *,
        at_drawn: bool = False,
    ) -> Question[Summaries]:
        """Return the question for the sums of each kernel at all points, or at those drawn."""
        n_points, n_columns = points.points.shape
        frequencies = [one.draw_frequencies(n_columns, N_FREQUENCIES, random) for one in kernels]
        drawn = np.sort(random.permutation(n_points)[:n_drawn])
        # The error of single precision is 1e-7 of the largest squared norm, in bandwidths.
        widths = [getattr(kernel, "bandwidth", np.inf) for kernel in kernels]
        norms = [np.sum((points.points / width) ** 2, axis=1).max() for width in widths]
        precision = "double" if max(norms) > 1e3 else self.precision
        at = points.points[drawn] if at_drawn else points.points
        sums = [
            points.sums(kernel, at, waves, precision)
            for kernel, waves in zip(kernels, frequencies, strict=True)
        ]
        learned = Learned(points, kernels, drawn, precision, random.get_state())
        return Question(Summaries(sums), learned)

    def _finish(
        self, sample: Sample, answer: Question[Summaries], weights: FloatArray, place: int = 0
    ) -> FloatArray:
        """Describe the weights of points, made with one of the kernels; return those of rows."""
        learned, sums = answer.learned, answer.summary.parts[place]
        points = learned.points
        self.uncovered_ = sums.uncovered / sums.mass
        self.bandwidth_ = getattr(learned.kernels[place], "bandwidth", np.nan)
        self.precision_ = learned.precision
        self.space_, self.centre_ = points.space, points.centre
        self.mmd_before_, self.mmd_after_ = points.distances(
            points.design(sample), weights, answer=sums
        )
        return points.of_rows(weights, sample)

    def _asked_at(self) -> str:
        return "sample row"

    def _describe_uncovered(self) -> str:
        return (
            f"{self.uncovered_:.1%} of the population holds unseen values, or is too far from "
            f"every {self._asked_at()} for the kernel; the remaining distance (MMD) is "
            f"{self.mmd_after_:.3g}, before weighting {self.mmd_before_:.3g}. No weights make the "
            "sample represent it."
        )
