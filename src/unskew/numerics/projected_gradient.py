"""Projected gradient steps for programs over a box and one sum whose matrix has low rank.

A step costs one product with K, which is cheap for a matrix of low rank with a million rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.numerics.box_simplex import BoxCertificate, BoxSimplex, SymmetricMatrix
from unskew.numerics.typing import FloatArray

_CHECK_EVERY = 25
"""Steps between two certificates: a certificate sorts all entries, which costs as much as a few
steps. Not tuned."""

_NORM_STEPS, _NORM_MARGIN = 8, 1.2
"""Power steps for the largest eigenvalue, and what their estimate is multiplied by, because it is
from below and a step must not be too long. Not tuned."""

_SINGLE_SHARE = 0.5
"""The share of the tolerance at which to stop: steps compute in single precision, and the final
certificate is in double precision. Not tuned."""


def solve_by_gradient_steps(
    program: BoxSimplex[SymmetricMatrix], *, tolerance: float, max_iterations: int = 1000
) -> tuple[FloatArray, BoxCertificate]:
    """Solve by accelerated projected gradient steps; the solution is always feasible.

    Parameters
    ----------
    program : BoxSimplex
    tolerance : float
        The largest violation of the optimality conditions.
    max_iterations : int
        The largest number of steps.

    Returns
    -------
    ndarray, BoxCertificate
    """
    place, steps = approach(program, tolerance=tolerance, max_steps=max_iterations)
    gradient = program.matrix.exact_product(place) - program.linear
    return place, program.certify(place, gradient, steps, tolerance)


def approach(
    program: BoxSimplex[Any], *, tolerance: float, max_steps: int
) -> tuple[FloatArray, int]:
    """Return a feasible point near the solution, and the number of steps to it.

    Nesterov's acceleration, restarted when it overshoots (O'Donoghue and Candès, "Adaptive restart
    for accelerated gradient schemes", 2015). The step is the inverse of the largest eigenvalue of K
    on directions that keep the sum, if it is fixed, which is far smaller than that of K.
    """
    # 1) The length of a step, and a feasible point to begin with.
    matrix, linear = program.matrix, program.linear.astype(np.float32)
    steepest = _NORM_MARGIN * _norm(matrix, centred=program.total[0] == program.total[1])
    place = program.feasible(program.upper * (0.5 * sum(program.total) / program.upper.sum()))
    position = place.astype(np.float32)
    image = matrix.quick_product(position)
    ahead, ahead_image, momentum = position, image, 1.0
    for step in range(1, max_steps + 1):
        # 2) A gradient step from the extrapolated point, back into the constraints.
        target = (ahead - (ahead_image - linear) / steepest).astype(np.float64)
        place = program.feasible(target)
        following = place.astype(np.float32)
        following_image = matrix.quick_product(following)
        # 3) Extrapolate, with less momentum if the step turned back (adaptive restart).
        if (ahead - following) @ (following - position) > 0:
            momentum = 1.0
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = np.float32((momentum - 1) / grown)
        ahead = following + push * (following - position)
        ahead_image = following_image + push * (following_image - image)
        position, image, momentum = following, following_image, grown
        # 4) Stop when the certificate is good enough.
        if step % _CHECK_EVERY == 0:
            there = program.certify(place, image - linear, step, tolerance)
            if there.violation <= _SINGLE_SHARE * tolerance:
                break
    return place, step


def _norm(matrix: SymmetricMatrix, *, centred: bool) -> float:
    """Estimate the largest eigenvalue of K by power steps; centred: on vectors of sum zero."""
    vector = np.random.RandomState(0).normal(size=matrix.size).astype(np.float32)
    for _ in range(_NORM_STEPS):
        vector -= vector.mean() if centred else 0
        vector /= max(float(np.linalg.norm(vector)), 1e-30)
        vector = matrix.quick_product(vector)
    vector -= vector.mean() if centred else 0
    return max(float(np.linalg.norm(vector)), 1e-6)
