r"""Density ratios on a kernel basis: two losses, held out on folds and minimised.

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
solver takes Newton steps under :math:`p \ge 0` on those and on the ones that would raise the
likelihood most (Wang, "On fast computation of the non-parametric maximum likelihood estimate of a
mixing distribution", JRSS B 69, 2007). By concavity, :math:`\max_l \sum_u v_u \psi_l(u) / w(u) -
1` is an upper bound on how much higher the optimum is: the duality gap.

Kernel, tilt and λ are chosen by the loss on folds that were held out on both sides. Of the bases
within one standard error of the best, the last is taken: bases come from the narrowest to the
widest kernel, then those with a tilt likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from unskew.numerics import newton
from unskew.numerics.calibration import CalibrationProblem
from unskew.numerics.distances import Raking
from unskew.numerics.kernels import FAR, FARTHEST, Kernel, TiltedKernel, fill_matrix
from unskew.numerics.row_features import RowFeatures, weighted_moments
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.value_folds import AVERAGE
from unskew.numerics.weight_vectors import ratio_cap

SMOOTHINGS = 10.0 ** np.arange(-6.0, 1.5, 0.5)
"""The λ among which cross-validation chooses. Kernel values are at most one: the first hardly
smooths, and with the last the ratio is nearly a sum of equal kernels."""

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
_NEAR = 1e-9
"""The promised fall below which whole steps are taken: the last digits of the likelihood would
reject steps that are right."""


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
        # min(f w, bound) has mean one where min(w, c) has the mean c / bound, with f = bound / c.
        capped = np.minimum(values, ratio_cap(values, design, self.bound))
        scale = float(1.0 / np.average(capped, weights=design))
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

    def held_out(self, fold: int, n_folds: int) -> tuple[FloatArray, FloatArray]:
        """Return the weight of each row in training and in testing."""
        share = np.where(self.fold == AVERAGE, 1 / n_folds, self.fold == fold)
        return self.weight * (1 - share), self.weight * share


Pair = tuple[Side, Side]
"""The sample and the population."""

Blocks = Iterable[tuple[FloatArray, FloatArray]]
"""The basis at some rows of a side, and the weights of these rows; further rows follow."""

Values = Sequence[FloatArray]
"""The basis at the rows of the sample and of the population."""

Split = Sequence[tuple[FloatArray, FloatArray]]
"""The weights of either side's rows in training and in testing."""


