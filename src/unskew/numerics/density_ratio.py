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
from scipy.linalg import cho_solve, lapack

from unskew.numerics.calibration import CalibrationProblem
from unskew.numerics.distances import Raking
from unskew.numerics.kernels import FAR, FARTHEST, Kernel, TiltedKernel, fill_matrix
from unskew.numerics.kliep import Kliep, solve_kliep
from unskew.numerics.point_folds import EVERY, N_FOLDS, PointFolds, Sums
from unskew.numerics.row_features import RowFeatures
from unskew.numerics.typing import FloatArray, IntArray

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
    """The distinct points of one side in the order of their hashes, which is a random one.

    Attributes
    ----------
    points : ndarray of shape (n, d)
    weight : ndarray of shape (n,)
        They sum to one.
    fold : ndarray of int
        Equal points of both sides have the same.
    """

    points: FloatArray
    weight: FloatArray
    fold: IntArray

    @classmethod
    def of(cls, points: FloatArray, weight: FloatArray, folds: PointFolds) -> Side:
        """Bring points together that are equal, with the sum of their weights."""
        hashes, first, place = np.unique(folds.hash(points), return_index=True, return_inverse=True)
        mass = np.bincount(place.reshape(-1), weights=weight, minlength=len(first))
        kept = np.flatnonzero(mass > 0)
        shares = mass[kept] / mass.sum()
        return cls(points[first[kept]], shares, folds.of_hashes(hashes[kept]))

    def take(self, n_rows: int) -> Side:
        """Return the first rows, which are a random choice."""
        if n_rows >= len(self.fold):
            return self
        weight = self.weight[:n_rows]
        return Side(self.points[:n_rows], weight / weight.sum(), self.fold[:n_rows])

    def counting(self) -> Side:
        """Return the rows with a positive weight."""
        kept = np.flatnonzero(self.weight)
        return Side(self.points[kept], self.weight[kept], self.fold[kept])

    def parts(self) -> Iterator[Side]:
        """Yield the rows, some at a time."""
        for begin in range(0, len(self.weight), ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            yield Side(self.points[part], self.weight[part], self.fold[part])

    def held_out(self, fold: int) -> tuple[FloatArray, FloatArray]:
        """Return the weight of each row in training and in testing."""
        share = np.where(self.fold == EVERY, 1 / N_FOLDS, self.fold == fold)
        return self.weight * (1 - share), self.weight * share


Both = tuple[Sums, Sums]
"""Of the sample and the population."""


class SquaredLoss(NamedTuple):
    """½ αᵀHα − hᵀα."""

    quadratic: FloatArray
    linear: FloatArray

    @classmethod
    def of(cls, mine: Sums, theirs: Sums, relative: float) -> SquaredLoss | None:
        """Return the loss, or None if one of the sides is empty."""
        if min(mine.mass, theirs.mass) <= NOTHING or mine.second is None:
            return None
        quadratic = (1 - relative) * mine.second / mine.mass
        if theirs.second is not None:
            quadratic = quadratic + relative * theirs.second / theirs.mass
        return cls(quadratic, theirs.first / theirs.mass)

    def minimise(self, smoothing: float) -> FloatArray:
        """Return (H + λI)⁻¹ h."""
        system = self.quadratic + smoothing * np.eye(len(self.linear))
        factor, failed = lapack.dpotrf(system, lower=1, clean=1)
        if failed:  # λ is beyond the rounding of H
            return np.asarray(np.linalg.lstsq(system, self.linear, rcond=None)[0])
        return np.asarray(cho_solve((factor, True), self.linear))

    def minimisers(self, smoothings: FloatArray) -> FloatArray:
        """Return the coefficients for many λ from one decomposition, a column each."""
        values, vectors = np.linalg.eigh(self.quadratic)
        projected = vectors.T @ self.linear
        return np.asarray(vectors @ (projected[:, None] / (values.clip(0)[:, None] + smoothings)))

    def at(self, coefficients: FloatArray) -> FloatArray:
        """Return the loss of each column of coefficients."""
        curved = 0.5 * np.einsum("ls,ls->s", coefficients, self.quadratic @ coefficients)
        return np.asarray(curved - self.linear @ coefficients)


class Candidate(NamedTuple):
    """A basis that may be chosen."""

    kernel: Kernel
    tilted: bool


class Task(NamedTuple):
    """What is estimated, and how it is judged."""

    loss: Loss
    relative: float
    smoothings: FloatArray

    def held_out(
        self,
        candidates: Sequence[Candidate],
        centres: FloatArray,
        mine: Side,
        theirs: Side,
        bounds: tuple[FloatArray, FloatArray],
    ) -> FloatArray:
        """Return the loss of each candidate and λ in each fold; NaN where a side has no rows."""
        most = MOST_ROWS_JUDGED[self.loss]
        mine, theirs = mine.take(most), theirs.take(most)
        tilts: list[TiltedKernel | None] = [None] * N_FOLDS
        if any(candidate.tilted for candidate in candidates):
            tilts = [
                _tilt_of_fold(candidates[0].kernel, mine, theirs, fold, bounds)
                for fold in range(N_FOLDS)
            ]
        losses = np.empty((len(candidates), len(self.smoothings), N_FOLDS))
        judge = self._squared if self.loss == "squared" else self._likelihood
        for place, (kernel, tilted) in enumerate(candidates):
            plain = [cross_kernel(kernel, side.points, centres) for side in (mine, theirs)]
            bases = _Bases(mine, theirs, plain, tilts if tilted else [None] * N_FOLDS)
            losses[place] = judge(bases)
        return losses

    def _squared(self, bases: _Bases) -> FloatArray:
        losses = np.empty((len(self.smoothings), N_FOLDS))
        total = None
        for fold in range(N_FOLDS):
            both = bases.tilted(fold)
            if total is None or bases.tilts[fold] is not None:
                total = self._sums(both, [side.weight for side in bases[:2]])
            tested = self._sums(both, [side.held_out(fold)[1] for side in bases[:2]])
            trained = total[0] - tested[0], total[1] - tested[1]
            losses[:, fold] = self.losses_of_sums(trained, tested)
        return losses

    def _sums(self, bases: Sequence[FloatArray], weights: Sequence[FloatArray]) -> Both:
        """Return the sums of the bases of both sides with these weights."""
        found = []
        for basis, weight, squares in zip(bases, weights, (True, self.relative > 0), strict=True):
            rows = np.flatnonzero(weight)
            part = (basis, weight) if len(rows) == len(weight) else (basis[rows], weight[rows])
            found.append(Sums.of(*part, squares=squares))
        return found[0], found[1]

    def losses_of_sums(self, trained: Both, tested: Both) -> FloatArray:
        """Return the squared loss of each λ from the sums of both sides."""
        train, test = (SquaredLoss.of(*both, self.relative) for both in (trained, tested))
        if train is None or test is None:
            return np.full(len(self.smoothings), np.nan)
        return test.at(train.minimisers(self.smoothings))

    def _likelihood(self, bases: _Bases) -> FloatArray:
        losses = np.full((1, N_FOLDS), np.nan)
        for fold in range(N_FOLDS):
            (train, test), (their_train, their_test) = (s.held_out(fold) for s in bases[:2])
            if min(one.sum() for one in (train, test, their_train, their_test)) <= NOTHING:
                continue
            mine, theirs = bases.tilted(fold)
            tops = bases.plain[0][train > 0].max(axis=0)
            means = means_in_reach(train @ mine / train.sum(), tops)
            found = solve_kliep(theirs, their_train, means, tolerance=1e-4, max_iterations=20)
            if not found.coefficients.any():  # the training rows are out of each other's reach
                losses[0, fold] = NO_FUNCTION
                continue
            # Of all functions, not only those of mean one, the ratio is the one with the smallest
            # mean_S w − mean_U log w.
            average = np.average(mine @ found.coefficients, weights=test)
            logs = np.log(np.maximum(theirs @ found.coefficients, LEAST_RATIO))
            losses[0, fold] = average - np.average(logs, weights=their_test)
        return losses


class _Bases(NamedTuple):
    """One kernel between both sides and the centres, and the tilt of each fold."""

    mine: Side
    theirs: Side
    plain: list[FloatArray]
    tilts: Sequence[TiltedKernel | None]

    def tilted(self, fold: int) -> list[FloatArray]:
        """Return the basis at the rows of both sides, with the tilt of a fold."""
        tilt = self.tilts[fold]
        if tilt is None:
            return self.plain
        sides = (self.mine, self.theirs)
        return [
            basis * tilt.factors(side.points)[:, None]
            for basis, side in zip(self.plain, sides, strict=True)
        ]


def means_in_reach(means: FloatArray, tops: FloatArray) -> FloatArray:
    """Return the means of a basis over the sample, zero for centres that no sample row reaches.

    ``tops`` are the kernel's largest values between each centre and a sample row. Where none is
    reached, all count that are not negligible in floating point.
    """
    reached = tops >= FAR
    return np.asarray(np.where(reached, means, 0.0) if reached.any() else means)


def maximise_likelihood(
    plain: Kernel, kernel: Kernel, centres: FloatArray, mine: Side, theirs: Side
) -> Kliep:
    """Return the coefficients of largest likelihood on the basis of a kernel.

    ``plain`` is the kernel without its tilt.
    """
    tops = np.zeros(len(centres))
    for part in mine.parts():
        tops = np.maximum(tops, cross_kernel(plain, part.points, centres).max(axis=0))
    means = means_in_reach(sum_basis(kernel, centres, mine, squares=False).first, tops)
    return solve_kliep(cross_kernel(kernel, theirs.points, centres), theirs.weight, means)


def judged_folds(losses: FloatArray) -> FloatArray:
    """Return the losses of the folds that have rows of both sides."""
    return losses[:, :, ~np.isnan(losses).all(axis=(0, 1))]


class Smoothing(NamedTuple):
    """What cross-validation chose."""

    candidate: int
    smoothing: float


def choose(losses: FloatArray, smoothings: FloatArray) -> Smoothing:
    """Return the last candidate within one standard error of the best, with its own best λ.

    Candidates come from the narrowest to the widest kernel, then those with a tilt likewise.
    Without any fold that could be judged, it is the last candidate with the λ nearest to 0.1.
    """
    judged = judged_folds(losses)
    if not judged.size:
        return Smoothing(len(losses) - 1, float(smoothings[np.abs(smoothings - 0.1).argmin()]))
    best = np.unravel_index(np.argmin(judged.mean(axis=2)), judged.shape[:2])
    behind = judged - judged[best]
    error = behind.std(axis=2) / np.sqrt(max(1, judged.shape[2] - 1))
    candidate = int(np.argwhere(behind.mean(axis=2) <= error)[-1][0])
    return Smoothing(candidate, float(smoothings[judged[candidate].mean(axis=1).argmin()]))


def tilt_towards(
    kernel: Kernel,
    mine: Side,
    theirs: Side,
    bounds: tuple[FloatArray, FloatArray],
) -> TiltedKernel:
    """Return the kernel times the exponential tilt under which the columns' means match.

    It is fitted within the sample's range, so that single far rows do not set it, and is nowhere
    larger than on the sample. Its mean there is one.
    """
    low, high = bounds
    shares, target = mine.weight / mine.weight.sum(), theirs.weight / theirs.weight.sum()
    points = np.clip(mine.points, low, high)
    mean = target @ np.clip(theirs.points, low, high)
    n_columns = points.shape[1]
    found = CalibrationProblem(
        RowFeatures.of([points - mean]),
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


def _tilt_of_fold(
    kernel: Kernel,
    mine: Side,
    theirs: Side,
    fold: int,
    bounds: tuple[FloatArray, FloatArray],
) -> TiltedKernel | None:
    parts = [side._replace(weight=side.held_out(fold)[0]).counting() for side in (mine, theirs)]
    if not all(len(part.weight) for part in parts):
        return None
    return tilt_towards(kernel, parts[0], parts[1], bounds)


def sum_basis(kernel: Kernel, centres: FloatArray, side: Side, *, squares: bool) -> Sums:
    """Return the sums of a basis over one side, in blocks."""
    size = len(centres)
    total = Sums(0.0, np.zeros(size), np.zeros((size, size)) if squares else None)
    for part in side.parts():
        basis = cross_kernel(kernel, part.points, centres)
        total = total + Sums.of(basis, part.weight, squares=squares)
    return total


def minimise_squared(mine: Sums, theirs: Sums, relative: float, smoothing: float) -> FloatArray:
    """Return the coefficients of the smallest squared loss; zeros if a side is empty."""
    loss = SquaredLoss.of(mine, theirs, relative)
    return np.zeros(len(theirs.first)) if loss is None else loss.minimise(smoothing)
