r"""Calibration: the weights nearest to the design weights that match given means.

With shares :math:`p_i = d_i / \sum d`, features :math:`z_i` centred at their target and scaled, and
a ratio R of the weights' total to the design weights',

.. math:: \min_w \sum_i p_i D(w_i / d_i) \quad\text{with } \sum_i p_i (w_i / d_i) z_i = 0,\
          \sum_i p_i (w_i / d_i) = R

has the solution :math:`w_i = d_i F(u_i)`, :math:`u_i = \lambda_0 + z_i^\top \lambda`, where F is
the inverse of D' and the multipliers minimise (Deville and Särndal, "Calibration estimators in
survey sampling", JASA 87, 1992, equations 2.3 to 2.6)

.. math:: \sum_i p_i G(u_i) - R \lambda_0 + R \sum_j (\delta_j |\lambda_j| + r_j \lambda_j^2 / 2),
          \qquad G' = F.

A slack :math:`\delta_j` allows feature j an imbalance of that many standard deviations (the dual of
Dudík, Schapire and Phillips 2005), a ridge :math:`r_j` makes imbalance costly instead.

Weights that match the targets exist only if these lie in the convex hull of the sample's features
(within bounds: in a part of it). A linear program says how far outside they are, and its
multipliers in which direction (Farkas' lemma): :func:`smallest_imbalance`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack
from scipy.optimize import linprog
from scipy.sparse.linalg import LinearOperator, cg

from unskew.numerics import newton
from unskew.numerics.distances import Curves, Distance
from unskew.numerics.row_features import RowFeatures, WeightedMoments, weighted_moments
from unskew.numerics.typing import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-10
MAX_STEPS = 60
MAX_CONJUGATE = 500
COLLINEAR = 1e-11
"""A feature is collinear if others leave less than this share of its variance unexplained."""


FOLD_TOLERANCE = 1e-7
"""The largest gradient, in the features' unit, and the order of errors of a loss of the tilt."""
MAX_FOLD_STEPS = 12
"""More mean that the folds differ too much, and each is to be solved by itself."""
MAX_ENTRIES = 1_000_000
"""Programs with more entries than this are solved by adding the rows that matter, in rounds."""


@dataclass(frozen=True)
class CalibrationCertificate:
    """How well the weights are calibrated, computed from the weights themselves.

    Attributes
    ----------
    imbalance : float
        The largest difference between a weighted mean of the sample and its target, in standard
        deviations of the sample.
    gradient_norm : float
        The largest violation of the optimality conditions, in the same unit. Without slack and
        ridge it is the imbalance.
    steps : int
        Newton steps.
    tolerance : float
        The largest violation that was allowed.
    converged : bool
        Whether the violation is within the tolerance.
    """

    imbalance: float
    gradient_norm: float
    steps: int
    tolerance: float
    converged: bool


class Solution(NamedTuple):
    """Multipliers, the factors F(u) of the design weights, and how good they are."""

    intercept: float
    multipliers: FloatArray
    factors: FloatArray
    certificate: CalibrationCertificate


class _Point(NamedTuple):
    """The multipliers, and the dual there."""

    point: FloatArray
    scores: FloatArray
    curves: Curves
    value: float


