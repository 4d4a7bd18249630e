r"""Density ratios on a kernel basis: two losses, held out and minimised.

The ratio is :math:`w(x) = \alpha^\top \phi(x)` with :math:`\phi_l(x) = e^{t(x)} K(x, c_l)`, where
the tilt t is zero or linear. Kanamori, Hido and Sugiyama, "A least-squares approach to direct
importance estimation", JMLR 10 (2009), minimise the squared loss

.. math:: \tfrac12 \alpha^\top H \alpha - h^\top \alpha + \tfrac\lambda2 \alpha^\top \alpha, \quad
          H = \mathrm{mean}_S\, \phi\phi^\top, \quad h = \mathrm{mean}_U\, \phi

with the solution :math:`(H + \lambda I)^{-1} h`. For the relative ratio of Yamada and others (2011)
:math:`H = \rho\, \mathrm{mean}_U\, \phi\phi^\top + (1 - \rho)\, \mathrm{mean}_S\, \phi\phi^\top`.
The other loss is that of :mod:`~unskew.numerics.kliep`.

Kernel, tilt and λ are chosen by the loss on folds that were held out on both sides. Of the bases
within one standard error of the best, the last is taken: bases come from the narrowest to the
widest kernel, then those with a tilt likewise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from unskew.numerics.calibration import CalibrationProblem
from unskew.numerics.distances import Raking
from unskew.numerics.kernels import FAR, FARTHEST, Kernel, TiltedKernel, fill_matrix
from unskew.numerics.kliep import Kliep, solve_kliep
from unskew.numerics.row_features import RowFeatures
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.value_folds import AVERAGE

SMOOTHINGS = 10.0 ** np.arange(-6.0, 1.5, 0.5)
"""The λ among which cross-validation chooses. Kernel values are at most one: the first hardly
smooths, and with the last the ratio is nearly a sum of equal kernels."""

MOST_ROWS_JUDGED = {"squared": 10_000, "kl": 2_000}
"""Rows of either side at most that cross-validation uses, to bound its time. Not tuned."""

RIDGE_OF_TILT = 0.01
"""In units of the variance of a column, so that a tilt is finite where the sides are apart."""

MOST_COLUMNS_TILTED = 200

NOTHING = 1e-9
"""A share of a side's mass that is none, up to rounding."""

NO_FUNCTION = 1e100
"""The loss of a basis without a function."""

LEAST_RATIO = 1e-3
"""The logarithm of a held-out ratio is that of this at least: one row that no kernel reaches would
otherwise decide alone."""

Loss = Literal["squared", "kl"]


ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class KernelFunction:
    r"""A weight function, :math:`\sum_l \alpha_l K(x, c_l)`, between zero and a bound.

    Attributes
    ----------
    kernel : Kernel
    centres : ndarray of shape (n_centres, d)
    coefficients : ndarray of shape (n_centres,)
    bound : float
        The largest weight, never above the sample's own.
    """

    kernel: Kernel
    centres: FloatArray
    coefficients: FloatArray
    bound: float

    def with_mean_one(self, values: FloatArray, design: FloatArray) -> KernelFunction:
        """Return the function scaled to a mean of one within the bound.

        ``values`` are those of the sample rows, not negative and not all zero.
        """
        scale = _mean_one_factor(values, design, self.bound)
        bound = min(self.bound, scale * float(values.max()))
        return replace(self, coefficients=self.coefficients * scale, bound=bound)

    def weigh(self, points: FloatArray) -> FloatArray:
        """Return w(x) for each point."""
        points = np.clip(points, -FARTHEST, FARTHEST)
        return self._at(cross_kernel(self.kernel, points, self.centres))

    def weigh_block(self, points: FloatArray) -> FloatArray:
        """Return w(x) for a few points, without threads."""
        prepared = self.kernel.prepare(np.clip(points, -FARTHEST, FARTHEST))
        return self._at(self.kernel.block(prepared, self.kernel.prepare(self.centres)))

    def _at(self, basis: FloatArray) -> FloatArray:
        """Return w(x) from the kernel between points and centres."""
        return np.clip(basis @ self.coefficients, 0.0, self.bound)


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


