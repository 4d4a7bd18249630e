r"""Quadratic programs over a box and one sum, the shape of kernel mean matching.

.. math:: \min_\gamma \tfrac12 \gamma^\top K \gamma - \kappa^\top \gamma
          \quad\text{with } 0 \le \gamma_i \le u_i,\ \ell \le \textstyle\sum_i \gamma_i \le h

This is the dual of a support-vector problem: one sum, a box, and a solution in which most entries
are zero. Accelerated projected gradient steps, which cost one product with K each, soon tell about
which entries are free. From there an active set is exchanged in blocks: the free entries solve a
linear system, entries that left the box go to their bound, bounded entries with the wrong sign of
the gradient become free, until none is left to exchange. Each round costs one Cholesky factor of
the free block, and a handful of rounds ends in a solution that is exact up to rounding.

Rounds are proximal: they minimise the objective plus :math:`\tfrac\rho2 \lVert\gamma - c\rVert^2`
around the last point c, so that a singular K (repeated rows, a very wide kernel) does no harm, and
are repeated around their result until the certificate of the program itself is small enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from unskew.numerics.typing import BoolArray, FloatArray, IntArray

__all__ = ["Certificate", "SymmetricMatrix", "project_box_simplex", "solve_box_simplex"]

_PROXIMITY = 1e-5
_LARGEST_PROXIMITY = 1e6
_CHECK_EVERY = 25
_MOST_GRADIENT_STEPS = 100
_MOST_GROWTH = 0.3
_PATIENCE = 5
_FEW_WRONG = 0.02


class SymmetricMatrix(Protocol):
    """A positive semi-definite matrix, as far as the solver needs to know it."""

    size: int

    def quick_product(self, vector: FloatArray) -> FloatArray:
        """Return K v, in single precision if that is quicker."""

    def exact_product(self, vector: FloatArray) -> FloatArray:
        """Return K v in double precision."""

    def block(self, rows: IntArray, *, exact: bool) -> FloatArray:
        """Return K[rows][:, rows] as a new array, in double precision if it is to be exact."""


@dataclass(frozen=True)
class Certificate:
    """What can be said of a solution without trusting the solver.

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
        Gradient steps and exchanges together.
    converged : bool
        Whether the violation is within the tolerance.
    """

    objective: float
    gap: float
    violation: float
    bound_residual: float
    sum_residual: float
    iterations: int
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


def solve_box_simplex(
    matrix: SymmetricMatrix,
    linear: FloatArray,
    *,
    upper: FloatArray,
    total: tuple[float, float],
    tolerance: float,
    start: FloatArray | None = None,
    max_iterations: int = 1000,
    exchange: bool = True,
) -> tuple[FloatArray, Certificate]:
    """Solve the program; see the module's docstring.

    Parameters
    ----------
    matrix : SymmetricMatrix
        K.
    linear : ndarray of shape (n,)
        κ.
    upper : ndarray of shape (n,)
        The upper bounds; positive.
    total : tuple of float
        The least and the largest sum; feasible within the box.
    tolerance : float
        The largest violation of the optimality conditions.
    start : ndarray of shape (n,), optional
        Where to begin; it is made feasible first. With a start, no gradient steps are taken.
    max_iterations : int
        Gradient steps and exchanges together.
    exchange : bool
        Whether to exchange active sets; without, gradient steps go on until the tolerance is
        reached, which suits a matrix of low rank with far more rows than a block could have.

    Returns
    -------
    ndarray, Certificate
        The solution is feasible whether or not it converged.
    """
    program = _Program(matrix, linear, upper, total)
    even = program.feasible(upper * (0.5 * sum(total) / upper.sum()))
    if not exchange:
        point, steps = _gradient_steps(program, even, max_iterations, tolerance=tolerance)
        gradient = matrix.exact_product(point) - linear
        return point, program.certify(point, gradient, steps, tolerance)
    if start is None:
        point, steps = _gradient_steps(program, even, min(_MOST_GRADIENT_STEPS, max_iterations))
    else:
        point, steps = program.settled(start), 0
    return _proximal_rounds(program, point, steps, tolerance, max_iterations)


def _proximal_rounds(
    program: _Program, point: FloatArray, steps: int, tolerance: float, max_iterations: int
) -> tuple[FloatArray, Certificate]:
    """Repeat exchanges around their own result until the certificate is small enough.

    An exchange that settles has found the proximal point, which lowers the objective; one that does
    not is thrown away, and the next stays closer to the last point, where it must settle.
    """
    proximity, certificate = _PROXIMITY, None
    while True:
        found, image, used = _exchange(
            program, point, proximity, tolerance, precise=certificate is not None
        )
        steps += used
        if image is not None:
            point = program.settled(found)
            # Settling mostly scales the point by a factor next to one, and its image along with it.
            factor = point.sum() / found.sum()
            if np.allclose(point, found * factor, rtol=1e-12, atol=0):
                image = image * factor
            else:
                image = program.matrix.exact_product(point)
            certificate = program.certify(point, image - program.linear, steps, tolerance)
            proximity = max(proximity / 3, _PROXIMITY)
        else:
            proximity *= 10
        if (certificate and certificate.converged) or steps >= max_iterations:
            break
        if proximity > _LARGEST_PROXIMITY:  # nothing but rounding keeps it from settling
            break
    if certificate is None:
        gradient = program.matrix.exact_product(point) - program.linear
        certificate = program.certify(point, gradient, steps, tolerance)
    return point, replace(certificate, iterations=steps)


class _Program:
    """The data of a program and what follows from them alone."""

    def __init__(
        self,
        matrix: SymmetricMatrix,
        linear: FloatArray,
        upper: FloatArray,
        total: tuple[float, float],
    ) -> None:
        self.matrix = matrix
        self.linear = linear
        self.upper = upper
        self.total = total

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
        """Return a feasible point nearby that keeps zeros at zero, where there is one."""
        inside = np.clip(point, 0.0, self.upper)
        reached = inside.sum()
        scaled = inside * (np.clip(reached, *self.total) / reached) if reached > 0 else inside
        return scaled if reached > 0 and (scaled <= self.upper).all() else self.feasible(point)

    def certify(
        self, point: FloatArray, gradient: FloatArray, iterations: int, tolerance: float
    ) -> Certificate:
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
        return Certificate(
            objective=float(0.5 * point @ (gradient - self.linear)),
            gap=float(gradient @ point - self._least_linear(gradient)),
            violation=float(max(violation, 0.0)),
            bound_residual=float(max((point - self.upper).max(), -point.min(), 0.0) / size),
            sum_residual=float(max(low - reached, reached - high, 0.0) / size),
            iterations=iterations,
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


def _gradient_steps(
    program: _Program, point: FloatArray, most: int, *, tolerance: float | None = None
) -> tuple[FloatArray, int]:
    """Take accelerated projected gradient steps until the set of positive entries settles.

    With a tolerance, until the optimality conditions are met to it instead.

    Nesterov's acceleration, restarted when it overshoots (O'Donoghue and Candès, "Adaptive restart
    for accelerated gradient schemes", 2015). The step is the inverse of the largest eigenvalue of K
    on directions that keep the sum, which is far smaller than that of K.
    """
    matrix, linear = program.matrix, program.linear.astype(np.float32)
    steepest = 1.2 * _centred_norm(matrix)
    position = point.astype(np.float32)
    image = matrix.quick_product(position)
    ahead, ahead_image, momentum = position, image, 1.0
    positive, settled = len(point), False
    for step in range(1, most + 1):
        target = (ahead - (ahead_image - linear) / steepest).astype(np.float64)
        following = program.feasible(target).astype(np.float32)
        following_image = matrix.quick_product(following)
        if (ahead - following) @ (following - position) > 0:
            momentum = 1.0
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = np.float32((momentum - 1) / grown)
        ahead = following + push * (following - position)
        ahead_image = following_image + push * (following_image - image)
        position, image, momentum = following, following_image, grown
        if step % _CHECK_EVERY == 0 and tolerance is not None:
            there = program.certify(position.astype(np.float64), image - linear, step, tolerance)
            if there.violation <= 0.5 * tolerance:
                break
        elif step % _CHECK_EVERY == 0:
            now = int(np.count_nonzero(position))
            settled, positive = 0.95 * positive < now < 0.8 * len(point), now
            if settled:
                break
    if (
        not settled and tolerance is None
    ):  # most of what is small by now will be zero; what should not returns below
        position = np.where(position > 0.5 * position.mean(), position, 0)
    return program.settled(position.astype(np.float64)), step


def _centred_norm(matrix: SymmetricMatrix) -> float:
    """Return about the largest eigenvalue of K on vectors that sum to zero, by power steps."""
    vector = np.random.RandomState(0).normal(size=matrix.size).astype(np.float32)
    for _ in range(8):
        vector -= vector.mean()
        vector /= max(float(np.linalg.norm(vector)), 1e-30)
        vector = matrix.quick_product(vector)
    vector -= vector.mean()
    return max(float(np.linalg.norm(vector)), 1e-6)


def _exchange(
    program: _Program,
    centre: FloatArray,
    proximity: float,
    tolerance: float,
    *,
    precise: bool,
) -> tuple[FloatArray, FloatArray | None, int]:
    """Exchange the active set in blocks until it is right for the program around ``centre``.

    Returns the point, K times it (None if the set did not settle), and the number of rounds.
    """
    matrix, linear, upper = program.matrix, program.linear, program.upper
    at_upper = centre >= upper
    free = (centre > 0) & ~at_upper
    fewest, patience, rounds = matrix.size + 1, _PATIENCE, 0
    reduced = -linear
    while patience:
        rounds += 1
        if not free.any() and not program.allows(upper[at_upper].sum()):
            one = int(np.argmin(np.where(at_upper, np.inf, reduced)))
            free[one], at_upper[one] = True, False
        product = matrix.exact_product if precise else matrix.quick_product
        point = np.where(at_upper, upper, 0.0)
        right = linear + proximity * centre
        if at_upper.any():
            right = right - product(point)
        rows = np.flatnonzero(free)
        multiplier = None
        if len(rows):
            point[rows], multiplier = _solve_free(
                program, rows, right[rows], point.sum(), proximity, precise=precise
            )
        image = product(point)
        reduced = image - linear + proximity * (point - centre)
        reduced += program.multiplier(reduced, at_upper) if multiplier is None else multiplier
        below, above = free & (point < 0), free & (point > upper)
        # What single precision cannot tell from zero is left to the precise rounds.
        slack = 0.8 * tolerance if precise else max(tolerance, 1e-6 * np.abs(linear).max())
        rise = ~free & ~at_upper & (reduced < -slack)
        fall = at_upper & (reduced > slack)
        rise &= reduced <= _rank_value(reduced[rise], int(_MOST_GROWTH * len(rows)) + 10)
        n_wrong = int(np.count_nonzero(below | above | rise | fall))
        if precise and not n_wrong:
            return point, image, rounds
        precise = precise or n_wrong <= _FEW_WRONG * len(rows)
        patience = _PATIENCE if n_wrong < fewest else patience - 1
        fewest = min(fewest, n_wrong)
        free = (free & ~below & ~above) | rise | fall
        at_upper = (at_upper & ~fall) | above
    return centre, None, rounds


def _rank_value(values: FloatArray, rank: int) -> float:
    """Return the value of this rank from below, or infinity if there are not as many."""
    return float(np.partition(values, rank)[rank]) if rank < len(values) else np.inf


def _solve_free(
    program: _Program,
    rows: IntArray,
    right: FloatArray,
    fixed_sum: float,
    proximity: float,
    *,
    precise: bool,
) -> tuple[FloatArray, float]:
    """Solve (K + ρ) x = right − μ on the free entries, with the sum within its range."""
    solved = _solve_definite(
        program.matrix, rows, np.column_stack([right, np.ones(len(rows))]), proximity, precise
    )
    alone, ones = solved.T
    reached = alone.sum() + fixed_sum
    asked = float(np.clip(reached, *program.total))
    multiplier = float((reached - asked) / ones.sum())
    return alone - multiplier * ones, multiplier


def _solve_definite(
    matrix: SymmetricMatrix, rows: IntArray, sides: FloatArray, proximity: float, precise: bool
) -> FloatArray:
    """Solve with a Cholesky factor of the block, in single precision unless told otherwise.

    Early rounds only look for signs, so that single precision serves; a block that it cannot factor
    is factored in double precision, at last a little further from singular.
    """
    while True:
        # The block is symmetric, and its transpose is what LAPACK factors in place.
        block = matrix.block(rows, exact=precise).T
        np.einsum("ii->i", block)[:] += block.dtype.type(proximity)
        double = block.dtype == np.float64
        factorise, solve = (
            (lapack.dpotrf, lapack.dpotrs) if double else (lapack.spotrf, lapack.spotrs)
        )
        factor, info = factorise(block, lower=1, overwrite_a=1, clean=0)
        if info == 0:
            solved, _ = solve(factor, np.asfortranarray(sides, dtype=block.dtype), lower=1)
            return np.asarray(solved, dtype=np.float64)
        if precise:
            proximity *= 100
        precise = True
