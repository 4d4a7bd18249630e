r"""Fitted models, linear in features that are numbers or that only a kernel knows.

A :class:`LinearModel` has its features as columns, and a :class:`KernelModel` the kernel matrix,
whose factor would be its features. How far weights can move them is one computation for both
(:mod:`unskew.theory.moves`, whose equations are referred to here). What is known of one kind alone
makes its bound smaller: a Newton step to known weights, the first order over the counts of cells,
the exact curvature of the squared loss.

**Refits.** Where the distribution of the perfect weights around the estimated ones is known
asymptotically, a linear model is fitted again with weights drawn from it. Any number that follows
from the weights exceeds the k-th smallest of B such draws with probability :math:`1 - k / (B + 1)`.
Several numbers at once are bounded by the draws' largest rank among them: the k-th smallest of
these ranks is where each number is read off. The refits are Newton's, all draws at once, with the
curvature of the loss at the fitted model: each step solves its linear system by conjugate
gradients, preconditioned by the curvature with the fitted weights. What is left of the gradient is
counted twice, for the curvature on the way may be somewhat smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lstsq
from scipy.optimize import lsq_linear
from sklearn.metrics.pairwise import pairwise_kernels

from unskew.errors import InputError
from unskew.numerics.joint_region import worst_norm, worst_norm_of
from unskew.numerics.kernels import GaussianKernel, fill_matrix
from unskew.numerics.typing import FloatArray, IntArray
from unskew.theory.flips import PerDraw
from unskew.theory.metrics import (
    Ellipsoid,
    KernelMetric,
    RootMetric,
    conjugate_gradients,
    gram,
    inverse_root,
    top,
)
from unskew.theory.moves import FittedModel, Moves
from unskew.theory.regions import CellRegion, WeightRegion, order_statistic

ROUNDS = 4
"""In which a smaller reach makes the remainder smaller. Any number gives a valid bound."""

NEAR = (1e-5, 1e-4, 1e-3, 1e-2)
"""Distances from a kink within which rows are tried as lying on it."""


DRAWS = 199
"""Of the weights, where the distribution is known; more where δ is smaller than 2 %."""

NEWTON_STEPS = 6

ENOUGH = 0.02
"""The share of the first gradient that may be left."""

ENTRIES = 1 << 16
"""Of the matrices of rows and draws that are computed at once: few enough to stay in the cache."""


@dataclass(eq=False, kw_only=True)
class LinearModel(FittedModel):
    r"""A fitted :math:`\hat h(x) = \hat\theta^\top \varphi(x)`, and what it minimises.

    The objective is :math:`\sum_i W_i f_i(\theta^\top\varphi_i) + \frac12 \sum_j \rho_j
    \theta_j^2`, in the units of the learner's weights.

    Attributes
    ----------
    features : ndarray of shape (m, d)
        Of the sample, as the last step sees them; with an intercept, a last column for it.
    labels : ndarray of shape (m,)
        For a classifier, -1 and 1.
    coefficients : ndarray of shape (d,)
    penalties : ndarray of shape (d,)
        ρ; zero for an intercept that is not penalised.
    of_rows : callable
        Returns the features of other rows.
    sign : ndarray of shape (m,)
        Of dz/dh.
    left : ndarray of shape (d,)
        The gradient that the optimiser has left at its own weights.
    """

    features: FloatArray
    labels: FloatArray
    coefficients: FloatArray
    penalties: FloatArray
    of_rows: Callable[[Any], FloatArray]
    sign: FloatArray = field(init=False)
    left: FloatArray = field(init=False)
    most_term = "at the sample row that moves most"
    norm_term = "in the norm of the coefficients"

    def __post_init__(self) -> None:
        scores = self.judged[1]
        self.z = self.loss.argument(scores, self.labels)
        # dz/dθ is y φ for a loss of the margin y h(x), and φ for one of the residual h(x) − y.
        self.sign = self.labels if self.loss.margin else np.ones(len(self.z))
        slopes, self.excess = self._subgradients()
        self.pulls = self.weights * self.sign * slopes
        self.left = self._gradient(slopes)

    @property
    def judged(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The features, scores and weights of the sample."""
        return self.features, self.features @ self.coefficients, self.weights

    def read(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return the features and scores of rows in the form of X."""
        features = self.of_rows(rows)
        check_finite(features, self.name)
        return features, features @ self.coefficients

    @property
    def free_intercept(self) -> bool:
        """Whether it has an intercept that is not penalised."""
        return bool(self.penalties[-1] == 0)

    @cached_property
    def vectors(self) -> FloatArray:
        """What each row adds to the gradient."""
        return self.pulls[:, None] * self.features

    @cached_property
    def squares(self) -> FloatArray:
        """The weighted mean of the outer products of the features."""
        return gram(self.features, self.shares)

    def metric(self, curvature: FloatArray, *, penalised: bool = False) -> RootMetric | None:
        """Return the metric of H with these D; None where they do not determine the model."""
        penalties = self.penalties
        if penalised:
            penalties = np.where(penalties == 0, penalties.max(), penalties)
        root = inverse_root(gram(self.features, curvature) + np.diag(penalties))
        if root is None:
            return None
        left = self.left + (penalties - self.penalties) * self.coefficients
        return RootMetric(self.vectors, root, left, self.squares)

    def sharpened(self, region: WeightRegion, found: Moves) -> Moves:
        """Return moves by a step to known weights, or to first order over the counts of cells."""
        # With kinks a step does not make the gradient smaller.
        if region.is_single and not self.loss.kinks:
            return self._by_a_step(region.least, found)
        return first_order(self, region, found) if isinstance(region, CellRegion) else found

    def _by_a_step(self, ratios: FloatArray, direct: Moves) -> Moves:
        """Return the way of one Newton step to the model of known weights, and what is left of it.

        The same bound holds at the end of the step, where the gradient is smaller.
        """
        # 1) The model at the end of the step, with the known weights, as if it had been fitted.
        weights = self.weights * ratios
        step = self._step(ratios - 1, weights, self.left)
        moved = replace(self, coefficients=self.coefficients + step, weights=weights)
        rest = moved._in_neighbourhood(WeightRegion.from_ratios(np.ones(len(weights))))
        if rest is None:
            return direct
        # 2) The whole way is at most the step and what is left of it.
        along = self.features @ step
        ratio = float(np.max(1 / np.maximum(ratios, 1e-300)))
        average = math.sqrt(float(np.average(along**2, weights=self.weights)))
        # The rest is a mean over the known weights; in the other it is at most the largest reach.
        scale = math.sqrt(ratio * float(weights.sum() / self.weights.sum()))
        average += min(rest.on_average * scale, float(rest.reach.max()))
        if average >= direct.on_average:
            return direct
        return replace(
            direct,
            ellipsoids=tuple(replace(one, centre=step) for one in rest.ellipsoids),
            reach=np.minimum(direct.reach, np.abs(along) + rest.reach),
            on_average=average,
            norm=min(direct.norm, float(np.linalg.norm(step)) + rest.norm),
        )

    def _step(
        self, changes: FloatArray, weights: FloatArray, left: FloatArray | float
    ) -> FloatArray:
        """Return the Newton step of the coefficients for W/Ŵ − 1, at the weights given."""
        hessian = gram(self.features, weights * self.curvature(0.0)) + np.diag(self.penalties)
        return np.asarray(
            -np.linalg.pinv(hessian, hermitian=True) @ (self.vectors.T @ changes + left)
        )

    def refit_changes(self, ratios: FloatArray, moves: Moves) -> FloatArray | None:  # noqa: ARG002
        """Return how the scores move, to first order."""
        if self.loss.bend is None:
            return None
        return self.features @ self._step(ratios - 1, self.weights, 0.0)

    def _gradient(self, slopes: FloatArray) -> FloatArray:
        """Return the gradient at the fitted model and its own weights."""
        sums = self.features.T @ (self.weights * self.sign * slopes)
        return np.asarray(sums + self.penalties * self.coefficients)

    def _subgradients(self) -> tuple[FloatArray, FloatArray]:
        """Return a slope for each row, and what rows near a kink cost, with the least gradient."""
        z = self.z
        slopes, excess = self.loss.slope(z), np.zeros(len(z))
        if not self.loss.kinks:
            return slopes, excess
        # Which rows lie on a kink cannot be seen at the optimiser's precision. Any choice is valid:
        # the one whose gradient and cost (4) move a model of this penalty least is taken.
        scale = self.penalties.max()
        best = math.inf
        found: tuple[FloatArray, FloatArray] = slopes, excess
        for near in (0.0, *NEAR):
            tried, cost = self._on_kinks(slopes, near)
            left = float(np.linalg.norm(self._gradient(tried)))
            size = left / scale + math.sqrt(float(self.weights @ cost) / scale)
            if size < best:
                best, found = size, (tried, cost)
        return found

    def _on_kinks(self, slopes: FloatArray, near: float) -> tuple[FloatArray, FloatArray]:
        """Return slopes where rows near a kink have those that leave the least gradient."""
        z = self.z
        low, high = slopes.copy(), slopes.copy()
        cost = np.zeros(len(z))
        # 1) Rows within ``near`` of a kink may have any slope between its two; neighbourhoods of
        #    two kinks do not overlap.
        places = [place for place, _, _ in self.loss.kinks]
        near = min(near, float(np.ptp(places)) / 2) if len(places) > 1 else near
        for place, before, after in self.loss.kinks:
            close = np.abs(z - place) <= near
            low[close], high[close] = before, after
            cost[close] = np.abs(z - place)[close] * (after - before)
        free = np.flatnonzero(low < high)
        if not len(free):
            return slopes, np.zeros(len(z))
        # 2) Of these slopes, those that leave the least gradient: least squares in a box.
        chosen = slopes.copy()
        chosen[free] = 0.0
        columns = (self.features[free] * (self.weights * self.sign)[free, None]).T
        solved = lsq_linear(columns, -self._gradient(chosen), bounds=(low[free], high[free]))
        chosen[free] = np.clip(solved.x, low[free], high[free])
        # 3) The cost of a slope, ε of (4): by how much its tangent at the kink exceeds the loss.
        cost[free] = np.abs(chosen - slopes)[free] * np.abs(cost[free] / (high - low)[free])
        return chosen, cost


@dataclass(eq=False, kw_only=True)
class KernelModel(FittedModel):
    r"""A fitted :math:`\hat h = \sum_i a_i K(x_i, \cdot) + b`, K(x, x) being at most one.

    Attributes
    ----------
    kernel : str
    gamma : float or None
    rows : ndarray of shape (r, d)
        The rows on which the model depends: all that have weight, or the support vectors.
    places : ndarray of int of shape (r,)
        Their places in the sample.
    coefficients : ndarray of shape (r,)
    penalty : float
        ρ, twice the multiple of the squared norm in an objective where row i has weight w_i: 2 α
        for kernel ridge regression, 1/C for support vectors.
    offset : float or None
        b, which is certified as if penalised, by the kernel K + 1; None for a learner without one.
    score : callable
        Of a classifier, returns its decision function of rows.
    decisions : tuple of ndarray or None
        Of a classifier, the decision function at all sample rows, and their weights.
    """

    kernel: str
    gamma: float | None
    rows: FloatArray
    places: IntArray
    coefficients: FloatArray
    penalty: float
    offset: float | None = None
    score: Any = None
    decisions: tuple[FloatArray, FloatArray] | None = None
    most_term = "dual certificate, at any single point"
    norm_term = "dual certificate, in the kernel's norm"

    def __post_init__(self) -> None:
        # At the minimum Ŵ f'(z) = −ρ a. For the squared loss, f' = 2 z; others' z is not needed.
        self.pulls = -self.penalty * self.coefficients
        self.z = np.zeros(len(self.pulls)) if self.free_intercept else self.pulls / self.weights / 2
        self.excess = np.zeros(len(self.pulls))

    @property
    def free_intercept(self) -> bool:
        """Whether it has an offset."""
        return self.offset is not None

    @property
    def kappa(self) -> float:
        """The largest K(x, x), of the kernel K + 1 where there is an offset."""
        return 1.0 + self.free_intercept

    @property
    def gaussian(self) -> GaussianKernel | None:
        """The Gaussian with this γ; None for any other kernel."""
        if self.kernel != "rbf" or self.gamma is None:
            return None
        return GaussianKernel(float(1 / np.sqrt(2 * self.gamma)))

    @cached_property
    def matrix(self) -> FloatArray:
        """The kernel matrix of the rows."""
        kernel = self.gaussian
        if kernel is None:
            given = {"metric": self.kernel, "gamma": self.gamma}
            return np.asarray(pairwise_kernels(self.rows, filter_params=True, **given))
        prepared = kernel.prepare(self.rows - self.rows.mean(axis=0))
        size = len(self.rows)
        return fill_matrix(kernel, prepared, prepared, np.empty((size, size)))

    @property
    def judged(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The bound on their lengths, the scores and the weights of rows: all, or those kept."""
        scores, weights = self.decisions or (self._scores, self.weights)
        return self._lengths(len(scores)), scores, weights

    @cached_property
    def _scores(self) -> FloatArray:
        return np.asarray(self.matrix @ self.coefficients + (self.offset or 0.0))

    def read(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return the bound on their lengths and the scores of rows in the form of X."""
        scores = np.asarray(self.score(rows))
        return self._lengths(len(scores)), scores

    def _lengths(self, number: int) -> FloatArray:
        # The kernel's space has too many directions for features: one reach for all rows.
        return np.full((number, 1), math.sqrt(self.kappa))

    def metric(self, curvature: FloatArray, *, penalised: bool = False) -> KernelMetric | None:
        """Return the metric of H with these D; None unless all are positive."""
        if not penalised and not (curvature > 0).all():
            return None
        return KernelMetric(
            self.matrix,
            self.pulls,
            self.penalty,
            constant=float(self.free_intercept),
            kappa=self.kappa,
            curvature=None if penalised else curvature,
            shares=self.shares,
            # The gradient of the offset's penalty is ρ b, along a feature that is constantly one.
            gap=math.sqrt(self.penalty) * abs(self.offset or 0.0),
        )

    def sharpened(self, region: WeightRegion, found: Moves) -> Moves:
        """Return the move itself for known weights: the curvature of the squared loss is exact."""
        metric = found.metric
        if not isinstance(metric, KernelMetric) or metric.curvature is None or not region.is_single:
            return found
        changes = (region.least - 1)[:, None]
        along = metric.refit_changes(changes, np.ones_like(changes))[:, 0]
        # The change x of the coefficients has ρ x = −(p + D K x), p being that of the pulls.
        moved = -(self.pulls * changes[:, 0] + metric.curvature * along) / self.penalty
        norm = math.sqrt(max(float(moved @ along), 0.0))
        return replace(
            found,
            reach=np.full_like(found.reach, math.sqrt(self.kappa) * norm),
            on_average=math.sqrt(float(np.average(along**2, weights=self.weights))),
            norm=norm,
        )

    def refit_changes(self, ratios: FloatArray, moves: Moves) -> FloatArray | None:
        """Return how the scores move: with the squared loss by refits, roughly solved."""
        if self.free_intercept:
            return self._support_vector_moves(self.coefficients[:, None] * (ratios - 1))
        metric = moves.metric
        if not isinstance(metric, KernelMetric) or metric.curvature is None:
            return None
        own = (self.weights * self.curvature(0.0) / metric.curvature)[:, None]
        return metric.refit_changes(ratios - 1, own * ratios)

    def _support_vector_moves(self, moved: FloatArray) -> FloatArray:
        """Return, to first order, how the predictions of support vectors move.

        Support vectors at their bound stay there, so their coefficients follow their weights; those
        on the edge of the tube stay on it.
        """
        K = self.matrix
        # |a_i| ≤ C w_i, where the penalty is 1 / C.
        free = np.flatnonzero(np.abs(self.coefficients) < self.weights / self.penalty * (1 - 1e-6))
        change = moved.copy()
        change[free] = 0.0
        image = K @ change
        if not len(free):
            return image
        # The changes of the free coefficients, and of the offset: predictions at the edge stay, and
        # all coefficients still sum to zero.
        system = np.ones((len(free) + 1, len(free) + 1))
        system[:-1, :-1] = K[np.ix_(free, free)]
        system[-1, -1] = 0.0
        right = -np.vstack([image[free], change.sum(axis=0)])
        solved = lstsq(system, right, cond=1e-8, lapack_driver="gelsy")[0]
        return np.asarray(image + K[:, free] @ solved[:-1] + solved[-1])


def check_finite(features: FloatArray, name: str) -> None:
    """Raise an error if a learner predicts nothing for some rows."""
    missing = int((~np.isfinite(features)).any(axis=1).sum())
    if missing:
        raise InputError(
            f"{missing} rows of the population have missing or infinite features, for which "
            f"{name} predicts nothing. Impute them in the pipeline, or leave these rows out."
        )


def first_order(model: LinearModel, region: CellRegion, known: Moves) -> Moves:
    r"""Return a sharper bound over the counts of cells, or the known one if that is smaller.

    Let :math:`H_0` be the curvature at the fitted model and :math:`\bar H` the average curvature on
    the way to the model of other weights, so that :math:`\bar H \Delta = -g`. In coordinates in
    which :math:`H_0` is the identity, :math:`\bar H = 1 + E`,

    .. math:: \Delta = -g - E \Delta, \qquad g = b + \sum_C t_C v_C,                   \tag{6}

    where t are the relative errors of the counts and b is what does not depend on them. So a score
    moves by at most its first order, :math:`|x^\top b| + \max_t |\sum_C t_C\, x^\top v_C|`, which
    is different for each row, and the remainder :math:`\lVert E \rVert\, \lVert \Delta \rVert\,
    \lVert x \rVert`. The part of E that comes from the weights is :math:`\sum_i (\rho_i - 1) W_i
    k_i x_i x_i^\top`, with every cell at its limit at most; the part that comes from the curvature
    of the loss is at most :math:`\lambda_{\max}(\sum_i W_i \kappa_i x_i x_i^\top)`, where
    :math:`\kappa_i` is by how much its average can differ from that at the fitted score, as far as
    the score can move. That is known from the bound without this one, and then from this one.
    """
    errors, features, weights = region.errors, model.features, model.weights
    here = weights * model.curvature(0.0)
    metric = model.metric(here)
    if metric is None:
        return known
    # 1) The first order, in coordinates in which the curvature is one.
    root, spread = metric.root, metric.spread
    sums = metric.sums(region.factors)
    along, fixed = region.along(metric)
    centre = metric.left + fixed
    pull, dominant = worst_norm_of(errors, sums)
    pull += float(np.linalg.norm(centre))
    mapped = features @ root.T
    lengths = np.linalg.norm(mapped, axis=1)
    # 2) How far the model can be at all, in the same norm.
    farthest = float(np.linalg.norm(known.ball.along @ np.linalg.inv(root), 2))
    # 3) The remainder, which falls with the reach.
    size = region.cells.factor[region.rows] * errors.size[region.cells.of_row[region.rows]]
    by_weights = top(gram(mapped, here * (np.abs(region.fixed) + size)))
    reach = known.reach
    first = Ellipsoid(along @ root, root.T @ centre, root, 0.0).reach(features)
    rest = np.inf
    for _ in range(ROUNDS):
        # ‖E‖ is at most what the weights and the loss change. By (6), ‖Δ‖ ≤ ‖g‖ + ‖E‖ ‖Δ‖, which
        # bounds ‖Δ‖ where ‖E‖ < 1; otherwise the ball of the bound without this one does.
        bending = weights * region.most * model.loss.bending(model.z, reach)
        change = by_weights + (top(gram(mapped, bending)) if bending.any() else 0.0)
        least = pull / (1 - change) if change < 1 else np.inf
        rest = change * min(farthest, least)
        smaller = np.minimum(reach, first + rest * lengths)
        # Shorter ways bend less; what they bend less makes them shorter. For the squared loss,
        # which does not bend, one round says all.
        done = not bending.any() or (smaller > 0.98 * reach).all()
        reach = smaller
        if done:
            break
    # 4) The same as a mean over the weighted sample: in the norm of its squares, the first order
    #    over the counts and what is fixed, and the remainder in the widest direction.
    average = worst_norm(errors, sums @ spread @ sums.T)[0]
    average += math.sqrt(float(centre @ spread @ centre)) + rest * metric.widest
    sharper = Ellipsoid(along @ root, root.T @ centre, root, rest).without_rest(metric.squares)
    known = replace(known, ellipsoids=(*known.ellipsoids, sharper), reach=reach)
    if average >= known.on_average:
        return known
    return replace(
        known,
        on_average=average,
        norm=min(known.norm, (pull + rest) * metric.norm),
        left=math.sqrt(float(metric.left @ spread @ metric.left)),
        dominant=dominant,
    )


def refits_with_draws(
    model: LinearModel, region: WeightRegion, delta: float, random: np.random.RandomState
) -> tuple[PerDraw, dict[str, FloatArray], float] | None:
    """Fit the model again with draws of the weights; None where it has too little curvature.

    Returns which rows flip in each draw; for each draw, the root mean square of the scores' changes
    over the weighted sample ("average"), the largest of them in the sample ("most") and the "norm"
    of the coefficients' change; and the part of the average that comes from the optimiser.
    """
    if model.loss.bend is None:
        return None
    metric = model.metric(model.weights * model.curvature(0.0))
    drawn = region.draws(random, max(DRAWS, math.ceil(4 / delta) - 1))
    if metric is None or drawn is None:
        return None
    root, squares = metric.root, metric.squares
    steps, size, most = _solve(_DrawnObjective(model, drawn), root)
    # What is left of the gradient moves a model by its length in H⁻¹, where H has the curvature at
    # the fitted model; twice that, for the curvature on the way may be smaller.
    rest = 2 * size
    if not np.isfinite(steps).all() or not np.isfinite(rest).all():
        return None
    lengths = np.linalg.norm(model.features @ root.T, axis=1)
    moved = np.einsum("ib,ij,jb->b", steps, squares, steps, optimize=True)
    numbers = {
        "average": np.sqrt(np.maximum(moved, 0.0)) + rest * metric.widest,
        "most": most + rest * float(lengths.max()),
        "norm": np.linalg.norm(steps, axis=0) + rest * metric.norm,
    }
    left = math.sqrt(max(float(metric.left @ metric.spread @ metric.left), 0.0))
    return PerDraw(steps, rest, root), numbers, left


class _DrawnObjective:
    """The objective of the model with drawn weights, all draws as columns, by blocks of rows.

    Parameters
    ----------
    model : LinearModel
    ratios : ndarray of shape (m, n_draws)
        W/Ŵ.
    """

    def __init__(self, model: LinearModel, ratios: FloatArray) -> None:
        self.model, self.ratios = model, ratios
        self.signed = model.sign[:, None] * model.features
        self.weighted = model.weights[:, None] * self.signed
        self.curved = model.curvature(0.0)[:, None] * self.weighted
        step = max(1, ENTRIES // ratios.shape[1])
        self.blocks = [slice(start, start + step) for start in range(0, len(ratios), step)]

    def first_gradient(self) -> FloatArray:
        """Return the gradients at the fitted model."""
        model = self.model
        found = model.vectors.T @ self.ratios
        return np.asarray(found + (model.penalties * model.coefficients)[:, None])

    def gradient(self, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients after steps, and the largest change of a score of each draw."""
        model, z = self.model, self.model.z[:, None]
        found = model.penalties[:, None] * (model.coefficients[:, None] + steps)
        most = np.zeros(steps.shape[1])
        for rows in self.blocks:
            moved = self.signed[rows] @ steps
            np.maximum(most, np.abs(moved).max(axis=0), out=most)
            moved += z[rows]
            slopes = model.loss.slope(moved)
            slopes *= self.ratios[rows]
            found += self.weighted[rows].T @ slopes
        return found, most

    def image(self, direction: FloatArray) -> FloatArray:
        """Return each draw's curvature at the fitted model, times its direction."""
        found = self.model.penalties[:, None] * direction
        for rows in self.blocks:
            along = self.signed[rows] @ direction
            along *= self.ratios[rows]
            found += self.curved[rows].T @ along
        return found


def _solve(drawn: _DrawnObjective, root: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return steps to the models of drawn weights, sizes of gradients left, and largest changes."""
    # The curvature with the fitted weights preconditions the systems of all draws: their weights
    # differ from these by the noise of the estimate.
    inverse = root.T @ root
    gradient = drawn.first_gradient()
    first = np.linalg.norm(root @ gradient, axis=0)
    steps = np.zeros_like(gradient)
    for _ in range(NEWTON_STEPS):
        steps -= conjugate_gradients(drawn.image, gradient, inverse, enough=1e-3)
        gradient, most = drawn.gradient(steps)
        size = np.linalg.norm(root @ gradient, axis=0)
        if (size <= ENOUGH * first).all():
            break
    return steps, size, most


def joint_limits(numbers: dict[str, FloatArray], delta: float) -> dict[str, float]:
    """Return limits that another draw exceeds, in any of its numbers, with probability δ at most.

    Examples
    --------
    >>> up = np.arange(1.0, 20.0)
    >>> joint_limits({"a": up, "b": up[::-1]}, 0.1)
    {'a': 19.0, 'b': 19.0}
    >>> joint_limits({"a": up, "b": up}, 0.1)
    {'a': 18.0, 'b': 18.0}
    """
    # Of a draw, the largest rank among its numbers is one number. All but δ of the draws stay below
    # the order statistic of these, and that rank is where each number is read off.
    ordered = {name: np.sort(one) for name, one in numbers.items()}
    # Draws that are equal share their lowest rank: the limit is their common number.
    ranks = [np.searchsorted(ordered[name], one) for name, one in numbers.items()]
    largest = np.sort(np.max(ranks, axis=0))
    rank = int(largest[order_statistic(len(largest), delta)])
    return {name: float(line[rank]) for name, line in ordered.items()}