@dataclass(frozen=True)
class CalibrationProblem:
    """A calibration problem whose features are centred at their targets, and scaled.

    Parameters
    ----------
    features : RowFeatures
    shares : ndarray of shape (n_rows,)
        Design weights that sum to one.
    distance : Distance
    ratio : float
        What the factors' mean must be: one, unless the distance depends on the weights' total.
    slack, ridge : ndarray of shape (n_features,)

    Examples
    --------
    Of two rows at -1 and 2, the first must count twice as much for a mean of 0.

    >>> from unskew.numerics.distances import Raking
    >>> features = RowFeatures.from_parts([np.array([[-1.0], [2.0]])])
    >>> none = np.zeros(1)
    >>> problem = CalibrationProblem(features, np.full(2, 0.5), Raking(), 1.0, none, none)
    >>> problem.solve().factors.round(6)
    array([1.333333, 0.666667])
    """

    features: RowFeatures
    shares: FloatArray
    distance: Distance
    ratio: float
    slack: FloatArray
    ridge: FloatArray

    def solve(self, start: tuple[float, FloatArray] | None = None) -> Solution:
        """Minimise the dual by Newton's method with step halving.

        ``start`` is an intercept and multipliers from which to start.
        """
        if start is None:
            start = self.distance.start(self.ratio), np.zeros(self.features.width)
        first, violation = self._at(np.append(*start)), np.inf

        def step(at: _Point) -> newton.Step[_Point] | None:
            nonlocal violation
            gradient = self._gradient(at)
            violation = self._violation(at.point, gradient)
            if violation <= TOLERANCE or not np.isfinite(at.value) or self._separates(at):
                return None
            direction = self._direction(at, gradient)
            return self._step(at, direction, gradient) if np.isfinite(direction).all() else None

        at, _, steps = newton.descend(first, first.value, step, max_steps=MAX_STEPS)
        factors = at.curves.factors
        imbalance = np.abs(self.imbalances(factors)).max(initial=0.0)
        certificate = CalibrationCertificate(
            float(imbalance), violation, steps, TOLERANCE, violation <= TOLERANCE
        )
        return Solution(float(at.point[0]), at.point[1:], factors, certificate)

    def _at(self, point: FloatArray) -> _Point:
        """Return the dual at a point."""
        # u = λ₀ + zᵀλ, and the dual Σ p G(u) − R λ₀ + R Σ (δ |λ| + r λ² / 2).
        scores = self.features.scores(point[1:]) + point[0]
        penalty = self.slack @ np.abs(point[1:]) + self.ridge @ point[1:] ** 2 / 2
        with np.errstate(over="ignore", invalid="ignore"):
            curves = self.distance.curves(scores)
            potential = self.shares @ curves.potential
        value = float(potential - self.ratio * point[0] + self.ratio * penalty)
        return _Point(point, scores, curves, value)

    def _separates(self, at: _Point) -> bool:
        """Whether multipliers prove that no positive weights balance the features.

        Without slack and ridge, all rows then lie on one side of the target.
        """
        if self.slack.any() or self.ridge.any() or not at.point[1:].any():
            return False
        return bool(self.distance.lowest >= 0 and (at.scores < at.point[0]).all())

    def imbalances(self, factors: FloatArray) -> FloatArray:
        """Return the weighted means of the features, which are to be zero."""
        counted = self.shares * factors
        return self.features.sums(counted) / counted.sum()

    def restricted(self, kept: BoolArray) -> CalibrationProblem:
        """Return the problem with some of the features only."""
        if kept.all():
            return self
        features = self.features.of_columns(kept)
        fewer = replace(self, features=features, slack=self.slack[kept], ridge=self.ridge[kept])
        if "design_moments" in self.__dict__:
            fewer.__dict__["design_moments"] = self.design_moments.of_columns(kept)
        return fewer

    @cached_property
    def design_moments(self) -> WeightedMoments:
        """The moments of the features under the design weights."""
        return self.features.moments(self.shares)

    def _gradient(self, at: _Point) -> FloatArray:
        """Return the gradient without the slack, in standard deviations of a mean."""
        # By λ₀: Σ p F(u) − R; by λ: Σ p F(u) z + R r λ. Both over R, which makes them means.
        counted = self.shares * at.curves.factors
        smooth = self.features.sums(counted) / self.ratio + self.ridge * at.point[1:]
        return np.concatenate([[counted.sum() / self.ratio - 1.0], smooth])

    def _violation(self, point: FloatArray, gradient: FloatArray) -> float:
        inner, multipliers = gradient[1:], point[1:]
        # δ |λ| has the slope δ sign(λ), and at zero any slope up to δ in size.
        at_zero = np.maximum(np.abs(inner) - self.slack, 0.0)
        away = np.abs(inner + self.slack * np.sign(multipliers))
        violations = np.where((multipliers == 0.0) & (self.slack > 0), at_zero, away)
        return float(max(abs(gradient[0]), violations.max(initial=0.0)))

    def _direction(self, at: _Point, gradient: FloatArray) -> FloatArray:
        """Return where the second-order model of the dual is smallest."""
        # The second derivatives are the moments of (1, z) under the weights p F'(u), and the ridge.
        point = at.point
        slopes = at.curves.slopes / self.ratio
        if self.features.wide and not self.slack.any():
            return self._conjugate_direction(self.shares * slopes, gradient)
        hessian = np.empty((len(point), len(point)))
        if (slopes == slopes[0]).all():  # as they are at the start
            hessian[1:, 1:] = self.design_moments.gram * slopes[0]
            hessian[0, 1:] = self.design_moments.sums * slopes[0]
        else:
            hessian[0, 1:], hessian[1:, 1:] = self.features.moments(self.shares * slopes)
        hessian[1:, 0] = hessian[0, 1:]
        hessian[0, 0] = self.shares @ slopes
        hessian[1:, 1:].flat[:: len(point)] += self.ridge
        if self.slack.any():
            slack = np.concatenate([[0.0], self.slack])
            return minimise_model(hessian, gradient, slack, point) - point
        direction = -solve_psd(hessian, gradient)
        left = np.abs(hessian @ direction + gradient).max()
        if left > 1e-6 * np.abs(gradient).max():  # rows at their limits say nothing of the rest
            hessian[1:, 1:] += self.design_moments.gram
            hessian[0, 0] += 1.0
            direction = -solve_psd(hessian, gradient)
        return direction

    def _conjugate_direction(self, weights: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return Newton's direction by conjugate gradients, without the matrix.

        Levels of one column hardly meet those of another: scaled by its diagonal, the matrix is
        near the identity, and few steps of the cost of the rows are enough.
        """
        features = self.features
        diagonal = np.append(weights.sum(), features.squares(weights) + self.ridge)
        scale = 1.0 / np.sqrt(np.maximum(diagonal, np.finfo(float).tiny))

        def product(direction: FloatArray) -> FloatArray:
            own = direction * scale
            moved = weights * (features.scores(own[1:]) + own[0])
            back = np.append(moved.sum(), features.sums(moved) + self.ridge * own[1:])
            # All levels and the intercept are collinear: rounding must not go that way.
            return back * scale + 1e-9 * direction

        system = LinearOperator((len(scale),) * 2, matvec=product, dtype=float)
        found, _ = cg(system, -gradient * scale, rtol=1e-8, maxiter=MAX_CONJUGATE)
        return np.asarray(found * scale)

    def _step(self, at: _Point, direction: FloatArray, gradient: FloatArray) -> newton.Step[_Point]:
        # With slack the promised decrease includes that of the absolute values.
        kinks = np.abs(at.point[1:] + direction[1:]) - np.abs(at.point[1:])
        promised = self.ratio * float(gradient @ direction + self.slack @ kinks)

        def after(share: float) -> tuple[_Point, float]:
            new = self._at(at.point + share * direction)
            return new, new.value

        return newton.Step(after, promised)


def solve_psd(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Solve a positive semi-definite system; where it is singular, with the smallest solution."""
    # With ones on its diagonal, a matrix of features in any units has its best condition.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    scaled, right = matrix * scale[:, None] * scale, vector * scale
    # LAPACK itself: SciPy's checks take several times as long as a small factor.
    factor, info = lapack.dpotrf(scaled, lower=0, clean=0)
    if info == 0:
        solution, _ = lapack.dpotrs(factor, right, lower=0)
        if np.abs(scaled @ solution - right).max() <= 1e-6 * np.abs(right).max():
            return np.asarray(solution * scale)
    return np.asarray(pseudo_inverse(matrix) @ vector)


def pseudo_inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a positive semi-definite matrix on its range, scaled to ones first.

    Examples
    --------
    >>> pseudo_inverse(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[0.25, 0.  ], [0.  , 0.  ]])
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    values, vectors = scipy.linalg.eigh(matrix * scale[:, None] * scale, check_finite=False)
    kept = values > 1e-12 * values[-1]
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return np.asarray(inverse * scale[:, None] * scale)


