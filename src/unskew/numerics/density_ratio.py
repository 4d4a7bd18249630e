r"""Density ratios on a kernel basis: two losses, held out and minimised.

The ratio is :math:`w(x) = \alpha^\top \phi(x)` with :math:`\phi_l(x) = e^{t(x)} K(x, c_l)`, where
the tilt t is zero or linear. Kanamori, Hido and Sugiyama, "A least-squares approach to direct
importance estimation", JMLR 10 (2009), minimise the squared loss

.. math:: \tfrac12 \alpha^\top H \alpha - h^\top \alpha + \tfrac\lambda2 \alpha^\top \alpha, \quad
          H = \mathrm{mean}_S\, \phi\phi^\top, \quad h = \mathrm{mean}_U\, \phi

with the solution :math:`(H + \lambda I)^{-1} h`. For the relative ratio of Yamada and others (2011)
:math:`H = \rho\, \mathrm{mean}_U\, \phi\phi^\top + (1 - \rho)\, \mathrm{mean}_S\, \phi\phi^\top`.
The other loss is the likelihood, Sugiyama and others' KLIEP (2008):

.. math:: \max_{\alpha \ge 0} \sum_u v_u \log \alpha^\top \phi(u)
          \quad\text{with } \mathrm{mean}_S\, \alpha^\top \phi = 1.

With :math:`p_l = \alpha_l b_l`, where b is the mean of the basis over the sample, this is the
maximum likelihood of the proportions of a mixture: :math:`\max \sum_u v_u \log \sum_l p_l
\psi_l(u)` over the simplex, with :math:`\psi_l = \phi_l / b_l`. Few proportions are positive. The
solver holds those, adds the ones that would raise the likelihood most, and takes Newton steps under
:math:`p \ge 0` (Wang, "On fast computation of the non-parametric maximum likelihood estimate of a
mixing distribution", JRSS B 69, 2007). By concavity, :math:`\max_l \sum_u v_u \psi_l(u) / w(u) -
1` is an upper bound on how much higher the optimum is: the duality gap.

Kernel, tilt and λ are chosen by the loss on folds that were held out on both sides. Of the bases
within one standard error of the best, the last is taken: bases come from the narrowest to the
widest kernel, then those with a tilt likewise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from unskew.numerics.calibration import CalibrationProblem
from unskew.numerics.distances import Raking
from unskew.numerics.kernels import FAR, FARTHEST, Kernel, TiltedKernel, fill_matrix
from unskew.numerics.row_features import RowFeatures
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
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


KLIEP_TOLERANCE = 1e-8
"""Of the duality gap, in units of the mean log likelihood."""
MAX_ITERATIONS = 200
_NEGLIGIBLE = 1e-150
"""A value of the basis that counts as zero: the square of its inverse is still a number."""
_EM_STEPS = 10
"""Steps of expectation maximisation before the first Newton step. Not tuned."""
_ADDED = 10
"""Proportions that are added in a step. Not tuned."""


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


class Kliep(NamedTuple):
    """Coefficients, and how good they are.

    Attributes
    ----------
    coefficients : ndarray of shape (n_basis,)
    objective : float
        The mean over the population of the logarithm of the ratio, at the rows that the basis
        reaches.
    gap : float
        How far the objective is from its optimum at most.
    iterations : int
    converged : bool
    """

    coefficients: FloatArray
    objective: float
    gap: float
    iterations: int
    converged: bool


def solve_kliep(
    basis: FloatArray,
    weight: FloatArray,
    means: FloatArray,
    *,
    start: FloatArray | None = None,
    tolerance: float = KLIEP_TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Kliep:
    """Return the coefficients of largest likelihood.

    Parameters
    ----------
    basis : ndarray of shape (n_rows, n_basis)
        The basis at the population's rows; not negative.
    weight : ndarray of shape (n_rows,)
        Their weights, of any total.
    means : ndarray of shape (n_basis,)
        The means of the basis over the sample. Where one is zero, its coefficient is zero: the
        sample says nothing about it, and the likelihood would have no bound.
    start : ndarray of shape (n_basis,), optional
        The proportions, positive, to begin with; by default equal ones. Where several are the most
        likely, those near it are found.

    Examples
    --------
    Two cells: one holds half of the sample and three quarters of the population.

    >>> basis = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> solve_kliep(basis, np.ones(4), np.array([0.5, 0.5])).coefficients.round(6)
    array([1.5, 0.5])
    """
    used = np.flatnonzero(means > _NEGLIGIBLE)
    if len(used) < len(means):
        basis = basis[:, used]
    seen = (basis.max(axis=1, initial=0.0) > _NEGLIGIBLE) & (weight > 0)
    coefficients = np.zeros(len(means))
    if not seen.any():
        return Kliep(coefficients, -np.inf, np.inf, 0, False)
    if not seen.all():
        basis, weight = basis[seen], weight[seen]
    first = np.ones(len(used)) if start is None else start[used]
    likelihood = _Likelihood(basis, 1 / means[used], weight / weight.sum(), first / first.sum())
    proportions, gap, iterations = likelihood.maximise(tolerance, max_iterations)
    coefficients[used] = proportions / means[used]
    objective = likelihood.of(likelihood.values(proportions))
    return Kliep(coefficients, objective, gap, iterations, gap <= tolerance)


class _Likelihood(NamedTuple):
    """Of the proportions of a mixture with the components ψ, which are the basis times a scale."""

    basis: FloatArray
    scale: FloatArray
    shares: FloatArray
    start: FloatArray

    def values(self, proportions: FloatArray) -> FloatArray:
        """Return the values of the mixture, Σ p ψ, at each row."""
        return np.asarray(self.basis @ (self.scale * proportions))

    def of(self, values: FloatArray) -> float:
        """Return the mean log likelihood of a mixture with these values."""
        with np.errstate(divide="ignore"):
            return float(self.shares @ np.log(values))

    def maximise(self, tolerance: float, max_iterations: int) -> tuple[FloatArray, float, int]:
        """Return the proportions, the duality gap and the number of steps."""
        # 1) A step of EM multiplies each p by its gradient Σ v ψ/w: it never lowers the likelihood
        #    and soon shows which proportions are small.
        proportions = self.start
        for _ in range(_EM_STEPS):
            proportions = proportions * self._gradient(self.values(proportions))
        proportions = self._pruned(proportions / proportions.sum())
        # 2) Newton steps until the duality gap, the largest gradient less one, is small. It may
        #    rise while the likelihood does not fall: the place with the smallest is returned.
        best, gap, steps = proportions, np.inf, 0
        while True:
            values = self.values(proportions)
            gradient = self._gradient(values)
            now = float(gradient.max()) - 1.0
            if now < gap:
                best, gap = proportions, now
            if gap <= tolerance or steps >= max_iterations:
                return best, max(gap, 0.0), steps
            proportions = self._step(proportions, values, gradient)
            steps += 1

    def _gradient(self, values: FloatArray) -> FloatArray:
        return np.asarray(((self.shares / values) @ self.basis) * self.scale)

    def _pruned(self, proportions: FloatArray) -> FloatArray:
        """Leave out small proportions, as far as no row loses most of its likelihood."""
        values = self.values(proportions)
        for limit in (1e-2, 1e-4, 1e-6):
            kept: BoolArray = proportions >= limit * proportions.max()
            fewer = np.where(kept, proportions, 0.0)
            if (self.values(fewer) > 0.1 * values).all():
                return fewer / fewer.sum()
        return proportions

    def _step(
        self, proportions: FloatArray, values: FloatArray, gradient: FloatArray
    ) -> FloatArray:
        """Return better proportions: a Newton step under p ≥ 0, else one of EM."""
        promising = np.argsort(-gradient, kind="stable")[:_ADDED]
        promising = promising[gradient[promising] > 1.0]
        support = np.union1d(np.flatnonzero(proportions), promising)
        direction = -proportions
        direction[support] += self._newton(support, values, gradient[support])
        change = self.values(direction)
        # The likelihood less the sum of p, whose maximum has the sum one, is what Newton models.
        before = self.of(values) - proportions.sum()
        slope = float(gradient @ direction - direction.sum())
        length = 1.0
        while length > 1e-8 and slope > 0:
            moved = proportions + length * direction
            value = self.of(np.maximum(values + length * change, 0.0)) - moved.sum()
            if value >= before + 1e-4 * length * slope:
                moved[moved < 1e-15] = 0.0
                return moved / moved.sum()
            length /= 2
        return proportions * gradient  # never lowers the likelihood, and keeps the sum

    def _newton(self, support: IntArray, values: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the maximiser of the second-order model over non-negative p on the support."""
        # The log likelihood has the gradient g = Σ v ψ/w and the curvature −R with R = Σ v ψψᵀ/w².
        # At p, R p = g: the model of the likelihood less Σ q at q is (2g − 1)ᵀq − ½ qᵀR q, and with
        # R = UᵀU its maximum over q ≥ 0 is the least squares problem |U q − U⁻ᵀ(2g − 1)|.
        relative = self.basis[:, support] * self.scale[support]
        relative *= (np.sqrt(self.shares) / values)[:, None]
        hessian = relative.T @ relative
        # In flat directions, such as of equal components, proportions stay as they began.
        spread = self.start.max() / self.start[support]
        jitter = 1e-12 * float(np.trace(hessian)) / len(support)
        while True:
            try:
                factor = cholesky(hessian + np.diag(jitter * spread))
                break
            except LinAlgError:
                jitter *= 100
        linear = 2 * gradient - 1
        found, _ = nnls(factor, solve_triangular(factor, linear, trans="T"), maxiter=10**4)
        return np.asarray(found)
