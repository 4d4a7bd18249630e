r"""How far weights in a region can move a linear model.

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
curvature determines it.

Over the counts of cells, :func:`first_order` makes the bound smaller.

At a kink any subgradient serves, and within a distance of it one that costs :math:`\varepsilon_i`:

.. math:: u^2 \le u \lVert g \rVert_{H^{-1}} + \sum_i W_i \varepsilon_i,                \tag{4}

and the half ball's square is :math:`\lVert g \rVert_{H^{-1}}^2 / 4 + \sum_i W_i \varepsilon_i`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh, solve_triangular
from scipy.optimize import lsq_linear

from unskew.numerics.joint_region import worst_norm, worst_norm_of
from unskew.numerics.typing import FloatArray
from unskew.theory.cell_region import CellRegion
from unskew.theory.flips import Ellipsoid
from unskew.theory.linear_models import LinearModel, check_finite
from unskew.theory.regions import LinearContributions, OtherWeights, WeightRegion

STEPS = 25
"""Trials of a neighbourhood before the curvature is given up."""

ROUNDS = 4
"""In which a smaller reach makes the remainder smaller. Any number gives a valid bound."""

MOST_WORK = 2e9
"""Of the products of the cells' matrices, beyond which only their limits are used."""

SMALL = 64
"""Columns up to which NumPy's functions are faster: SciPy's take longer to begin."""

NEAR = (1e-5, 1e-4, 1e-3, 1e-2)
"""Distances from a kink within which rows are tried as lying on it."""


@dataclass(frozen=True)
class Moves:
    """By how much a linear model can have moved.

    Attributes
    ----------
    ball : Ellipsoid
        In which the change lies.
    ellipsoids : tuple of Ellipsoid
        The same, smaller on average.
    reach : ndarray of shape (m,)
        By how much the score of each sample row can have moved.
    on_average : float
        The same as a root mean square over the weighted sample.
    norm : float
        Of the change of the coefficients.
    left : float
        The part of ``on_average`` that comes from the optimiser.
    dominant : int
        What has the largest part.
    penalised : bool
        Whether it compares with a model whose intercept is penalised.
    """

    ball: Ellipsoid
    ellipsoids: tuple[Ellipsoid, ...]
    reach: FloatArray
    on_average: float
    norm: float
    left: float
    dominant: int
    penalised: bool