def cross_kernel(kernel: Kernel, points: FloatArray, centres: FloatArray) -> FloatArray:
    """Return the kernel between points and centres in double precision."""
    values = np.empty((len(points), len(centres)))
    return fill_matrix(kernel, kernel.prepare(points), kernel.prepare(centres), values)


class Side(NamedTuple):
    """The distinct rows of one side, in a random order.

    Attributes
    ----------
    points : ndarray of shape (n, d)
    weight : ndarray of shape (n,)
        They sum to one.
    fold : ndarray of int
        Equal rows of both sides have the same; ``AVERAGE`` where a row is in all of them.
    """

    points: FloatArray
    weight: FloatArray
    fold: IntArray

    def take(self, n_rows: int) -> Side:
        """Return the first rows, which are a random choice."""
        if n_rows >= len(self.fold):
            return self
        weight = self.weight[:n_rows]
        return Side(self.points[:n_rows], weight / weight.sum(), self.fold[:n_rows])

    def parts(self) -> Iterator[Side]:
        """Yield the rows, some at a time."""
        for begin in range(0, len(self.weight), ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            yield Side(self.points[part], self.weight[part], self.fold[part])

    def held_out(self, fold: int, n_folds: int) -> tuple[FloatArray, FloatArray]:
        """Return the weight of each row in training and in testing."""
        share = np.where(self.fold == AVERAGE, 1 / n_folds, self.fold == fold)
        return self.weight * (1 - share), self.weight * share


Pair = tuple[Side, Side]
"""The sample and the population."""


class SquaredLoss(NamedTuple):
    """½ αᵀHα − hᵀα."""

    quadratic: FloatArray
    linear: FloatArray

    @classmethod
    def from_sums(cls, both: Sequence[FloatArray], relative: float) -> SquaredLoss | None:
        """Return the loss with the sums of both sides, or None if one of the sides is empty."""
        sample, population = both
        masses = sample[0, 0], population[0, 0]
        if min(masses) <= NOTHING:
            return None
        quadratic = (1 - relative) * sample[1:, 1:] / masses[0]
        if relative:
            quadratic += relative * population[1:, 1:] / masses[1]
        return cls(quadratic, population[0, 1:] / masses[1])

    def minimisers(self, smoothings: FloatArray) -> FloatArray:
        """Return (H + λI)⁻¹ h for many λ from one decomposition, a column each."""
        values, vectors = np.linalg.eigh(self.quadratic)
        projected = vectors.T @ self.linear
        return np.asarray(vectors @ (projected[:, None] / (values.clip(0)[:, None] + smoothings)))

    def at(self, coefficients: FloatArray) -> FloatArray:
        """Return the loss of each column of coefficients."""
        curved = 0.5 * np.einsum("ls,ls->s", coefficients, self.quadratic @ coefficients)
        return np.asarray(curved - self.linear @ coefficients)


def sums_of(basis: FloatArray, weight: FloatArray, *, squares: bool) -> FloatArray:
    """Return Σ v zzᵀ with z = (1, φ): mass, sums and, with squares, products of a basis.

    Without squares only the first row, mass and sums. Sums of parts add up to those of all rows.
    """
    rows = np.flatnonzero(weight)
    if len(rows) < len(weight):
        basis, weight = basis[rows], weight[rows]
    if not squares:
        return np.append(weight.sum(), weight @ basis)[None, :]
    scaled = np.insert(basis, 0, 1.0, axis=1)
    scaled *= np.sqrt(weight)[:, None]
    return np.asarray(scaled.T @ scaled)  # of which BLAS computes one half


class RatioBasis(NamedTuple):
    """A basis that may be chosen."""

    kernel: Kernel
    tilted: bool


class RatioTask(NamedTuple):
    """What is estimated, and how it is judged."""

    loss: Loss
    relative: float
    smoothings: FloatArray
    n_folds: int

    def held_out(self, bases: Sequence[RatioBasis], centres: FloatArray, pair: Pair) -> FloatArray:
        """Return the loss of each basis and λ in each fold; NaN where a side has no rows."""
        most = MOST_ROWS_JUDGED[self.loss]
        bounds = sample_range(pair[0])
        pair = pair[0].take(most), pair[1].take(most)
        tilts: list[TiltedKernel | None] = [None] * self.n_folds
        if any(basis.tilted for basis in bases):
            folds, first = range(self.n_folds), bases[0].kernel
            tilts = [self._tilt(first, pair, fold, bounds) for fold in folds]
        losses = np.empty((len(bases), len(self.smoothings), self.n_folds))
        judge = self._squared if self.loss == "squared" else self._likelihood
        for place, (kernel, tilted) in enumerate(bases):
            plain = [cross_kernel(kernel, side.points, centres) for side in pair]
            whole = None  # the sums over all folds, which a tilt changes in each
            for fold, tilt in enumerate(tilts):
                values = plain
                if tilted and tilt is not None:
                    factors = (tilt.factors(side.points)[:, None] for side in pair)
                    values = [one * factor for one, factor in zip(plain, factors, strict=True)]
                if self.loss == "squared" and (whole is None or values is not plain):
                    whole = self._sums(values, [side.weight for side in pair])
                weights = [side.held_out(fold, self.n_folds) for side in pair]
                losses[place, :, fold] = judge(values, weights, whole or plain)
        return losses

    def _tilt(
        self, kernel: Kernel, pair: Pair, fold: int, bounds: tuple[FloatArray, FloatArray]
    ) -> TiltedKernel | None:
        """Return the tilt outside of a fold, or None if a side has no rows there."""
        parts = []
        for side in pair:
            train = side.held_out(fold, self.n_folds)[0]
            kept = np.flatnonzero(train)
            parts.append(Side(side.points[kept], train[kept], side.fold[kept]))
        if not all(len(part.weight) for part in parts):
            return None
        return tilt_towards(kernel, (parts[0], parts[1]), bounds)

    def _sums(self, bases: list[FloatArray], weights: list[FloatArray]) -> list[FloatArray]:
        squares = (True, self.relative > 0)
        each = zip(bases, weights, squares, strict=True)
        return [sums_of(basis, weight, squares=which) for basis, weight, which in each]

    def _squared(
        self,
        bases: list[FloatArray],
        weights: list[tuple[FloatArray, FloatArray]],
        whole: list[FloatArray],
    ) -> FloatArray:
        tested = self._sums(bases, [test for _, test in weights])
        trained = [every - part for every, part in zip(whole, tested, strict=True)]
        train, test = (SquaredLoss.from_sums(both, self.relative) for both in (trained, tested))
        if train is None or test is None:
            return np.full(len(self.smoothings), np.nan)
        return test.at(train.minimisers(self.smoothings))

    def _likelihood(
        self,
        bases: list[FloatArray],
        weights: list[tuple[FloatArray, FloatArray]],
        plain: list[FloatArray],
    ) -> float:
        (train, test), (other_train, other_test) = weights
        if min(one.sum() for one in (train, test, other_train, other_test)) <= NOTHING:
            return np.nan
        sample, population = bases
        tops = plain[0][train > 0].max(axis=0)
        means = means_in_reach(train @ sample / train.sum(), tops)
        found = solve_kliep(population, other_train, means, tolerance=1e-4, max_iterations=20)
        if not found.coefficients.any():  # the training rows are out of each other's reach
            return NO_FUNCTION
        # Of all functions, not only those of mean one, the ratio is the one with the smallest
        # mean_S w − mean_U log w.
        average = np.average(sample @ found.coefficients, weights=test)
        logs = np.log(np.maximum(population @ found.coefficients, LEAST_RATIO))
        return float(average - np.average(logs, weights=other_test))


def means_in_reach(means: FloatArray, tops: FloatArray) -> FloatArray:
    """Return the means of a basis over the sample, zero for centres that no sample row reaches.

    ``tops`` are the kernel's largest values between each centre and a sample row. Where none is
    reached, all count that are not negligible in floating point.
    """
    reached = tops >= FAR
    return np.asarray(np.where(reached, means, 0.0) if reached.any() else means)


def maximise_likelihood(plain: Kernel, kernel: Kernel, centres: FloatArray, pair: Pair) -> Kliep:
    """Return the coefficients of largest likelihood on the basis of a kernel.

    ``plain`` is the kernel without its tilt.
    """
    sample, population = pair
    tops, means = np.zeros(len(centres)), np.zeros(len(centres))
    for part in sample.parts():
        tops = np.maximum(tops, cross_kernel(plain, part.points, centres).max(axis=0))
        means += part.weight @ cross_kernel(kernel, part.points, centres)
    basis = cross_kernel(kernel, population.points, centres)
    return solve_kliep(basis, population.weight, means_in_reach(means, tops))


def minimise_squared(
    kernel: Kernel, centres: FloatArray, pair: Pair, relative: float, smoothing: float
) -> FloatArray:
    """Return the coefficients of the smallest squared loss; zeros if a side is empty."""
    width = 1 + len(centres)
    both = np.zeros((width, width)), np.zeros((width if relative else 1, width))
    for total, side in zip(both, pair, strict=True):
        for part in side.parts():
            basis = cross_kernel(kernel, part.points, centres)
            total += sums_of(basis, part.weight, squares=len(total) > 1)
    loss = SquaredLoss.from_sums(both, relative)
    return np.zeros(len(centres)) if loss is None else loss.minimisers(np.array([smoothing]))[:, 0]


def judged_folds(losses: FloatArray) -> FloatArray:
    """Return the losses of the folds that have rows of both sides."""
    return losses[:, :, ~np.isnan(losses).all(axis=(0, 1))]


def choose(losses: FloatArray, smoothings: FloatArray) -> tuple[int, float]:
    """Return the last candidate within one standard error of the best, and its own best λ.

    Candidates come from the narrowest to the widest kernel, then those with a tilt likewise.
    Without any fold that could be judged, it is the last candidate with the λ nearest to 0.1.
    """
    judged = judged_folds(losses)
    if not judged.size:
        return len(losses) - 1, float(smoothings[np.abs(smoothings - 0.1).argmin()])
    best = np.unravel_index(np.argmin(judged.mean(axis=2)), judged.shape[:2])
    behind = judged - judged[best]
    error = behind.std(axis=2) / np.sqrt(max(1, judged.shape[2] - 1))
    candidate = int(np.argwhere(behind.mean(axis=2) <= error)[-1][0])
    return candidate, float(smoothings[judged[candidate].mean(axis=1).argmin()])


def sample_range(sample: Side) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each column."""
    return sample.points.min(axis=0), sample.points.max(axis=0)


def tilt_towards(kernel: Kernel, pair: Pair, bounds: tuple[FloatArray, FloatArray]) -> TiltedKernel:
    """Return the kernel times the exponential tilt under which the columns' means match.

    It is fitted within the sample's range, so that single far rows do not set it, and is nowhere
    larger than on the sample. Its mean there is one.
    """
    low, high = bounds
    shares, target = (side.weight / side.weight.sum() for side in pair)
    points, others = (np.clip(side.points, low, high) for side in pair)
    n_columns = points.shape[1]
    found = CalibrationProblem(
        RowFeatures.of([points - target @ others]),
        shares,
        Raking(),
        1.0,
        np.zeros(n_columns),
        np.full(n_columns, RIDGE_OF_TILT),
    ).solve()
    tilt = found.multipliers
    if not np.isfinite(tilt).all():
        tilt = np.zeros(n_columns)
    scores = points @ tilt
    top = float(scores.max())
    shift = top + float(np.log(shares @ np.exp(scores - top)))
    return TiltedKernel(kernel, tilt, shift, low=low, high=high, most=top - shift)