def minimise_model(
    hessian: FloatArray, gradient: FloatArray, slack: FloatArray, point: FloatArray
) -> FloatArray:
    r"""Return the minimum of :math:`g^\top h + h^\top H h / 2 + δ^\top |x|`, :math:`h = x - x_0`.

    Coordinate descent (Friedman, Hastie and Tibshirani 2010) finds which entries are zero; given
    these and the others' signs, the minimum solves a linear system.
    """
    new = point.copy()
    slope = gradient.copy()  # of the quadratic part, at `new`
    diagonal = np.maximum(np.diag(hessian), np.finfo(float).tiny)
    for _ in range(200):
        # 1) One round over the entries: each takes its own minimum, the soft threshold.
        _leave_flat_directions(new, slope, hessian, slack)
        largest = 0.0
        for j in range(len(new)):
            goal = new[j] - slope[j] / diagonal[j]
            entry = np.sign(goal) * max(abs(goal) - slack[j] / diagonal[j], 0.0)
            change = entry - new[j]
            if change:
                slope += hessian[:, j] * change
                new[j] = entry
                largest = max(largest, abs(change) * np.sqrt(diagonal[j]))
        if largest < 1e-9:
            break
        # 2) Given the signs, the absolute values are linear: H (x − x₀) = −g − δ sign(x). If its
        #    solution keeps the signs, it is the minimum, up to entries that are still zero.
        free = (new != 0) | (slack == 0)
        goal = hessian[np.ix_(free, free)] @ point[free] - gradient[free]
        goal += hessian[np.ix_(free, ~free)] @ point[~free] - (slack * np.sign(new))[free]
        exact = np.zeros_like(new)
        exact[free] = solve_psd(hessian[np.ix_(free, free)], goal)
        if (np.sign(exact) == np.sign(new))[slack > 0].all():
            new = exact
            slope = gradient + hessian @ (new - point)
    return new


