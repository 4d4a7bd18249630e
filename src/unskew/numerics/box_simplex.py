r"""Quadratic programs over a box and one sum, the shape of kernel mean matching.

.. math:: \min_\gamma \tfrac12 \gamma^\top K \gamma - \kappa^\top \gamma
          \quad\text{with } 0 \le \gamma_i \le u_i,\ \ell \le \textstyle\sum_i \gamma_i \le h

This is the dual of a support-vector problem: one sum, a box, and a solution in which most entries
are zero. Here is the program, the certificate of a point, and projected gradient steps, for
matrices of low rank: a step costs one product with K, which is cheap even with a million rows.
:mod:`~unskew.numerics.exchange` solves programs with any matrix exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from unskew.numerics.typing import BoolArray, FloatArray, IntArray


class SymmetricMatrix(Protocol):
    """A positive semi-definite matrix that can be multiplied with."""

    size: int

    def quick_product(self, vector: FloatArray) -> FloatArray:
        """Return K v, from entries in single precision."""

    def exact_product(self, vector: FloatArray) -> FloatArray:
        """Return K v in double precision."""


class BlockMatrix(SymmetricMatrix, Protocol):
    """A symmetric matrix whose blocks can be computed too."""

    def block(
        self, rows: IntArray, columns: IntArray, *, exact: bool, lower: bool = False
    ) -> FloatArray:
        """Return K[rows][:, columns] as a new array, in double precision if it is to be exact.

        If only the lower triangle is asked for, what is above it may be anything.
        """


Matrix = TypeVar("Matrix", bound=SymmetricMatrix)


@dataclass(frozen=True)
class BoxCertificate:
    """How good a solution is, computed independently of the solver.

    Attributes
    ----------
    objective : float
        The value of the program.
    gap : float
        An upper bound on how far the objective is above the optimum: Wolfe's duality gap, the most
        that the linearised objective could still fall within the constraints.
    violation : float
        The largest violation of the optimality conditions: by how much the gradient of some entry
        that could fall exceeds that of some entry that could rise.
    bound_residual, sum_residual : float
        By how much the solution leaves the box, and the sum its range, relative to the sum.
    iterations : int
        Gradient steps, or rounds of exchange.
    tolerance : float
        The largest violation that was allowed.
    converged : bool
        Whether the violation is within the tolerance.
    """

    objective: float
    gap: float
    violation: float
    bound_residual: float
    sum_residual: float
    iterations: int
    tolerance: float
    converged: bool


def project_box_simplex(point: FloatArray, upper: FloatArray, total: float) -> FloatArray:
    """Return the nearest point with entries between 0 and ``upper`` that sum to ``total``.

    The nearest point is ``clip(point - shift, 0, upper)``; the shift is found by bisection on its
    sorted break points and then exactly.

    Examples
    --------
    >>> project_box_simplex(np.array([3.0, 0.0, 1.0]), np.full(3, 2.0), 3.0)
    array([2., 0., 1.])
    """
    # With no upper bound in play, the shift comes from one sort (Held, Wolfe and Crowder 1974).
    falling = np.sort(point)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(point) + 1)
    shift = shifts[np.flatnonzero(falling > shifts)[-1]]
    projected = np.maximum(point - shift, 0.0)
    if (projected <= upper).all():
        return projected
    breaks = np.sort(np.concatenate([point, point - upper]))
    low, high = 0, len(breaks) - 1
    while high - low > 1:  # the sum falls as the shift grows, and is linear between break points
        middle = (low + high) // 2
        if np.clip(point - breaks[middle], 0.0, upper).sum() >= total:
            low = middle
        else:
            high = middle
    above, below = (np.clip(point - breaks[k], 0.0, upper).sum() for k in (low, high))
    share = (above - total) / (above - below) if above > below else 0.0
    shift = breaks[low] + share * (breaks[high] - breaks[low])
    return np.clip(point - shift, 0.0, upper)


@dataclass(frozen=True)
class BoxSimplex(Generic[Matrix]):
    """The data of a program and what follows from them alone.

    Parameters
    ----------
    matrix : SymmetricMatrix
        K; the exact solver needs a :class:`BlockMatrix`.
    linear : ndarray of shape (n,)
        κ.
    upper : ndarray of shape (n,)
        The upper bounds; positive.
    total : tuple of float
        The least and the largest sum; feasible within the box.
    """

    matrix: Matrix
    linear: FloatArray
    upper: FloatArray
    total: tuple[float, float]

    def feasible(self, point: FloatArray) -> FloatArray:
        """Return the nearest feasible point."""
        inside = np.clip(point, 0.0, self.upper)
        reached = inside.sum()
        asked = float(np.clip(reached, *self.total))
        if reached == asked:
            return inside
        return project_box_simplex(point, self.upper, asked)

    def allows(self, reached: float) -> bool:
        """Whether a sum is within its range, up to rounding."""
        margin = 1e-12 * max(1.0, self.total[1])
        return bool(self.total[0] - margin <= reached <= self.total[1] + margin)

    def multiplier(self, gradient: FloatArray, at_upper: BoolArray) -> float:
        """Return the sum's multiplier where every entry is at a bound: between the two sides."""
        low, high = self.total
        reached = self.upper[at_upper].sum()
        if low < reached < high:
            return 0.0
        upper_side = gradient[at_upper].max(initial=-np.inf)
        lower_side = gradient[~at_upper].min(initial=np.inf)
        sides = [side for side in (upper_side, lower_side) if np.isfinite(side)]
        between = -float(np.mean(sides))
        if low < high:  # only one direction is barred
            return max(between, 0.0) if reached >= high else min(between, 0.0)
        return between

    def settled(self, point: FloatArray) -> FloatArray:
        """Return a feasible point nearby, with zeros and entries at a bound where they are.

        Where only entries at a bound could bring the sum into its range, they do.
        """
        inside = np.clip(point, 0.0, self.upper)
        asked = float(np.clip(inside.sum(), *self.total))
        between = (inside > 0) & (inside < self.upper)
        rest = asked - inside[~between].sum()
        if not 0 < rest < self.upper[between].sum():
            return self.feasible(point)
        scaled = inside[between] * (rest / inside[between].sum())
        if (scaled > self.upper[between]).any():
            scaled = project_box_simplex(inside[between], self.upper[between], rest)
        inside[between] = scaled
        return inside

    def certify(
        self, point: FloatArray, gradient: FloatArray, iterations: int, tolerance: float
    ) -> BoxCertificate:
        """Return the certificate of a feasible point with its gradient."""
        size = max(1.0, self.total[1])
        low, high = self.total
        # What rounding keeps from its bound is at its bound; the gap counts it all the same.
        can_fall, can_rise = point > 1e-9 * size / len(point), point < self.upper * (1 - 1e-9)
        falling = gradient[can_fall].max(initial=-np.inf)
        rising = gradient[can_rise].min(initial=np.inf)
        violation = falling - rising
        reached = point.sum()
        if high > low:  # the sum may move too, unless it is at the end it pushes against
            if reached > low + 1e-9 * size:
                violation = max(violation, falling)
            if reached < high - 1e-9 * size:
                violation = max(violation, -rising)
        return BoxCertificate(
            objective=float(0.5 * point @ (gradient - self.linear)),
            gap=float(gradient @ point - self._least_linear(gradient)),
            violation=float(max(violation, 0.0)),
            bound_residual=float(max((point - self.upper).max(), -point.min(), 0.0) / size),
            sum_residual=float(max(low - reached, reached - high, 0.0) / size),
            iterations=iterations,
            tolerance=tolerance,
            converged=bool(violation <= tolerance),
        )

    def _least_linear(self, gradient: FloatArray) -> float:
        """Return the least of gradient·z over the constraints: fill the cheapest entries first."""
        order = np.argsort(gradient)
        filled = np.minimum(np.cumsum(self.upper[order]), self.total[1])
        amounts = np.diff(filled, prepend=0.0)
        costs = gradient[order]
        # Beyond the least sum, only entries that lower the value are worth filling.
        needed = np.diff(np.minimum(filled, self.total[0]), prepend=0.0)
        return float(costs @ np.where(costs < 0, amounts, needed))


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
