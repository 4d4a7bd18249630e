r"""How far weights in a region can move a linear model.

The model minimises :math:`\sum_i W_i f_i(\theta^\top\varphi_i) + \frac12 \theta^\top R\,\theta`
with a convex loss. Let g be the gradient at :math:`\hat\theta` with other weights, and

.. math:: H = \sum_i W_i k_i\,\varphi_i \varphi_i^\top + R,

where :math:`k_i` is the least average curvature of the loss on the way of row i's score to any
other at a distance of at most :math:`r_i`. If :math:`u \ge \lVert g \rVert_{H^{-1}}` and
:math:`u \lVert \varphi_i \rVert_{H^{-1}} \le r_i` for all i, then the new minimiser has
:math:`\lVert \theta_W - \hat\theta \rVert_H \le u`: within that ellipsoid no score moves by more
than :math:`r_i`, so that on its border, at :math:`\hat\theta + \Delta`, the gradient has grown by
at least :math:`\Delta^\top H \Delta` along :math:`\Delta`, and the objective rises outwards.

Where the direction of g is known as well, that says more: the objective rises outwards from all
:math:`\Delta` with :math:`\Delta^\top H \Delta \ge -g^\top \Delta`, which is the outside of the
ball that has zero and :math:`-H^{-1} g` as ends of a diameter. So

.. math:: \Bigl\lVert \theta_W - \hat\theta + \tfrac12 H^{-1} g \Bigr\rVert_H \le \tfrac{u}2

if no score of that ball moves by more than :math:`r_i`. If g is in an ellipsoid, as it is over the
counts of cells, the change is in the sum of half of it and half of the ball of radius u. For
the squared loss k is constant and this is :math:`\lVert g \rVert_{H^{-1}}`; for a loss without
curvature, H = R and this is strong convexity; for the logistic loss it is self-concordance, made
with the exact curvature. An intercept that is not penalised is covered as long as the rows'
curvature determines it.

Over the counts of cells, :mod:`unskew.theory.linear_cells` makes the bound smaller.

At a kink any subgradient serves, and within a distance of it one that costs :math:`\varepsilon_i`:
:math:`u^2 \le u \lVert g \rVert_{H^{-1}} + \sum_i W_i \varepsilon_i`, and the half ball's square is
:math:`\lVert g \rVert_{H^{-1}}^2 / 4 + \sum_i W_i \varepsilon_i`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

from unskew.numerics.typing import FloatArray
from unskew.theory.curvature import gram, inverse_root, top
from unskew.theory.flips import Ellipsoid
from unskew.theory.linear_cells import first_order
from unskew.theory.linear_models import LinearModel, check_finite
from unskew.theory.regions import CellRegion, GivenRegion, LinearContributions, Region

STEPS = 25
"""Trials of a neighbourhood before the curvature is given up."""

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
        self.sign = model.labels if model.loss.margin else np.ones(len(self.z))
        slopes, self.excess = self._subgradients()
        self.contributions = (model.weights * self.sign * slopes)[:, None]
        self.vectors = self.contributions * model.features
        self.left = self._left(slopes)
        self.rows = LinearContributions(self.vectors)

    def read(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return the features and scores of rows in the form of X."""
        features = self.model.of_rows(rows)
        check_finite(features, self.model.name)
        return features, features @ self.model.coefficients

    def moves(self, region: Region) -> Moves:
        """Return how far the weights of a region can move the model."""
        model = self.model
        curved = self._in_neighbourhood(region, model.penalties, self.left)
        if curved is not None and isinstance(region, GivenRegion) and self.may_step:
            return self._by_a_step(region, curved)
        if curved is not None:
            return first_order(self, region, curved) if isinstance(region, CellRegion) else curved
        # Without enough curvature an intercept must be penalised, as in the kernel K + 1.
        penalties = np.where(model.penalties == 0, model.penalties.max(), model.penalties)
        left = self.left + (penalties - model.penalties) * model.coefficients
        anywhere = np.full(len(self.z), np.inf)
        found = self._trial(region, penalties, left, anywhere, model.free_intercept)
        assert found is not None  # the penalties are positive
        return found[0]

    def _by_a_step(self, region: GivenRegion, direct: Moves) -> Moves:
        """Return the way of one Newton step to the model of known weights, and what is left of it.

        The same bound holds at the end of the step, where the gradient is smaller.
        """
        model = self.model
        step = self._step(region.ratios - 1, model.weights * region.ratios)
        moved = replace(
            model,
            coefficients=model.coefficients + step,
            weights=model.weights * region.ratios,
        )
        rest = LinearSystem(moved, may_step=False).moves(GivenRegion(np.ones(len(self.z))))
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

    def _step(self, changes: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the Newton step of the coefficients for W/Ŵ − 1, at the weights given."""
        model = self.model
        curvature = weights * model.loss.curvature(self.z, np.zeros(len(self.z)))
        hessian = gram(model.features, curvature)
        pulls = self.vectors.T @ changes + self.left
        inverse = np.linalg.pinv(hessian + np.diag(model.penalties), hermitian=True)
        return np.asarray(-inverse @ pulls)

    def _in_neighbourhood(
        self, region: Region, penalties: FloatArray, left: FloatArray
    ) -> Moves | None:
        radius = np.zeros(len(self.z))
        for _ in range(STEPS):
            tried = self._trial(region, penalties, left, radius, False)
            if tried is None or not np.isfinite(tried[1]).all():
                return None
            found, reach = tried
            if (reach <= radius * (1 + 1e-12)).all() or self._is_constant(radius):
                return found
            radius = np.maximum(radius, 1.1 * reach)
        return None

    def _is_constant(self, radius: FloatArray) -> bool:
        """Return whether the curvature is the same in any neighbourhood."""
        return bool((self.model.loss.curvature(self.z, radius) == self._least_curvature).all())

    @cached_property
    def _least_curvature(self) -> FloatArray:
        return self.model.loss.curvature(self.z, np.full(len(self.z), np.inf))

    def _trial(
        self,
        region: Region,
        penalties: FloatArray,
        left: FloatArray,
        radius: FloatArray,
        penalised: bool,
    ) -> tuple[Moves, FloatArray] | None:
        """Return the moves if no score moves by more than the radius, and how far they may.

        None where the curvature does not determine the model.
        """
        model = self.model
        features, weights = model.features, model.weights
        curvature = weights * region.least * model.loss.curvature(self.z, radius)
        root = inverse_root(gram(features, curvature) + np.diag(penalties))
        if root is None:
            return None
        rows = self.rows.rooted(root)
        pull, dominant = region.pull(rows)
        gap = float(np.linalg.norm(root @ left))
        excess = float((weights * region.most) @ self.excess)
        size = (pull + gap + math.sqrt((pull + gap) ** 2 + 4 * excess)) / 2
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
        directed = region.along(rows)
        if directed is not None:
            halves = directed[0] / 2, (directed[1] + root @ left) / 2
            half = math.sqrt((pull + gap) ** 2 / 4 + excess)
            found = self._directed(found, root, *halves, half, spread)
        return found, found.reach

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

    def move_to_first_order(self, changes: FloatArray) -> FloatArray:
        """Return how the scores move to first order, for columns of W/Ŵ − 1."""
        model = self.model
        curvature = model.weights * model.loss.curvature(self.z, np.zeros(len(self.z)))
        hessian = gram(model.features, curvature)
        pulls = self.vectors.T @ changes
        inverse = np.linalg.pinv(hessian + np.diag(model.penalties), hermitian=True)
        return np.asarray(model.features @ (inverse @ -pulls))

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
        places = [place for place, _, _ in model.loss.kinks]
        near = min(near, float(np.ptp(places)) / 2) if len(places) > 1 else near
        for place, before, after in model.loss.kinks:
            close = np.abs(z - place) <= near
            low[close], high[close] = before, after
            cost[close] = np.abs(z - place)[close] * (after - before)
        free = np.flatnonzero(low < high)
        if not len(free):
            return slopes, np.zeros(len(z))
        chosen = slopes.copy()
        chosen[free] = 0.0
        columns = (model.features[free] * (model.weights * self.sign)[free, None]).T
        solved = lsq_linear(columns, -self._left(chosen), bounds=(low[free], high[free]))
        chosen[free] = np.clip(solved.x, low[free], high[free])
        # The cost of a slope: how far its tangent at the kink lies above the loss at z.
        cost[free] = np.abs(chosen - slopes)[free] * np.abs(cost[free] / (high - low)[free])
        return chosen, cost