def _leave_flat_directions(
    point: FloatArray, slope: FloatArray, hessian: FloatArray, slack: FloatArray
) -> None:
    """Move along directions without curvature until an entry is zero, where that costs least.

    All levels of a column and the intercept are such a direction: only the slack
    distinguishes its points, and coordinate descent would follow it in steps of the size of the
    slack. Changes the point; the slope stays as it is, because there is no curvature.
    """
    for _ in range(len(point)):
        free = np.flatnonzero((point != 0) | (slack == 0))
        values, vectors = scipy.linalg.eigh(hessian[np.ix_(free, free)], check_finite=False)
        flat = vectors[:, values <= 1e-12 * max(values[-1], np.finfo(float).tiny)]
        price = slope[free] + slack[free] * np.sign(point[free])
        direction = -flat @ (flat.T @ price)
        if np.abs(direction).max(initial=0.0) <= 1e-3 * slack.max():
            return
        shrinks = (point[free] * direction < 0) & (slack[free] > 0)
        if not shrinks.any():
            return
        sizes = np.full(len(free), np.inf)
        sizes[shrinks] = -point[free][shrinks] / direction[shrinks]
        first = int(sizes.argmin())
        point[free] += sizes[first] * direction
        point[free[first]] = 0.0


def independent(covariance: FloatArray) -> BoolArray:
    """Return which features are no linear combinations of earlier ones and a constant.

    Examples
    --------
    >>> one, other = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 0.0])
    >>> features = np.column_stack([one, other, one - 2 * other, np.ones(3)])
    >>> independent(np.cov(features, rowvar=False))
    array([ True,  True, False, False])
    """
    # Cholesky's elimination: the diagonal that is left is what a feature adds to earlier ones.
    left = covariance.copy()  # what earlier features leave unexplained
    limits = COLLINEAR * np.diag(covariance)
    kept = np.zeros(len(covariance), dtype=bool)
    for j in range(len(covariance)):
        if left[j, j] > max(limits[j], np.finfo(float).tiny):
            kept[j] = True
            left[j + 1 :, j + 1 :] -= np.outer(left[j + 1 :, j], left[j, j + 1 :] / left[j, j])
    return kept