class LinearSystem:
    """A fitted linear model, ready to be asked how far a region of weights can move it."""

    def __init__(self, model: LinearModel, *, may_step: bool = True) -> None:
        self.model = model
        # With kinks a step does not make the gradient smaller.
        self.may_step = may_step and not model.loss.kinks
        self.scores = model.scores
        self.z = model.loss.argument(self.scores, model.labels)
        # dz/dθ is y φ for a loss of the margin y h(x), and φ for one of the residual h(x) − y.
        self.sign = model.labels if model.loss.margin else np.ones(len(self.z))
        slopes, self.excess = self._subgradients()
        # What row i adds to the gradient: Ŵ_i f'_i φ_i, of which W/Ŵ − 1 is what changes.
        self.vectors = (model.weights * self.sign * slopes)[:, None] * model.features
        self.left = self._left(slopes)
        self.rows = LinearContributions(self.vectors)

    @cached_property
    def curvature(self) -> FloatArray:
        """The curvature of the loss at the fitted scores."""
        return self.model.loss.curvature(self.z, np.zeros(len(self.z)))

    @property
    def classes(self) -> Any:
        """Of a classifier; None for a regression."""
        return self.model.classes

    @property
    def judged(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The features, scores and weights of the rows at which the model is judged."""
        return self.model.features, self.scores, self.model.weights

    def read(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return the features and scores of rows in the form of X."""
        features = self.model.of_rows(rows)
        check_finite(features, self.model.name)
        return features, features @ self.model.coefficients

    def moves(self, region: WeightRegion) -> Moves:
        """Return how far the weights of a region can move the model."""
        model = self.model
        # 1) With the curvature of the loss, as far as the scores can move; then sharper, if the
        #    region says more than how long the gradient is.
        curved = self._in_neighbourhood(region, model.penalties, self.left)
        if curved is not None and isinstance(region, OtherWeights) and self.may_step:
            return self._by_a_step(region, curved)
        if curved is not None:
            return first_order(self, region, curved) if isinstance(region, CellRegion) else curved
        # 2) Without enough curvature, H = R alone. An intercept must then be penalised, as in the
        #    kernel K + 1; at the fitted model, that penalty has a gradient of its own.
        penalties = np.where(model.penalties == 0, model.penalties.max(), model.penalties)
        left = self.left + (penalties - model.penalties) * model.coefficients
        anywhere = np.full(len(self.z), np.inf)
        found = self._trial(region, penalties, left, anywhere, model.free_intercept)
        assert found is not None  # the penalties are positive
        return found

    def _by_a_step(self, region: OtherWeights, direct: Moves) -> Moves:
        """Return the way of one Newton step to the model of known weights, and what is left of it.

        The same bound holds at the end of the step, where the gradient is smaller.
        """
        model = self.model
        # 1) The model at the end of the step, with the known weights, as if it had been fitted.
        step = self._step(region.ratios - 1, model.weights * region.ratios)
        moved = replace(
            model,
            coefficients=model.coefficients + step,
            weights=model.weights * region.ratios,
        )
        rest = LinearSystem(moved, may_step=False).moves(OtherWeights(np.ones(len(self.z))))
        # 2) The whole way is at most the step and what is left of it.
        along = model.features @ step
        reach = np.abs(along) + rest.reach
        ratio = float(np.max(1 / np.maximum(region.ratios, 1e-300)))
        average = math.sqrt(float(np.average(along**2, weights=model.weights)))
        # The rest is a mean over the known weights; in the other it is at most the largest reach.
        scale = math.sqrt(ratio * float(moved.weights.sum() / model.weights.sum()))
        average += min(rest.on_average * scale, float(rest.reach.max()))
        if rest.penalised or average >= direct.on_average:
            return direct
        return replace(
            direct,
            ellipsoids=tuple(replace(one, centre=step) for one in rest.ellipsoids),
            reach=np.minimum(direct.reach, reach),
            on_average=average,
            norm=min(direct.norm, float(np.linalg.norm(step)) + rest.norm),
        )

    def _step(self, changes: FloatArray, weights: FloatArray, *, left: bool = True) -> FloatArray:
        """Return the Newton step of the coefficients for W/Ŵ − 1, at the weights given.

        With or without the way that the optimiser has left.
        """
        model = self.model
        hessian = gram(model.features, weights * self.curvature) + np.diag(model.penalties)
        pulls = self.vectors.T @ changes
        if left:
            pulls = pulls + self.left
        return np.asarray(-np.linalg.pinv(hessian, hermitian=True) @ pulls)

    def _in_neighbourhood(
        self, region: WeightRegion, penalties: FloatArray, left: FloatArray
    ) -> Moves | None:
        """Return moves that do not leave the neighbourhood whose curvature they use.

        None where none is found: a wider one has less curvature, in which moves are longer.
        """
        radius = np.zeros(len(self.z))
        for _ in range(STEPS):
            found = self._trial(region, penalties, left, radius, False)
            if found is None or not np.isfinite(found.reach).all():
                return None
            # The supposition was right: u ‖φ_i‖ ≤ r_i for all i.
            if (found.reach <= radius * (1 + 1e-12)).all() or self._is_constant(radius):
                return found
            # Somewhat further than needed, so that few trials are.
            radius = np.maximum(radius, 1.1 * found.reach)
        return None

    def _is_constant(self, radius: FloatArray) -> bool:
        """Return whether the curvature is the same in any neighbourhood."""
        return bool((self.model.loss.curvature(self.z, radius) == self._least_curvature).all())

    @cached_property
    def _least_curvature(self) -> FloatArray:
        return self.model.loss.curvature(self.z, np.full(len(self.z), np.inf))

    def _trial(
        self,
        region: WeightRegion,
        penalties: FloatArray,
        left: FloatArray,
        radius: FloatArray,
        penalised: bool,
    ) -> Moves | None:
        """Return the moves if no score moves by more than the radius.

        None where the curvature does not determine the model.
        """
        model = self.model
        features, weights = model.features, model.weights
        # 1) H of (1) at the least weights of the region: any other weights make it larger. In the
        #    coordinates of its inverse root, lengths are those of H⁻¹.
        curvature = weights * region.least * model.loss.curvature(self.z, radius)
        root = inverse_root(gram(features, curvature) + np.diag(penalties))
        if root is None:
            return None
        # 2) The gradient is at most as long as what the weights can change of it and what the
        #    optimiser has left; u is the larger root of (4), or that length without kinks.
        rows = self.rows.rooted(root)
        pull, dominant = region.pull(rows)
        gap = float(np.linalg.norm(root @ left))
        excess = float((weights * region.most) @ self.excess)
        size = (pull + gap + math.sqrt((pull + gap) ** 2 + 4 * excess)) / 2
        # 3) The ball (2): over the weighted sample, the mean square of φᵀΔ is at most its largest
        #    eigenvalue times u².
        spread = root @ self.squares @ root.T
        widest = math.sqrt(top(spread))
        ball = Ellipsoid(size * root, None, root, 0.0)
        found = Moves(
            ball=ball,
            ellipsoids=(ball,),
            reach=ball.reach(features),
            on_average=size * widest,
            norm=size * float(np.linalg.norm(root, 2)),
            left=(size - pull) * widest,
            dominant=dominant,
            penalised=penalised,
        )
        # 4) Where g lies in an ellipsoid, half of it and half of the ball hold the change: (3).
        directed = region.along(rows)
        if directed is not None:
            halves = directed[0] / 2, (directed[1] + root @ left) / 2
            half = math.sqrt((pull + gap) ** 2 / 4 + excess)
            found = self._directed(found, root, *halves, half, spread)
        return found

    def _directed(
        self,
        found: Moves,
        root: FloatArray,
        along: FloatArray,
        centre: FloatArray,
        half: float,
        spread: FloatArray,
    ) -> Moves:
        """Return smaller moves where half of the step to first order is known."""
        sum_of_both = Ellipsoid(along @ root, root.T @ centre, root, half)
        on_average = math.sqrt(top(along @ spread @ along.T)) + half * math.sqrt(top(spread))
        on_average += math.sqrt(float(centre @ spread @ centre))
        # One ellipsoid around both, for the flips; it counts if it is smaller than the ball on
        # average, where it need not be smaller in every direction.
        inside = sum_of_both.without_rest(self.squares)
        reach = sum_of_both.reach(self.model.features)
        whole, sharp = (
            float(np.sum((one.along @ self.squares) * one.along)) for one in (found.ball, inside)
        )
        return replace(
            found,
            ellipsoids=(inside,) if sharp < whole else found.ellipsoids,
            reach=np.minimum(found.reach, reach),
            on_average=min(found.on_average, on_average),
        )

    @cached_property
    def squares(self) -> FloatArray:
        """The weighted mean of the outer products of the features."""
        weights = self.model.weights
        return gram(self.model.features, weights / weights.sum())

    def refit_spread(
        self, region: WeightRegion, random: np.random.RandomState, number: int
    ) -> float | None:
        """Return the change of the predictions over draws of the weights, to first order.

        None where the region or the loss does not allow that. It is an estimate, not a bound.
        """
        drawn = region.draws(random, number)
        if drawn is None or self.model.loss.bend is None:
            return None
        change = self.model.features @ self._step(drawn - 1, self.model.weights, left=False)
        return math.sqrt(float(np.average((change**2).mean(axis=1), weights=self.model.weights)))

    def _left(self, slopes: FloatArray) -> FloatArray:
        """Return the gradient that the optimiser has left at its own weights."""
        model = self.model
        sums = model.features.T @ (model.weights * self.sign * slopes)
        return np.asarray(sums + model.penalties * model.coefficients)

    def _subgradients(self) -> tuple[FloatArray, FloatArray]:
        """Return a slope for each row, and what rows near a kink cost, with the least gradient."""
        model, z = self.model, self.z
        slopes, excess = model.loss.slope(z), np.zeros(len(z))
        if not model.loss.kinks:
            return slopes, excess
        # Which rows lie on a kink cannot be seen at the optimiser's precision. Any choice is valid:
        # the one whose gradient and cost (4) move a model of this penalty least is taken.
        scale = model.penalties.max()
        best = math.inf
        found: tuple[FloatArray, FloatArray] = slopes, excess
        for near in (0.0, *NEAR):
            tried, cost = self._on_kinks(slopes, near)
            left = float(np.linalg.norm(self._left(tried)))
            size = left / scale + math.sqrt(float(model.weights @ cost) / scale)
            if size < best:
                best, found = size, (tried, cost)
        return found

    def _on_kinks(self, slopes: FloatArray, near: float) -> tuple[FloatArray, FloatArray]:
        """Return slopes where rows near a kink have those that leave the least gradient."""
        model, z = self.model, self.z
        low, high = slopes.copy(), slopes.copy()
        cost = np.zeros(len(z))
        # 1) Rows within ``near`` of a kink may have any slope between its two; neighbourhoods of
        #    two kinks do not overlap.
        places = [place for place, _, _ in model.loss.kinks]
        near = min(near, float(np.ptp(places)) / 2) if len(places) > 1 else near
        for place, before, after in model.loss.kinks:
            close = np.abs(z - place) <= near
            low[close], high[close] = before, after
            cost[close] = np.abs(z - place)[close] * (after - before)
        free = np.flatnonzero(low < high)
        if not len(free):
            return slopes, np.zeros(len(z))
        # 2) Of these slopes, those that leave the least gradient: least squares in a box.
        chosen = slopes.copy()
        chosen[free] = 0.0
        columns = (model.features[free] * (model.weights * self.sign)[free, None]).T
        solved = lsq_linear(columns, -self._left(chosen), bounds=(low[free], high[free]))
        chosen[free] = np.clip(solved.x, low[free], high[free])
        # 3) The cost of a slope, ε of (4): by how much its tangent at the kink exceeds the loss.
        cost[free] = np.abs(chosen - slopes)[free] * np.abs(cost[free] / (high - low)[free])
        return chosen, cost


def first_order(system: LinearSystem, region: CellRegion, known: Moves) -> Moves:
    r"""Return a sharper bound over the counts of cells, or the known one if that is smaller.

    Let :math:`H_0` be the curvature at the fitted model and :math:`\bar H` the average curvature on
    the way to the model of other weights, so that :math:`\bar H \Delta = -g`. In coordinates in
    which :math:`H_0` is the identity, :math:`\bar H = 1 + E`,

    .. math:: \Delta = -g - E \Delta, \qquad g = b + \sum_C t_C v_C,                   \tag{5}

    where t are the relative errors of the counts and b is what does not depend on them. So a score
    moves by at most its first order, :math:`|x^\top b| + \max_t |\sum_C t_C\, x^\top v_C|`, which
    is different for each row, and the remainder :math:`\lVert E \rVert\, \lVert \Delta \rVert\,
    \lVert x \rVert`. The part of E that comes from the weights is :math:`\sum_C t_C A_C` with
    :math:`A_C = \sum_{i \in C} W_i k_i x_i x_i^\top`, of which, since :math:`\sum_C c_C t_C^2 \le
    r`,

    .. math:: \Bigl\lVert \sum_C t_C A_C \Bigr\rVert^2 \le r\,\lambda_{\max}\Bigl(\sum_C A_C^2 / c_C
              \Bigr);                                                                  \tag{6}

    the part that comes from the curvature of the loss is at most :math:`\lambda_{\max}(\sum_i W_i
    \kappa_i x_i x_i^\top)`, where :math:`\kappa_i` is by how much its average can differ from that
    at the fitted score, as far as the score can move. That is known from the bound without this
    one, and then from this one.
    """
    model, errors = system.model, region.errors
    features, weights = model.features, model.weights
    here = weights * system.curvature
    root = inverse_root(gram(features, here) + np.diag(model.penalties))
    if root is None:
        return known
    # 1) The first order, in coordinates in which the curvature is one.
    rows = system.rows.rooted(root)
    sums = rows.sums(region.factors)
    left = root @ system.left
    along, fixed = region.along(rows)
    centre = left + fixed
    pull, dominant = worst_norm_of(errors, sums)
    pull += float(np.linalg.norm(centre))
    mapped = features @ root.T
    lengths = np.linalg.norm(mapped, axis=1)
    # 2) How far the model can be at all, in the same norm.
    farthest = float(np.linalg.norm(known.ball.along @ np.linalg.inv(root), 2))
    # 3) The remainder, which falls with the reach.
    by_weights = _of_weights(region, mapped, here)
    reach = known.reach
    first = Ellipsoid(along @ root, root.T @ centre, root, 0.0).reach(features)
    rest = np.inf
    for _ in range(ROUNDS):
        # ‖E‖ is at most what the weights and the loss change. By (5), ‖Δ‖ ≤ ‖g‖ + ‖E‖ ‖Δ‖, which
        # bounds ‖Δ‖ where ‖E‖ < 1; otherwise the ball of the bound without this one does.
        bending = weights * region.most * model.loss.bending(system.z, reach)
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
    spread = root @ system.squares @ root.T
    widest = math.sqrt(top(spread))
    average = worst_norm(errors, sums @ spread @ sums.T)[0]
    average += math.sqrt(float(centre @ spread @ centre)) + rest * widest
    sharper = Ellipsoid(along @ root, root.T @ centre, root, rest).without_rest(system.squares)
    known = replace(known, ellipsoids=(*known.ellipsoids, sharper), reach=reach)
    if average >= known.on_average:
        return known
    return replace(
        known,
        on_average=average,
        norm=min(known.norm, (pull + rest) * float(np.linalg.norm(root, 2))),
        left=math.sqrt(float(left @ spread @ left)),
        dominant=dominant,
    )


def _of_weights(region: CellRegion, mapped: FloatArray, here: FloatArray) -> float:
    """Return a bound on the change of the curvature by the weights alone."""
    errors, cells = region.errors, region.cells.of_row[region.rows]
    factor = here * region.cells.factor[region.rows]
    # Two bounds that both hold: every cell at its limit, and all cells together by (6).
    fixed = top(gram(mapped, here * np.abs(region.fixed))) if region.fixed.any() else 0.0
    at_limits = top(gram(mapped, factor * errors.size[cells]))
    n_cells, d = len(errors.size), mapped.shape[1]
    if n_cells * d**3 > MOST_WORK:
        return fixed + at_limits
    together = np.zeros((d, d))
    order = np.argsort(cells, kind="stable")
    ends = np.searchsorted(cells[order], np.arange(n_cells + 1))
    for cell in np.flatnonzero(np.isfinite(errors.stiffness)):
        own = order[ends[cell] : ends[cell + 1]]
        matrix = gram(mapped[own], factor[own])
        together += matrix @ matrix / errors.stiffness[cell]
    return fixed + min(at_limits, math.sqrt(errors.radius * top(together)))


def gram(features: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum of the outer products of rows, for weights that are not negative."""
    scaled = features * np.sqrt(weights)[:, None]
    return np.asarray(scaled.T @ scaled)


def inverse_root(matrix: FloatArray) -> FloatArray | None:
    """Return R with R A Rᵀ = 1, or None where A is not positive definite."""
    try:
        if len(matrix) <= SMALL:
            root: FloatArray = np.linalg.inv(np.linalg.cholesky(matrix))
        else:
            factor = cholesky(matrix, lower=True)
            root = np.asarray(solve_triangular(factor, np.eye(len(factor)), lower=True))
    except LinAlgError:
        return None
    return root if np.isfinite(root).all() else None


def top(matrix: FloatArray) -> float:
    """Return the largest eigenvalue, not below zero.

    Examples
    --------
    >>> round(top(np.diag([2.0, 3.0])), 12)
    3.0
    """
    last = len(matrix) - 1
    if last < SMALL:
        return max(float(np.linalg.eigvalsh(matrix)[last]), 0.0)
    return max(float(eigvalsh(matrix, subset_by_index=[last, last])[0]), 0.0)
