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
from dataclasses import dataclass

import numpy as np

from unskew.numerics.typing import FloatArray
from unskew.theory.curvature import gram, inverse_root, top
from unskew.theory.flips import PerDraw
from unskew.theory.linear_moves import LinearSystem
from unskew.theory.regions import Region, order_statistic

DRAWS = 199
"""Of the weights, where the distribution is known; more where δ is smaller than 2 %."""

NEWTON_STEPS, GRADIENT_STEPS = 6, 4

ENOUGH = 0.02
"""The share of the first gradient that may be left."""

ENTRIES = 4_000_000
"""Of the matrices of rows and draws that are held at once."""


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


def refits(
    system: LinearSystem, region: Region, delta: float, random: np.random.RandomState
) -> Refits | None:
    """Fit the model again with draws of the weights; None where it has too little curvature."""
    model, loss = system.model, system.model.loss
    if loss.bend is None:
        return None
    here = model.weights * loss.curvature(system.z, np.zeros(len(system.z)))
    root = inverse_root(gram(model.features, here) + np.diag(model.penalties))
    drawn = region.draws(random, max(DRAWS, math.ceil(4 / delta) - 1))
    if root is None or drawn is None:
        return None
    size = max(1, ENTRIES // len(system.z))
    parts = [
        _solve(system, drawn[:, start : start + size], root)
        for start in range(0, drawn.shape[1], size)
    ]
    steps = np.column_stack([part[0] for part in parts])
    rest = 2 * np.concatenate([part[1] for part in parts])
    if not np.isfinite(steps).all() or not np.isfinite(rest).all():
        return None
    widest = math.sqrt(top(root @ system.squares @ root.T))
    lengths = np.linalg.norm(model.features @ root.T, axis=1)
    squares = np.einsum("ib,ij,jb->b", steps, system.squares, steps, optimize=True)
    most = np.concatenate(
        [np.abs(model.features @ part[0]).max(axis=0) for part in parts]
    ) + rest * float(lengths.max())
    inverse = root.T @ (root @ system.left)
    return Refits(
        PerDraw(steps, rest, root),
        np.sqrt(np.maximum(squares, 0.0)) + rest * widest,
        most,
        np.linalg.norm(steps, axis=0) + rest * float(np.linalg.norm(root, 2)),
        math.sqrt(max(float(inverse @ system.squares @ inverse), 0.0)),
    )


def _solve(
    system: LinearSystem, changes: FloatArray, root: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the steps to the models of these weights, and the size of the gradients left."""
    model, loss, sign = system.model, system.model.loss, system.sign[:, None]
    weights = model.weights[:, None] * (1 + changes)
    inverse = root.T @ root
    steps = np.zeros((model.features.shape[1], changes.shape[1]))
    here = loss.curvature(system.z, np.zeros(len(system.z)))[:, None]
    curvature = weights * here
    gradient = system.vectors.T @ (1 + changes)
    gradient += (model.penalties * model.coefficients)[:, None]
    size = first = np.linalg.norm(root @ gradient, axis=0)
    for _ in range(NEWTON_STEPS):
        steps -= _conjugate_gradients(model.features, curvature, model.penalties, gradient, inverse)
        z = system.z[:, None] + sign * (model.features @ steps)
        slopes = np.asarray(loss.slope(z.reshape(-1))).reshape(z.shape)
        gradient = model.features.T @ (weights * sign * slopes)
        gradient += model.penalties[:, None] * (model.coefficients[:, None] + steps)
        size = np.linalg.norm(root @ gradient, axis=0)
        if (size <= ENOUGH * first).all():
            break
    return steps, size


def _conjugate_gradients(
    features: FloatArray,
    curvature: FloatArray,
    penalties: FloatArray,
    right: FloatArray,
    inverse: FloatArray,
) -> FloatArray:
    """Solve for each column with its own curvature, roughly."""
    solved, residual = np.zeros_like(right), right.copy()
    direction = inverse @ residual
    old = np.einsum("ij,ij->j", residual, direction)
    for _ in range(GRADIENT_STEPS):
        image = features.T @ (curvature * (features @ direction))
        image += penalties[:, None] * direction
        step = old / np.maximum(np.einsum("ij,ij->j", direction, image), 1e-300)
        solved += step * direction
        residual -= step * image
        if np.linalg.norm(residual) <= 1e-3 * np.linalg.norm(right):
            break
        better = inverse @ residual
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
    place = order_statistic(len(numbers[0]), delta)
    ordered = [np.sort(one) for one in numbers]
    # Draws that are equal share their lowest rank: the limit is their common number.
    ranks = [np.searchsorted(line, one) for line, one in zip(ordered, numbers, strict=True)]
    rank = int(np.sort(np.max(ranks, axis=0))[place])
    return [float(line[rank]) for line in ordered]