class SquaredLoss(NamedTuple):
    """½ αᵀHα − hᵀα + λ αᵀα / 2, of the ratio or, with ρ > 0, of the relative ratio."""

    relative: float
    smoothings: FloatArray
    most_rows: int = 10_000
    """Rows of either side at most that cross-validation uses, to bound its time. Not tuned."""

    def held_out(
        self, values: Callable[[int], Values], folds: Sequence[Split], plain: Values
    ) -> FloatArray:
        """Return the loss of each λ on each fold's rows; NaN where a side has none."""
        losses = np.full((len(self.smoothings), len(folds)), np.nan)
        whole: list[FloatArray] = []
        for fold, split in enumerate(folds):
            basis, (train, test) = values(fold), zip(*split, strict=True)
            tested = self._sums(*([side] for side in zip(basis, test, strict=True)))
            if basis is plain:  # then the rows of a fold leave what the others sum to
                all_rows = [own + held for own, held in split]
                whole = whole or self._sums(*([side] for side in zip(plain, all_rows, strict=True)))
                trained = [np.subtract(*both) for both in zip(whole, tested, strict=True)]
            else:
                trained = self._sums(*([side] for side in zip(basis, train, strict=True)))
            if min(*trained[0], *tested[0]) > NOTHING:
                alpha = _ridge_solutions(*self._terms(trained), self.smoothings)
                quadratic, linear = self._terms(tested)
                curved = 0.5 * np.einsum("ls,ls->s", alpha, quadratic @ alpha)
                losses[:, fold] = curved - linear @ alpha
        return losses

    def minimise(self, sample: Blocks, population: Blocks, smoothing: float) -> FloatArray | None:
        """Return the coefficients of the smallest loss; None if a side is empty."""
        sums = self._sums(sample, population)
        if sums[0].min() <= NOTHING:
            return None
        return _ridge_solutions(*self._terms(sums), np.array([smoothing]))[:, 0]

    def _sums(self, sample: Blocks, population: Blocks) -> list[FloatArray]:
        """Return the masses of both sides, the population's Σ φ, and both sides' Σ φφᵀ."""
        masses: FloatArray = np.zeros(2)
        linear: FloatArray = np.zeros(1)
        grams: list[FloatArray] = [np.zeros((1, 1)), np.zeros((1, 1))]
        for basis, weight in sample:
            masses[0] += weight.sum()
            grams[0] = grams[0] + weighted_moments(basis, weight).gram
        for basis, weight in population:
            masses[1] += weight.sum()
            linear = linear + weight @ basis
            if self.relative:
                grams[1] = grams[1] + weighted_moments(basis, weight).gram
        return [masses, linear, *grams]

    def _terms(self, sums: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Return H = (1 − ρ) mean_S φφᵀ + ρ mean_U φφᵀ and h = mean_U φ."""
        masses, linear, of_sample, of_population = sums
        quadratic = (1 - self.relative) * of_sample / masses[0]
        return quadratic + self.relative * of_population / masses[1], linear / masses[1]


def _ridge_solutions(
    quadratic: FloatArray, linear: FloatArray, smoothings: FloatArray
) -> FloatArray:
    """Return (H + λI)⁻¹ h for many λ from one decomposition, a column each."""
    # H = V diag(h) Vᵀ, so that each λ costs a division and a product.
    values, vectors = np.linalg.eigh(quadratic)
    projected = vectors.T @ linear
    return np.asarray(vectors @ (projected[:, None] / (values.clip(0)[:, None] + smoothings)))


class LikelihoodLoss(NamedTuple):
    """−mean_U log w with mean_S w = 1 and α ≥ 0: KLIEP. It has no λ."""

    smoothings: FloatArray = np.zeros(1)
    most_rows: int = 2_000

    def held_out(
        self, values: Callable[[int], Values], folds: Sequence[Split], plain: Values
    ) -> FloatArray:
        """Return the loss on each fold's rows; NaN where a side has none."""
        losses = np.full((1, len(folds)), np.nan)
        for fold, ((train, test), (other_train, other_test)) in enumerate(folds):
            if min(own.sum() for own in (train, test, other_train, other_test)) <= NOTHING:
                continue
            sample, population = values(fold)
            found = self.minimise(
                [(sample, train)],
                (population, other_train),
                [(plain[0], train)],
                tolerance=1e-4,
                max_iterations=20,
            ).coefficients
            # Of all functions, not only those of mean one, the ratio is the one with the smallest
            # mean_S w − mean_U log w. There is none if training rows are out of each other's reach.
            logs = np.log(np.maximum(population @ found, LEAST_RATIO))
            loss = np.average(sample @ found, weights=test) - np.average(logs, weights=other_test)
            losses[0, fold] = loss if found.any() else NO_FUNCTION
        return losses

    def minimise(
        self,
        sample: Blocks,
        population: tuple[FloatArray, FloatArray],
        plain: Blocks,
        tolerance: float = KLIEP_TOLERANCE,
        max_iterations: int = MAX_ITERATIONS,
    ) -> Kliep:
        """Return the coefficients of largest likelihood.

        ``plain`` is the basis at the sample's rows without a tilt: a centre that it does not reach
        gets nothing, unless none is reached at all.
        """
        mass, sums, reached = 0.0, np.zeros(1), np.zeros(1, dtype=bool)
        for basis, weight in sample:
            mass, sums = mass + float(weight.sum()), sums + weight @ basis
        for basis, weight in plain:
            reached = reached | (basis >= FAR)[weight > 0].any(axis=0)
        means = np.where(reached, sums / mass, 0.0) if reached.any() else sums / mass
        return solve_kliep(*population, means, tolerance=tolerance, max_iterations=max_iterations)


def basis_blocks(
    kernel: Kernel, centres: FloatArray, side: Side
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the basis of a kernel at the rows of a side, with their weights, some at a time."""
    for begin in range(0, len(side.weight), ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        yield cross_kernel(kernel, side.points[part], centres), side.weight[part]


def held_out_losses(
    loss: SquaredLoss | LikelihoodLoss,
    bases: Sequence[tuple[Kernel, bool]],
    centres: FloatArray,
    pair: Pair,
    n_folds: int,
) -> FloatArray:
    """Return the loss of each basis and λ in each fold; NaN where a side has no rows.

    A basis is a kernel, and whether it is tilted.
    """
    bounds = sample_range(pair[0])
    pair = pair[0].take(loss.most_rows), pair[1].take(loss.most_rows)
    folds = [[side.held_out(fold, n_folds) for side in pair] for fold in range(n_folds)]
    tilts: list[TiltedKernel | None] = [None] * n_folds
    if any(tilted for _, tilted in bases):
        tilts = [_tilt_outside(bases[0][0], pair, split, bounds) for split in folds]

    def tilted_values(plain: Values, fold: int) -> Values:
        tilt = tilts[fold]
        if tilt is None:
            return plain
        factors = (tilt.factors(side.points)[:, None] for side in pair)
        return [basis * factor for basis, factor in zip(plain, factors, strict=True)]

    losses = np.empty((len(bases), len(loss.smoothings), n_folds))
    for place, (kernel, tilted) in enumerate(bases):
        plain = [cross_kernel(kernel, side.points, centres) for side in pair]
        values = partial(tilted_values if tilted else _untilted, plain)
        losses[place] = loss.held_out(values, folds, plain)
    return losses


def _untilted(plain: Values, fold: int) -> Values:  # noqa: ARG001
    return plain


def _tilt_outside(
    kernel: Kernel,
    pair: Pair,
    split: Split,
    bounds: tuple[FloatArray, FloatArray],
) -> TiltedKernel | None:
    """Return the tilt of the rows outside of a fold, or None if a side has none there."""
    parts = []
    for side, (train, _) in zip(pair, split, strict=True):
        kept = np.flatnonzero(train)
        parts.append(Side(side.points[kept], train[kept], side.fold[kept]))
    if not all(len(part.weight) for part in parts):
        return None
    return tilt_towards(kernel, (parts[0], parts[1]), bounds)


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
    # The error is that of the difference to the best, on the same folds.
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
    # Raking to the population's means is the tilt e^(tᵀx) of maximum entropy.
    found = CalibrationProblem(
        RowFeatures.from_parts([points - target @ others]),
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


_Mixture = tuple[FloatArray, FloatArray]
"""Proportions p, and the mixture Σ p ψ at each row."""


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
    coefficients = np.zeros(len(means))
    used = np.flatnonzero(means > _NEGLIGIBLE)
    if len(used) < len(means):
        basis = basis[:, used]
    seen = (basis.max(axis=1, initial=0.0) > _NEGLIGIBLE) & (weight > 0)
    if not seen.any():
        return Kliep(coefficients, -np.inf, np.inf, 0, False)
    if not seen.all():
        basis, weight = basis[seen], weight[seen]
    first = np.ones(len(used)) if start is None else start[used]
    scale, shares = 1 / means[used], weight / weight.sum()
    found = _most_likely(basis, scale, shares, first, tolerance, max_iterations)
    coefficients[used] = scale * found[0]
    return Kliep(coefficients, *found[1:])


def _most_likely(
    basis: FloatArray,
    scale: FloatArray,
    shares: FloatArray,
    first: FloatArray,
    tolerance: float,
    max_iterations: int,
) -> tuple[FloatArray, float, float, int, bool]:
    """Return proportions, their likelihood, gap, steps, and whether the gap is small enough.

    The components of the mixture are ψ = basis · scale.
    """

    def gradient_at(values: FloatArray) -> FloatArray:
        return np.asarray(((shares / values) @ basis) * scale)

    # 1) A step of EM multiplies each p by its gradient Σ v ψ/w: it never lowers the likelihood
    #    and soon shows which proportions are small.
    proportions = first / first.sum()
    for _ in range(_EM_STEPS):
        proportions = proportions * gradient_at(basis @ (scale * proportions))
    proportions = _pruned(basis, scale * proportions, proportions)
    proportions, gap = proportions / proportions.sum(), np.inf

    def at(p: FloatArray) -> tuple[_Mixture, float]:
        # The likelihood less the sum of p, whose maximum has the sum one, is what Newton models.
        values = np.maximum(basis @ (scale * p), 0.0)
        with np.errstate(divide="ignore"):
            return (p, values), float(p.sum() - shares @ np.log(values))

    def step(place: _Mixture) -> newton.Step[_Mixture] | None:
        nonlocal gap
        p, values = place
        gradient = gradient_at(values)
        gap = max(float(gradient.max()) - 1.0, 0.0)
        if gap <= tolerance:
            return None
        # 2) Newton's step on the positive proportions and the most promising others, else one of
        #    EM, which leads up in any case.
        promising = np.argsort(-gradient, kind="stable")[:_ADDED]
        support = np.union1d(np.flatnonzero(p), promising[gradient[promising] > 1.0])
        relative = basis[:, support] * scale[support]
        relative *= (np.sqrt(shares) / values)[:, None]
        direction = -p
        direction[support] += _newton_proportions(relative, gradient[support], first[support])
        slope = float(direction.sum() - gradient @ direction)
        if slope >= 0:
            direction = p * (gradient - 1.0)
            slope = float(direction.sum() - gradient @ direction)

        def after(share: float) -> tuple[_Mixture, float]:
            new = p + share * direction
            new[new < 1e-15] = 0.0
            return at(new / new.sum())

        return newton.Step(after, slope, whole=-slope < _NEAR)

    (proportions, _), height, steps = newton.descend(
        *at(proportions), step, max_steps=max_iterations, shortest=1e-8
    )
    return proportions, 1.0 - height, gap, steps, gap <= tolerance


def _pruned(basis: FloatArray, coefficients: FloatArray, proportions: FloatArray) -> FloatArray:
    """Return proportions without the small ones, as far as no row loses most of its likelihood."""
    values = basis @ coefficients
    for limit in (1e-2, 1e-4, 1e-6):
        kept = proportions >= limit * proportions.max()
        if (basis @ np.where(kept, coefficients, 0.0) > 0.1 * values).all():
            return np.where(kept, proportions, 0.0)
    return proportions


def _newton_proportions(
    relative: FloatArray, gradient: FloatArray, start: FloatArray
) -> FloatArray:
    """Return the maximiser of the second-order model of the likelihood over p ≥ 0.

    ``relative`` holds √v ψ/w of the proportions that may be positive, a column each.
    """
    # The log likelihood has the gradient g = Σ v ψ/w and the curvature −R with R = Σ v ψψᵀ/w².
    # At p, R p = g: the model of the likelihood less Σ q at q is (2g − 1)ᵀq − ½ qᵀR q, and with
    # R = UᵀU its maximum over q ≥ 0 is the least squares problem |U q − U⁻ᵀ(2g − 1)|.
    hessian = relative.T @ relative
    # In flat directions, such as of equal components, proportions stay as they began.
    spread = start.max() / start
    jitter = 1e-12 * float(np.trace(hessian)) / len(hessian)
    while True:
        try:
            factor = cholesky(hessian + np.diag(jitter * spread))
            break
        except LinAlgError:
            jitter *= 100
    goal = solve_triangular(factor, 2 * gradient - 1, trans="T")
    return np.asarray(nnls(factor, goal, maxiter=10**4)[0])
