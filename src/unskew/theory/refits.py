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
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unskew.numerics.typing import FloatArray
from unskew.theory.flips import PerDraw
from unskew.theory.moves import LinearSystem, gram, inverse_root, top
from unskew.theory.regions import WeightRegion, order_statistic

DRAWS = 199
"""Of the weights, where the distribution is known; more where δ is smaller than 2 %."""

NEWTON_STEPS, GRADIENT_STEPS = 6, 4

ENOUGH = 0.02
"""The share of the first gradient that may be left."""

ENTRIES = 1 << 16
"""Of the matrices of rows and draws that are computed at once: few enough to stay in the cache."""


@dataclass(frozen=True)
class Refits:
    """Models that were fitted again, all draws as columns.

    Attributes
    ----------
    rule : PerDraw
        Which rows flip in each draw.
    on_average : ndarray of shape (n_draws,)
        The root mean square of the scores' changes over the weighted sample.
    most : ndarray of shape (n_draws,)
        The largest change of a score in the sample.
    norm : ndarray of shape (n_draws,)
        Of the coefficients' change.
    left : float
        The part of the average that comes from the optimiser.
    """

    rule: PerDraw
    on_average: FloatArray
    most: FloatArray
    norm: FloatArray
    left: float


def refits_with_draws(
    system: LinearSystem, region: WeightRegion, delta: float, random: np.random.RandomState
) -> Refits | None:
    """Fit the model again with draws of the weights; None where it has too little curvature."""
    model, loss = system.model, system.model.loss
    if loss.bend is None:
        return None
    here = model.weights * system.curvature
    root = inverse_root(gram(model.features, here) + np.diag(model.penalties))
    drawn = region.draws(random, max(DRAWS, math.ceil(4 / delta) - 1))
    if root is None or drawn is None:
        return None
    steps, size, most = _solve(_DrawnObjective(system, drawn), root)
    # What is left of the gradient moves a model by its length in H⁻¹, where H has the curvature at
    # the fitted model; twice that, for the curvature on the way may be smaller.
    rest = 2 * size
    if not np.isfinite(steps).all() or not np.isfinite(rest).all():
        return None
    widest = math.sqrt(top(root @ system.squares @ root.T))
    lengths = np.linalg.norm(model.features @ root.T, axis=1)
    squares = np.einsum("ib,ij,jb->b", steps, system.squares, steps, optimize=True)
    inverse = root.T @ (root @ system.left)
    return Refits(
        PerDraw(steps, rest, root),
        np.sqrt(np.maximum(squares, 0.0)) + rest * widest,
        most + rest * float(lengths.max()),
        np.linalg.norm(steps, axis=0) + rest * float(np.linalg.norm(root, 2)),
        math.sqrt(max(float(inverse @ system.squares @ inverse), 0.0)),
    )


class _DrawnObjective:
    """The objective of the model with drawn weights, all draws as columns, by blocks of rows.

    Parameters
    ----------
    system : LinearSystem
    ratios : ndarray of shape (m, n_draws)
        W/Ŵ.
    """

    def __init__(self, system: LinearSystem, ratios: FloatArray) -> None:
        self.system, self.ratios = system, ratios
        model, z = system.model, system.z
        self.signed = system.sign[:, None] * model.features
        self.weighted = model.weights[:, None] * self.signed
        self.curved = system.curvature[:, None] * self.weighted
        step = max(1, ENTRIES // ratios.shape[1])
        self.blocks = [slice(start, start + step) for start in range(0, len(z), step)]

    def first_gradient(self) -> FloatArray:
        """Return the gradients at the fitted model."""
        model = self.system.model
        found = self.system.vectors.T @ self.ratios
        return np.asarray(found + (model.penalties * model.coefficients)[:, None])

    def gradient(self, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients after steps, and the largest change of a score of each draw."""
        model, z = self.system.model, self.system.z[:, None]
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
        found = self.system.model.penalties[:, None] * direction
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


def conjugate_gradients(
    image: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    inverse: FloatArray | None = None,
    *,
    steps: int = GRADIENT_STEPS,
    enough: float = 0.0,
) -> FloatArray:
    """Solve a system for each column, all at once and roughly.

    Parameters
    ----------
    image : callable
        Returns each column's matrix times its direction.
    right : ndarray of shape (d, n)
    inverse : ndarray of shape (d, d), optional
        The preconditioner.
    steps : int
    enough : float
        The share of the right-hand side that may be left.
    """
    # All columns take their steps together, each with its own length and direction.
    solved, residual = np.zeros_like(right), right.copy()
    direction = better = residual if inverse is None else inverse @ residual
    old = np.einsum("ij,ij->j", residual, better)
    for _ in range(steps):
        mapped = image(direction)
        step = old / np.maximum(np.einsum("ij,ij->j", direction, mapped), 1e-300)
        solved += step * direction
        residual = residual - step * mapped
        if np.linalg.norm(residual) <= enough * np.linalg.norm(right):
            break
        better = residual if inverse is None else inverse @ residual
        new = np.einsum("ij,ij->j", residual, better)
        direction = better + new / np.maximum(old, 1e-300) * direction
        old = new
    return solved


def joint_limits(numbers: list[FloatArray], delta: float) -> list[float]:
    """Return limits that another draw exceeds, in any of its numbers, with probability δ at most.

    Examples
    --------
    >>> joint_limits([np.arange(1.0, 20.0), np.arange(19.0, 0.0, -1.0)], 0.1)
    [19.0, 19.0]
    >>> joint_limits([np.arange(1.0, 20.0), np.arange(1.0, 20.0)], 0.1)
    [18.0, 18.0]
    """
    # Of a draw, the largest rank among its numbers is one number. All but δ of the draws stay below
    # the order statistic of these, and that rank is where each number is read off.
    place = order_statistic(len(numbers[0]), delta)
    ordered = [np.sort(one) for one in numbers]
    # Draws that are equal share their lowest rank: the limit is their common number.
    ranks = [np.searchsorted(line, one) for line, one in zip(ordered, numbers, strict=True)]
    rank = int(np.sort(np.max(ranks, axis=0))[place])
    return [float(line[rank]) for line in ordered]
