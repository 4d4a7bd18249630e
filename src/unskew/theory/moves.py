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
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from unskew.numerics.typing import FloatArray
from unskew.theory.metrics import Ellipsoid, KernelMetric, RootMetric, top
from unskew.theory.regions import WeightRegion

STEPS = 25
"""Trials of a neighbourhood before the curvature is given up."""


@dataclass(frozen=True)
class Loss:
    r"""A convex loss f of :math:`z = y\,h(x)`, labels being ±1, or of :math:`z = h(x) - y`.

    Where it has a kink, any number between its two slopes is a subgradient.

    Attributes
    ----------
    margin : bool
        Whether it depends on y h(x) instead of h(x) − y.
    slope : callable
        f'(z); at a kink, either slope.
    curvature : callable
        Takes z and r, and returns the least average of the second derivative between z and any
        point at a distance of at most r: the least :math:`(f'(z + \delta) - f'(z)) / \delta`.
    most : callable
        The same for the largest average, or a bound on it.
    kinks : tuple of (float, float, float)
        Each kink's place, and the slopes on its left and right.
    lipschitz : float or None
        The largest absolute slope; None where there is none.
    bend : float or None
        The largest second derivative; None for a loss with kinks.
    """

    margin: bool
    slope: Callable[[FloatArray], FloatArray]
    curvature: Callable[[FloatArray, FloatArray], FloatArray]
    most: Callable[[FloatArray, FloatArray], FloatArray]
    kinks: tuple[tuple[float, float, float], ...] = ()
    lipschitz: float | None = None
    bend: float | None = None

    def argument(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return z."""
        return labels * scores if self.margin else scores - labels

    def bending(self, z: FloatArray, r: FloatArray) -> FloatArray:
        """Return by how much the average second derivative within r can differ from that at z."""
        here = self.curvature(z, np.zeros(len(z)))
        return np.maximum(here - self.curvature(z, r), self.most(z, r) - here)

    def change_of_mean(self, z: FloatArray, weights: FloatArray, moved: float) -> float:
        """Return by how much the weighted mean loss changes at most.

        ``moved`` is the root mean square by which the scores move.
        """
        bounds = [np.inf if self.lipschitz is None else self.lipschitz * moved]
        if self.bend is not None:
            slope = np.sqrt(np.average(self.slope(z) ** 2, weights=weights))
            bounds.append(float(slope) * moved + self.bend / 2 * moved**2)
        return float(min(bounds))


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


@dataclass(eq=False, kw_only=True)
class FittedModel(ABC):
    r"""A model that is linear in features, ready to be asked how far weights can move it.

    Attributes
    ----------
    name : str
        Of the learner.
    loss : Loss
    weights : ndarray of shape (m,)
        Of the rows on which the model depends, in the learner's units.
    classes : ndarray or None
        The two classes of a classifier, the second of which is 1.
    z : ndarray of shape (m,)
        What the loss is taken of: y h(x), or h(x) − y.
    pulls : ndarray of shape (m,)
        What each row adds to the gradient, in units of its features: :math:`\hat W_i f'_i`, with
        the sign of dz/dh. W/Ŵ − 1 is what other weights change of it.
    excess : ndarray of shape (m,)
        ε of (4).
    """

    name: str
    loss: Loss
    weights: FloatArray
    classes: Any = None
    z: FloatArray = field(init=False)
    pulls: FloatArray = field(init=False)
    excess: FloatArray = field(init=False)
    most_term: ClassVar[str]
    """What the certificate calls the largest move of a score, and"""
    norm_term: ClassVar[str]
    """the norm of the change."""

    @abstractmethod
    def metric(
        self, curvature: FloatArray, *, penalised: bool = False
    ) -> RootMetric | KernelMetric | None:
        """Return the metric of H with these D; None where they do not determine the model.

        ``penalised`` asks for a penalty of the intercept as well, which always determines it.
        """

    @property
    @abstractmethod
    def judged(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The features, scores and weights of the rows at which the model is judged."""

    @abstractmethod
    def read(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return the features and scores of rows in the form of X."""

    @property
    @abstractmethod
    def free_intercept(self) -> bool:
        """Whether it has an intercept that is not penalised."""

    @abstractmethod
    def sharpened(self, region: WeightRegion, found: Moves) -> Moves:
        """Return smaller moves where the region says more than how long the gradient is."""

    @abstractmethod
    def refit_changes(self, ratios: FloatArray, moves: Moves) -> FloatArray | None:
        """Return about how the scores move with other weights, a column each; None if unknown."""

    @property
    def shares(self) -> FloatArray:
        """The weights over their sum."""
        return self.weights / self.weights.sum()

    def curvature(self, radius: FloatArray | float) -> FloatArray:
        """Return the least average curvature of each row's loss as far as its score may move."""
        return self.loss.curvature(self.z, np.broadcast_to(radius, self.z.shape))

    def moves(self, region: WeightRegion) -> Moves:
        """Return how far the weights of a region can move the model."""
        # 1) With the curvature of the loss, as far as the scores can move.
        found = self._in_neighbourhood(region)
        if found is not None:
            return self.sharpened(region, found)
        # 2) Without enough curvature, H = R alone. An intercept must then be penalised, as in the
        #    kernel K + 1; at the fitted model, that penalty has a gradient of its own.
        found = self._trial(region, np.inf, penalised=True)
        assert found is not None  # the penalties are positive
        return found

    def _in_neighbourhood(self, region: WeightRegion) -> Moves | None:
        """Return moves that do not leave the neighbourhood whose curvature they use.

        None where none is found: a wider one has less curvature, in which moves are longer.
        """
        radius: FloatArray = np.zeros(len(self.z))
        least = self.curvature(np.inf)
        for _ in range(STEPS):
            found = self._trial(region, radius)
            if found is None or not np.isfinite(found.reach).all():
                return None
            # The supposition was right: u ‖φ_i‖ ≤ r_i for all i; or the curvature is the same in
            # any neighbourhood.
            if (self.curvature(radius) == least).all() or (
                found.reach <= radius * (1 + 1e-12)
            ).all():
                return found
            # Somewhat further than needed, so that few trials are.
            radius = np.maximum(radius, 1.1 * found.reach)
        return None

    def _trial(
        self, region: WeightRegion, radius: FloatArray | float, *, penalised: bool = False
    ) -> Moves | None:
        """Return the moves if no score moves by more than the radius.

        None where the curvature does not determine the model.
        """
        # 1) H of (1) at the least weights of the region: any other weights make it larger.
        curvature = self.weights * region.least * self.curvature(radius)
        metric = self.metric(curvature, penalised=penalised)
        if metric is None:
            return None
        # 2) The gradient is at most as long as what the weights can change of it and what the
        #    optimiser has left; u is the larger root of (4), or that length without kinks.
        pull, dominant = region.pull(metric)
        length = pull + metric.gap
        excess = float((self.weights * region.most) @ self.excess)
        size = (length + math.sqrt(length**2 + 4 * excess)) / 2
        # 3) The ball (2), and over the weighted sample its widest direction.
        ball = metric.ball(size)
        found = Moves(
            metric=metric,
            ball=ball,
            ellipsoids=(ball,),
            reach=ball.reach(self.judged[0]),
            on_average=size * metric.widest,
            norm=size * metric.norm,
            left=(size - pull) * metric.widest,
            dominant=dominant,
            penalised=penalised and self.free_intercept,
        )
        # 4) Where g lies in an ellipsoid, half of it and half of the ball hold the change: (3).
        if not isinstance(metric, RootMetric):
            return found
        directed = region.along(metric)
        if directed is None:
            return found
        halves = directed[0] / 2, (directed[1] + metric.left) / 2
        return self._directed(found, metric, *halves, math.sqrt(length**2 / 4 + excess))

    def _directed(
        self,
        found: Moves,
        metric: RootMetric,
        along: FloatArray,
        centre: FloatArray,
        half: float,
    ) -> Moves:
        """Return smaller moves where half of the step to first order is known."""
        root, spread, features = metric.root, metric.spread, self.judged[0]
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

    def refit_spread(
        self, region: WeightRegion, moves: Moves, random: np.random.RandomState, number: int
    ) -> float | None:
        """Return the root mean square change of the predictions over draws of the weights.

        None where the region or the loss does not allow that. It is an estimate, not a bound.
        """
        drawn = region.draws(random, number)
        change = None if drawn is None else self.refit_changes(drawn, moves)
        if change is None:
            return None
        return math.sqrt(float(np.average((change**2).mean(axis=1), weights=self.weights)))
