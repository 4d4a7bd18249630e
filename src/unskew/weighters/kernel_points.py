"""The distinct points of a sample, and kernels between them: what kernel weighters share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from unskew.errors import InputError
from unskew.numerics.kernels import CustomKernel, GaussianKernel, Kernel, LaplaceKernel
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.feature_space import FeatureSpace, Scaling
from unskew.population.kernel_sums import KernelSums, sum_of_waves
from unskew.population.sample import Sample

__all__ = ["KernelPoints", "median_distance", "needed_precision", "one_kernel"]

N_FREQUENCIES = 256


@dataclass(frozen=True)
class KernelPoints:
    """The distinct points of the sample rows that count.

    Rows at the same point are one entry of a kernel program.

    Attributes
    ----------
    space : FeatureSpace
    centre : ndarray of shape (d,)
        Subtracted from all points: single precision then keeps more digits.
    points : ndarray of shape (k, d)
    rows : ndarray of int
        The sample rows with a positive design weight, in canonical order.
    place : ndarray of int
        The point of each of these rows.
    """

    space: FeatureSpace
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
        if not np.isfinite(points).all():
            raise InputError("Some values are too large to take distances. Rescale the columns.")
        points, place = np.unique(points, axis=0, return_inverse=True)
        centre = points.mean(axis=0) if centred else np.zeros(points.shape[1])
        return cls(space, centre, points - centre, rows, place.reshape(-1))

    def design(self, sample: Sample) -> FloatArray:
        """Return the design weight of each point, scaled to a mean of one over the rows."""
        design = np.bincount(self.place, weights=sample.design[self.rows])
        return design * (len(self.rows) / design.sum())

    def of_rows(self, weights: FloatArray, sample: Sample) -> FloatArray:
        """Spread the weights of points over the rows, in proportion to their design weights."""
        design = self.design(sample)[self.place]
        mine = weights[self.place] * sample.design[self.rows]
        spread = np.zeros(len(sample))
        spread[self.rows] = np.divide(mine, design, out=np.zeros_like(mine), where=design > 0)
        return spread

    def locate(self, batch: Any, *, side: str) -> FloatArray:
        """Return other rows as points."""
        return self.space.transform(batch, side=side).values - self.centre

    def sums(
        self, kernel: Kernel, at: FloatArray, frequencies: FloatArray | None, precision: str
    ) -> KernelSums:
        """Return the question for the population's kernel sums at some of the points."""
        dtype = np.float32 if precision == "single" else np.float64
        return KernelSums(self.space, kernel, at, self.centre, frequencies=frequencies, dtype=dtype)

    def distance(self, weights: FloatArray, answer: KernelSums) -> float:
        """Estimate the distance between the weighted sample and the population (MMD).

        It uses random frequencies that no solver has seen; NaN for a custom kernel.
        """
        if answer.frequencies is None:
            return float("nan")
        mine = sum_of_waves(self.points, weights, answer.frequencies) / weights.sum()
        return float(np.sqrt(np.mean(np.abs(mine - answer.waves / answer.mass) ** 2)))


def one_kernel(
    kernel: str | Callable[[Any, Any], Any],
    bandwidth: float | str,
    points: FloatArray,
    random: np.random.RandomState,
) -> Kernel:
    """Return the kernel that a name or function and a bandwidth describe."""
    if not isinstance(kernel, str):
        return CustomKernel(kernel)
    family = GaussianKernel if kernel == "gaussian" else LaplaceKernel
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


def needed_precision(kernels: list[Kernel], points: FloatArray, precision: str) -> str:
    """Return the precision asked for, or double where single is too coarse.

    The error of single precision is 1e-7 of the largest squared norm, in bandwidths.
    """
    widths = [getattr(kernel, "bandwidth", np.inf) for kernel in kernels]
    farthest = max(float(np.max(np.sum((points / width) ** 2, axis=1))) for width in widths)
    return "double" if farthest > 1e3 else precision