def tilts_without_folds(
    features: FloatArray, shares: FloatArray, targets: FloatArray, ridge: float, centre: FloatArray
) -> FloatArray | None:
    r"""Return the tilt to a target without each fold, or None where these steps do not get there.

    A tilt minimises :math:`\log \sum_i p_i e^{\lambda^\top \varphi_i} - \lambda^\top t + r
    \|\lambda\|^2 / 2`, whose gradient is the mean under the tilted shares less t, and whose second
    derivative is the covariance under them, each plus the ridge's. Folds differ little: Newton's
    steps of all of them keep the second derivatives at the tilt of all rows, less each fold's part.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Rows belong to the folds 0, 1, …, k − 1, 0, 1, … in turn.
    shares : ndarray of shape (n_rows,)
        They sum to one.
    targets : ndarray of shape (k, n_features)
    ridge : float
    centre : ndarray of shape (n_features,)
        The tilt of all rows to the mean target.

    Examples
    --------
    >>> line = np.linspace(-1, 1, 10)[:, None]
    >>> found = tilts_without_folds(line, np.full(10, 0.1), np.full((2, 1), 0.3), 0.0, np.zeros(1))
    >>> kept = line[1::2, 0]  # without the first fold
    >>> print(np.average(kept, weights=np.exp(found[0] * kept)).round(6))
    0.3
    """
    n_folds, width = targets.shape
    # 1) Each fold's moments at the tilt of all rows; what the others have is all less its own.
    scores = features @ centre
    tilted = shares * np.exp(scores - scores.max(initial=0.0))
    parts = [weighted_moments(features[k::n_folds], tilted[k::n_folds]) for k in range(n_folds)]
    masses = tilted.sum() - np.array([tilted[k::n_folds].sum() for k in range(n_folds)])
    sums, grams = (sum(one) - np.array(one) for one in zip(*parts, strict=True))
    means = sums / masses[:, None]
    second = grams / masses[:, None, None] - means[:, :, None] * means[:, None, :]
    try:
        inverse = np.linalg.inv(second + ridge * np.eye(width))
    except np.linalg.LinAlgError:
        return None
    # 2) Steps of all folds at once: two matrix products.
    without = shares * (np.arange(len(shares)) % n_folds != np.arange(n_folds)[:, None])
    tilts, across = np.repeat(centre[None, :], n_folds, axis=0), np.ascontiguousarray(features.T)
    for _ in range(MAX_FOLD_STEPS):
        with np.errstate(over="ignore", invalid="ignore"):  # then there is no tilt
            tilted = without * np.exp(tilts @ across)
            means = tilted @ features / tilted.sum(axis=1, keepdims=True)
        gradient = means - targets + ridge * tilts
        largest = np.abs(gradient).max(initial=0.0)
        if largest <= FOLD_TOLERANCE:
            return tilts
        if not np.isfinite(largest):
            break
        tilts = tilts - (inverse @ gradient[:, :, None])[:, :, 0]
    return None


class Reach(NamedTuple):
    """The nearest that any weights come."""

    slack: float
    """The smallest largest imbalance, beyond what is allowed."""
    direction: FloatArray
    """Where every sample row lies: features times direction is at least the slack."""


