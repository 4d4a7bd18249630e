r"""How far draws of the weights move a linear model: asymptotic statements without a worst case.

Where the distribution of the perfect weights around the estimated ones is known asymptotically, the
model is fitted again with weights drawn from it. Any number that follows from the weights exceeds
the k-th smallest of B such draws with probability :math:`1 - k / (B + 1)`. Several numbers at once
are bounded by the draws' largest rank among them: the k-th smallest of these ranks is where each
number is read off.

The refits are Newton's, all draws at once, with the curvature of the loss at the fitted model:
each step solves its linear system by conjugate gradients, preconditioned by the curvature with the
fitted weights. What is left of the gradient is counted twice, for the curvature on the way may be
somewhat smaller.
"""

from __future__ import annotations

import math

import numpy as np

from unskew.numerics.typing import FloatArray
from unskew.theory.flips import PerDraw
from unskew.theory.metrics import conjugate_gradients
from unskew.theory.models import LinearModel
from unskew.theory.regions import WeightRegion, order_statistic

DRAWS = 199
"""Of the weights, where the distribution is known; more where δ is smaller than 2 %."""

NEWTON_STEPS = 6

ENOUGH = 0.02
"""The share of the first gradient that may be left."""

ENTRIES = 1 << 16
"""Of the matrices of rows and draws that are computed at once: few enough to stay in the cache."""


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
