"""Projected gradient steps for programs over a box and one sum whose matrix has low rank.

A step costs one product with K, so that a matrix of low rank with a million rows is no obstacle.
"""

from __future__ import annotations

import numpy as np

from unskew.numerics.box_simplex import BoxSimplex, Certificate, SymmetricMatrix
from unskew.numerics.typing import FloatArray

__all__ = ["solve_by_gradient_steps"]

_CHECK_EVERY = 25


def solve_by_gradient_steps(
    program: BoxSimplex[SymmetricMatrix], *, tolerance: float, max_iterations: int = 1000
) -> tuple[FloatArray, Certificate]:
    """Solve by accelerated projected gradient steps; the solution is always feasible.

    Nesterov's acceleration, restarted when it overshoots (O'Donoghue and Candès, "Adaptive restart
    for accelerated gradient schemes", 2015). The step is the inverse of the largest eigenvalue of K
    on directions that keep the sum, if it is fixed, which is far smaller than that of K.
    """
    matrix, linear = program.matrix, program.linear.astype(np.float32)
    steepest = 1.2 * _norm(matrix, centred=program.total[0] == program.total[1])
    place = program.feasible(program.upper * (0.5 * sum(program.total) / program.upper.sum()))
    position = place.astype(np.float32)
    image = matrix.quick_product(position)
    ahead, ahead_image, momentum = position, image, 1.0
    for step in range(1, max_iterations + 1):
        target = (ahead - (ahead_image - linear) / steepest).astype(np.float64)
        place = program.feasible(target)
        following = place.astype(np.float32)
        following_image = matrix.quick_product(following)
        if (ahead - following) @ (following - position) > 0:
            momentum = 1.0
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = np.float32((momentum - 1) / grown)
        ahead = following + push * (following - position)
        ahead_image = following_image + push * (following_image - image)
        position, image, momentum = following, following_image, grown
        if step % _CHECK_EVERY == 0:
            there = program.certify(place, image - linear, step, tolerance)
            if there.violation <= 0.5 * tolerance:
                break
    gradient = matrix.exact_product(place) - program.linear
    return place, program.certify(place, gradient, step, tolerance)


def _norm(matrix: SymmetricMatrix, *, centred: bool) -> float:
    """Return about the largest eigenvalue of K by power steps, centred: on vectors of sum zero."""
    vector = np.random.RandomState(0).normal(size=matrix.size).astype(np.float32)
    for _ in range(8):
        vector -= vector.mean() if centred else 0
        vector /= max(float(np.linalg.norm(vector)), 1e-30)
        vector = matrix.quick_product(vector)
    vector -= vector.mean() if centred else 0
    return max(float(np.linalg.norm(vector)), 1e-6)