def smallest_imbalance(
    features: FloatArray, low: FloatArray, high: FloatArray, allowed: FloatArray
) -> Reach:
    """Return how near weighted means of features can come to zero.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Centred at their targets, and scaled.
    low, high : ndarray of shape (n_rows,)
        The bounds of each row's share of the total weight.
    allowed : ndarray of shape (n_features,)
        An imbalance that does not count.

    Examples
    --------
    >>> none = np.zeros(3)
    >>> reach = smallest_imbalance(np.array([[1.0], [2.0], [3.0]]), none, none + 1, none[:1])
    >>> reach.slack, reach.direction
    (1.0, array([1.]))
    """
    # A target far beyond all rows would leave the program's other numbers no digits.
    beyond = np.maximum(features.min(axis=0), -features.max(axis=0)) - allowed
    farthest = int(beyond.argmax())
    unit = max(1.0, float(beyond[farthest]))
    features, allowed = features / unit, allowed / unit
    rows = _first_rows(features, low, high)
    while True:
        program = _solve(features, low, high, allowed, rows)
        if program.status != 0:  # what one feature alone proves
            direction = np.zeros(len(beyond))
            direction[farthest] = 1.0 if features[0, farthest] > 0 else -1.0
            return Reach(max(float(beyond[farthest]), 0.0), direction)
        up, down = np.split(program.ineqlin.marginals, 2)
        direction = down - up
        # A row helps if, at its lower bound, more of it would lower the imbalance.
        gains = program.eqlin.marginals[0] - features @ direction
        gains[rows] = -np.inf
        helpful = np.flatnonzero(gains > 1e-9)
        if not len(helpful):
            return Reach(unit * float(program.fun), direction)
        best = helpful[np.argsort(-gains[helpful], kind="stable")[:1000]]
        rows = np.union1d(rows, best)


def farthest_mean(
    features: FloatArray, position: int, sign: float, low: FloatArray, high: FloatArray
) -> float | None:
    """Return the largest (or smallest) mean of one feature while the others are balanced.

    None if they cannot be balanced, or if the program is too large to be solved for a message.
    """
    n_rows, n_features = features.shape
    if features.size > MAX_ENTRIES:
        return None
    others = np.delete(features, position, axis=1)
    equal = np.vstack([others.T, np.ones(n_rows)])
    goal = np.zeros(n_features)
    goal[-1] = 1.0
    program: Any = linprog(  # type: ignore[call-overload]  # its stubs want tuples
        -sign * features[:, position],
        A_eq=equal,
        b_eq=goal,
        bounds=np.column_stack([low, high]),
        method="highs",
    )
    return float(-sign * program.fun) if program.status == 0 else None


def _first_rows(features: FloatArray, low: FloatArray, high: FloatArray) -> IntArray:
    """Return rows to begin with: all, or extreme ones and enough to hold the whole weight."""
    if features.size <= MAX_ENTRIES:
        return np.arange(len(features))
    extremes = [features.argmin(axis=0), features.argmax(axis=0)]
    spread = np.random.RandomState(0).permutation(len(features))
    room = np.cumsum((high - low)[spread])
    enough = int(np.searchsorted(room, 1.0 - low.sum())) + 1
    count = max(enough, MAX_ENTRIES // (10 * features.shape[1]))
    return np.unique(np.concatenate([*extremes, spread[:count]]))


def _solve(
    features: FloatArray, low: FloatArray, high: FloatArray, allowed: FloatArray, rows: IntArray
) -> Any:
    """Minimise δ with all means within δ of zero; rows that are left out stay at their lowest."""
    out = np.ones(len(features), dtype=bool)
    out[rows] = False
    fixed = low[out] @ features[out]
    means = features[rows].T
    ones = np.ones((len(means), 1))
    return linprog(  # type: ignore[call-overload]
        np.concatenate([np.zeros(len(rows)), [1.0]]),
        A_ub=np.block([[means, -ones], [-means, -ones]]),
        b_ub=np.concatenate([allowed - fixed, allowed + fixed]),
        A_eq=np.concatenate([np.ones(len(rows)), [0.0]])[None, :],
        b_eq=[1.0 - low[out].sum()],
        bounds=np.vstack([np.column_stack([low[rows], high[rows]]), [[0.0, np.inf]]]),
        method="highs",
    )
