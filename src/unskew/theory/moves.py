r"""How far weights in a region can move a fitted model: one computation for all learners.

The model minimises :math:`\sum_i W_i f_i(\theta^\top\varphi_i) + \frac12 \theta^\top R\,\theta`
with a convex loss. Let g be the gradient at :math:`\hat\theta` with other weights, and

.. math:: H = \sum_i W_i k_i\,\varphi_i \varphi_i^\top + R,                            \tag{1}

where :math:`k_i` is the least average curvature of the loss on the way of row i's score to any
other at a distance of at most :math:`r_i`. If :math:`u \ge \lVert g \rVert_{H^{-1}}` and
:math:`u \lVert \varphi_i \rVert_{H^{-1}} \le r_i` for all i, then the new minimiser has

.. math:: \lVert \theta_W - \hat\theta \rVert_H \le u:                                  \tag{2}

within that ellipsoid no score moves by more than :math:`r_i`, so that on its border, at
:math:`\hat\theta + \Delta`, the gradient has grown by at least :math:`\Delta^\top H \Delta` along
:math:`\Delta`, and the objective rises outwards.

Where the direction of g is known as well, that says more: the objective rises outwards from all
:math:`\Delta` with :math:`\Delta^\top H \Delta \ge -g^\top \Delta`, which is the outside of the
ball that has zero and :math:`-H^{-1} g` as ends of a diameter. So

.. math:: \Bigl\lVert \theta_W - \hat\theta + \tfrac12 H^{-1} g \Bigr\rVert_H \le \tfrac{u}2 \tag{3}

if no score of that ball moves by more than :math:`r_i`. If g is in an ellipsoid, as it is over the
counts of cells, the change is in the sum of half of it and half of the ball of radius u. For
the squared loss k is constant and this is :math:`\lVert g \rVert_{H^{-1}}`; for a loss without
curvature, H = R and this is strong convexity; for the logistic loss it is self-concordance, made
with the exact curvature. An intercept that is not penalised is covered as long as the rows'
curvature determines it. Over the counts of cells, :func:`first_order` makes the bound smaller.

At a kink any subgradient serves, and within a distance of it one that costs :math:`\varepsilon_i`:

.. math:: u^2 \le u \lVert g \rVert_{H^{-1}} + \sum_i W_i \varepsilon_i,                \tag{4}

and the half ball's square is :math:`\lVert g \rVert_{H^{-1}}^2 / 4 + \sum_i W_i \varepsilon_i`.

**A kernel learner is a linear learner** on the rows :math:`\varphi_i` of a factor F of its kernel
matrix, :math:`F F^\top = K`, with the penalty :math:`R = \rho`: its :math:`\hat h = \sum_i a_i
K(x_i, \cdot)` has :math:`\hat\theta = F^\top a`, and row i adds :math:`-\rho\,a_i \varphi_i` to the
gradient. F itself is never computed, for all that is asked are inner products in
:math:`H^{-1}`: with :math:`D_i = W_i k_i`,

.. math:: F H^{-1} F^\top = D^{-1/2} \bigl(1 - \rho\,(\rho + D^{1/2} K D^{1/2})^{-1}\bigr)
          D^{-1/2},                                                                     \tag{5}

or :math:`K / \rho` without curvature. Neither λ nor the loss's Lipschitz constant of the paper's
Theorem 1 appears: the model's own coefficients show how well determined it is.

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
from dataclasses import dataclass, replace

import numpy as np

from unskew.numerics.joint_region import worst_norm, worst_norm_of
from unskew.numerics.typing import FloatArray
from unskew.theory.flips import PerDraw
from unskew.theory.models import (
    Ellipsoid,
    FittedModel,
    KernelMetric,
    KernelModel,
    LinearModel,
    RootMetric,
    conjugate_gradients,
    gram,
    top,
)
from unskew.theory.regions import CellRegion, WeightRegion, order_statistic

STEPS = 25
"""Trials of a neighbourhood before the curvature is given up."""

ROUNDS = 4
"""In which a smaller reach makes the remainder smaller. Any number gives a valid bound."""

DRAWS = 199
"""Of the weights, where the distribution is known; more where δ is smaller than 2 %."""

NEWTON_STEPS = 6

ENOUGH = 0.02
"""The share of the first gradient that may be left."""

ENTRIES = 1 << 16
"""Of the matrices of rows and draws that are computed at once: few enough to stay in the cache."""


@dataclass(frozen=True)
class Moves:
    """By how much a model can have moved.

    Attributes
    ----------
    metric : RootMetric or KernelMetric
        In which the move was bounded.
    ball : Ellipsoid
        In which the change lies.
    ellipsoids : tuple of Ellipsoid
        The same, smaller on average.
    reach : ndarray of shape (n,)
        By how much the score of each row at which the model is judged can have moved.
    on_average : float
        The same as a root mean square over the weighted sample.
    norm : float
        Of the change of the coefficients.
    left : float
        The part of ``on_average`` that comes from the optimiser.
    dominant : int
        What has the largest part; -1 where nothing has one of its own.
    penalised : bool
        Whether it compares with a model whose intercept is penalised.
    """

    metric: RootMetric | KernelMetric
    ball: Ellipsoid
    ellipsoids: tuple[Ellipsoid, ...]
    reach: FloatArray
    on_average: float
    norm: float
    left: float
    dominant: int
    penalised: bool


def moves(model: FittedModel, region: WeightRegion) -> Moves:
    """Return how far the weights of a region can move a model."""
    # 1) With the curvature of the loss, as far as the scores can move; then sharper, where the
    #    region says more than how long the gradient is.
    found = in_neighbourhood(model, region)
    if found is None:
        # 2) Without enough curvature, H = R alone. An intercept must then be penalised, as in the
        #    kernel K + 1; at the fitted model, that penalty has a gradient of its own.
        found = _trial(model, region, np.inf, penalised=True)
        assert found is not None  # the penalties are positive
        return found
    if isinstance(model, LinearModel) and isinstance(region, CellRegion):
        return first_order(model, region, found)
    # With kinks a step does not make the gradient smaller.
    if not region.is_single or model.loss.kinks:
        return found
    if isinstance(model, LinearModel):
        return _by_a_step(model, region.least, found)
    return _exactly(model, region.least, found)


def in_neighbourhood(model: FittedModel, region: WeightRegion) -> Moves | None:
    """Return moves that do not leave the neighbourhood whose curvature they use.

    None where none is found: a wider one has less curvature, in which moves are longer.
    """
    radius: FloatArray = np.zeros(len(model.z))
    least = model.curvature(np.inf)
    for _ in range(STEPS):
        found = _trial(model, region, radius)
        if found is None or not np.isfinite(found.reach).all():
            return None
        # The supposition was right: u ‖φ_i‖ ≤ r_i for all i; or the curvature is the same in any
        # neighbourhood.
        constant = (model.curvature(radius) == least).all()
        if constant or (found.reach <= radius * (1 + 1e-12)).all():
            return found
        # Somewhat further than needed, so that few trials are.
        radius = np.maximum(radius, 1.1 * found.reach)
    return None


def _trial(
    model: FittedModel, region: WeightRegion, radius: FloatArray | float, *, penalised: bool = False
) -> Moves | None:
    """Return the moves if no score moves by more than the radius.

    None where the curvature does not determine the model.
    """
    # 1) H of (1) at the least weights of the region: any other weights make it larger.
    curvature = model.weights * region.least * model.curvature(radius)
    metric = model.metric(curvature, penalised=penalised)
    if metric is None:
        return None
    # 2) The gradient is at most as long as what the weights can change of it and what the
    #    optimiser has left; u is the larger root of (4), or that length without kinks.
    pull, dominant = region.pull(metric)
    length = pull + metric.gap
    excess = float((model.weights * region.most) @ model.excess)
    size = (length + math.sqrt(length**2 + 4 * excess)) / 2
    # 3) The ball (2), and over the weighted sample its widest direction.
    ball = metric.ball(size)
    found = Moves(
        metric=metric,
        ball=ball,
        ellipsoids=(ball,),
        reach=ball.reach(model.judged[0]),
        on_average=size * metric.widest,
        norm=size * metric.norm,
        left=(size - pull) * metric.widest,
        dominant=dominant,
        penalised=penalised and model.free_intercept,
    )
    # 4) Where g lies in an ellipsoid, half of it and half of the ball hold the change: (3).
    if not isinstance(metric, RootMetric):
        return found
    directed = region.along(metric)
    if directed is None:
        return found
    halves = directed[0] / 2, (directed[1] + metric.left) / 2
    return _directed(model, found, metric, *halves, math.sqrt(length**2 / 4 + excess))


def _directed(
    model: FittedModel,
    found: Moves,
    metric: RootMetric,
    along: FloatArray,
    centre: FloatArray,
    half: float,
) -> Moves:
    """Return smaller moves where half of the step to first order is known."""
    root, spread, features = metric.root, metric.spread, model.judged[0]
    sum_of_both = Ellipsoid(along @ root, root.T @ centre, root, half)
    on_average = math.sqrt(top(along @ spread @ along.T)) + half * metric.widest
    on_average += math.sqrt(float(centre @ spread @ centre))
    # One ellipsoid around both, for the flips; it counts if it is smaller than the ball on
    # average, where it need not be smaller in every direction.
    squares = metric.squares
    inside = sum_of_both.without_rest(squares)
    whole, sharp = (
        float(np.sum((one.along @ squares) * one.along)) for one in (found.ball, inside)
    )
    return replace(
        found,
        ellipsoids=(inside,) if sharp < whole else found.ellipsoids,
        reach=np.minimum(found.reach, sum_of_both.reach(features)),
        on_average=min(found.on_average, on_average),
    )


def _by_a_step(model: LinearModel, ratios: FloatArray, direct: Moves) -> Moves:
    """Return the way of one Newton step to the model of known weights, and what is left of it.

    The same bound holds at the end of the step, where the gradient is smaller.
    """
    # 1) The model at the end of the step, with the known weights, as if it had been fitted.
    weights = model.weights * ratios
    step = model.newton_step(ratios - 1, weights, model.left)
    moved = replace(model, coefficients=model.coefficients + step, weights=weights)
    rest = in_neighbourhood(moved, WeightRegion.from_ratios(np.ones(len(weights))))
    if rest is None:
        return direct
    # 2) The whole way is at most the step and what is left of it.
    along = model.features @ step
    ratio = float(np.max(1 / np.maximum(ratios, 1e-300)))
    average = math.sqrt(float(np.average(along**2, weights=model.weights)))
    # The rest is a mean over the known weights; in the other it is at most the largest reach.
    scale = math.sqrt(ratio * float(weights.sum() / model.weights.sum()))
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


def _exactly(model: KernelModel, ratios: FloatArray, found: Moves) -> Moves:
    """Return the move itself to known weights: the curvature of the squared loss is exact."""
    metric, changes = found.metric, (ratios - 1)[:, None]
    assert isinstance(metric, KernelMetric)
    along = metric.refit_changes(changes, np.ones_like(changes))[:, 0]
    # The change x of the coefficients has ρ x = −(p + D K x), p being that of the pulls.
    moved = -(model.pulls * changes[:, 0] + metric.curvature * along) / model.penalty
    norm = math.sqrt(max(float(moved @ along), 0.0))
    return replace(
        found,
        reach=np.full_like(found.reach, math.sqrt(model.kappa) * norm),
        on_average=math.sqrt(float(np.average(along**2, weights=model.weights))),
        norm=norm,
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


def refit_spread(
    model: FittedModel,
    region: WeightRegion,
    found: Moves,
    random: np.random.RandomState,
    number: int,
) -> float | None:
    """Return the root mean square change of the predictions over draws of the weights.

    None where the region or the loss does not allow that. It is an estimate, not a bound.
    """
    ratios, metric = region.draws(random, number), found.metric
    if ratios is None:
        return None
    if isinstance(model, KernelModel) and model.free_intercept:
        change = model.support_vector_moves(ratios)
    elif isinstance(model, KernelModel) and isinstance(metric, KernelMetric) and metric.has_factor:
        own = (model.weights * model.curvature(0.0) / metric.curvature)[:, None]
        change = metric.refit_changes(ratios - 1, own * ratios)
    elif isinstance(model, LinearModel) and model.loss.bend is not None:  # to first order
        change = model.features @ model.newton_step(ratios - 1, model.weights, 0.0)
    else:
        return None
    return math.sqrt(float(np.average((change**2).mean(axis=1), weights=model.weights)))


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
    steps, size, most = _refit(model, drawn, root)
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


def _refit(
    model: LinearModel, ratios: FloatArray, root: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return steps to the models of weights W/Ŵ, sizes of gradients left, and largest changes."""
    signed, z = model.sign[:, None] * model.features, model.z[:, None]
    weighted, curvature = model.weights[:, None] * signed, model.curvature(0.0)[:, None]
    size = max(1, ENTRIES // ratios.shape[1])
    blocks = [slice(start, start + size) for start in range(0, len(ratios), size)]

    def gradient(
        steps: FloatArray,
        start: FloatArray | float,
        slope: Callable[[FloatArray, slice], FloatArray],
    ) -> FloatArray:
        """Return Σ W φ s + R (start + step), with slopes s of the scores' changes."""
        found = model.penalties[:, None] * (steps + start)
        for rows in blocks:
            slopes = slope(signed[rows] @ steps, rows)
            slopes *= ratios[rows]
            found += weighted[rows].T @ slopes
        return found

    def image(direction: FloatArray) -> FloatArray:
        """Return each draw's curvature at the fitted model, times its direction."""
        return gradient(direction, 0.0, lambda moved, rows: curvature[rows] * moved)

    # The curvature with the fitted weights preconditions the systems of all draws: their weights
    # differ from these by the noise of the estimate.
    inverse, theta = root.T @ root, model.coefficients[:, None]
    steps = np.zeros((len(theta), ratios.shape[1]))
    first: FloatArray = model.vectors.T @ ratios + model.penalties[:, None] * theta
    left = first
    for _ in range(NEWTON_STEPS):
        steps -= conjugate_gradients(image, left, inverse, enough=1e-3)
        left = gradient(steps, theta, lambda moved, rows: model.loss.slope(moved + z[rows]))
        sizes, before = (np.linalg.norm(root @ one, axis=0) for one in (left, first))
        if (sizes <= ENOUGH * before).all():
            break
    most = np.max([np.abs(signed[rows] @ steps).max(axis=0) for rows in blocks], axis=0)
    return steps, sizes, most


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
