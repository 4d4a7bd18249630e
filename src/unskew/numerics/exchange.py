r"""An exact solver for programs over a box and one sum: exchanging active sets in blocks.

Most entries of a solution are zero, so the solver begins with few free entries and lets the set
grow. In each round the free entries solve a linear system; those that left the box go to their
bound, and of the bounded entries whose gradient has the wrong sign the worst become free, until
none is left to exchange. The systems stay as small as the solution allows, and one or two dozen of
them end in a solution that is exact up to rounding.

Rounds begin in single precision. When that is no longer enough to tell which entries are wrong,
gradients are taken from one that is known in double precision, by differences; and if the result
does not meet the tolerance, everything is done in double precision.

Rounds are proximal: they minimise the objective plus :math:`\tfrac\rho2 \lVert\gamma - c\rVert^2`
around the last point c, so that a singular K (repeated rows, a very wide kernel) does no harm, and
are repeated around their result until the certificate of the program itself is small enough.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unskew.numerics.box_simplex import BlockMatrix, BoxSimplex, Certificate
from unskew.numerics.free_system import FreeSystem
from unskew.numerics.typing import BoolArray, FloatArray

__all__ = ["solve_by_exchange"]

_PROXIMITY = 1e-5
_LARGEST_PROXIMITY = 1e6
_MOST_AT_START = 500
_MOST_GROWTH = 0.4
_SHARE_FREED = 0.5
_PATIENCE = 8
_FEW_WRONG = 0.02
_MANY_LEFT = 0.1


def solve_by_exchange(
    program: BoxSimplex[BlockMatrix],
    *,
    tolerance: float,
    start: FloatArray | None = None,
    max_iterations: int = 1000,
) -> tuple[FloatArray, Certificate]:
    """Solve the program; the solution is feasible whether or not it converged.

    Parameters
    ----------
    program : BoxSimplex
    tolerance : float
        The largest violation of the optimality conditions.
    start : ndarray, optional
        Where to begin; it is made feasible first.
    max_iterations : int
        The largest number of rounds.

    Returns
    -------
    ndarray, Certificate
    """
    certificate = None
    if start is None:
        point = program.feasible(program.upper * (0.5 * sum(program.total) / program.upper.sum()))
        free = _first_free(program)
    else:
        point = program.settled(start)
        free = (point > 0) & (point < program.upper)
        certificate = _certify(program, point, 0, tolerance)
        if certificate.converged:
            return point, certificate
    proximity, rounds, known, double = _PROXIMITY, 0, None, False
    # Beyond the largest proximity nothing but rounding keeps it from settling.
    while rounds < max_iterations and proximity <= _LARGEST_PROXIMITY:
        exchange = _Exchange(program, point, proximity, tolerance, known=known, double=double)
        found, settled, used = exchange.settle(free, max_iterations - rounds)
        rounds += used
        if settled or not double:
            point = program.settled(found)
            image = program.matrix.exact_product(point)
            certificate = program.certify(point, image - program.linear, rounds, tolerance)
            if certificate.converged:
                return point, certificate
            # The next pass knows this point's gradient; if that is not enough, all is in double.
            double = known is not None or not settled
            known = point, image
            proximity = max(proximity / 3, _PROXIMITY)
        else:  # closer to the last point it must settle
            proximity *= 10
        free = (point > 0) & (point < program.upper)
    certificate = certificate or _certify(program, point, rounds, tolerance)
    return point, replace(certificate, iterations=rounds)


def _certify(
    program: BoxSimplex[BlockMatrix], point: FloatArray, rounds: int, tolerance: float
) -> Certificate:
    gradient = program.matrix.exact_product(point) - program.linear
    return program.certify(point, gradient, rounds, tolerance)


def _first_free(program: BoxSimplex[BlockMatrix]) -> BoolArray:
    """Return the entries that the linear term likes best, enough to hold the sum twice over."""
    liked = np.argsort(-program.linear, kind="stable")
    enough = np.searchsorted(np.cumsum(program.upper[liked]), 2 * program.total[0]) + 1
    free = np.zeros(len(liked), dtype=np.bool_)
    free[liked[: max(enough, min(_MOST_AT_START, len(liked) // 4), 1)]] = True
    return free


class _Exchange:
    """Rounds of exchange for the program with a proximal term around ``centre``."""

    def __init__(
        self,
        program: BoxSimplex[BlockMatrix],
        centre: FloatArray,
        proximity: float,
        tolerance: float,
        *,
        known: tuple[FloatArray, FloatArray] | None,
        double: bool,
    ) -> None:
        self._program = program
        self._centre = centre
        self._proximity = proximity
        self._tolerance = tolerance
        self._system = FreeSystem(program.matrix, proximity, exact=double)
        self._known = known

    @property
    def _exact(self) -> bool:
        return self._known is not None or self._system.exact

    def _become_exact(self, point: FloatArray) -> None:
        """From here on take gradients from one that is known in double precision.

        What later points differ from this one is little, and so is the error of its image.
        """
        self._known = point, self._program.matrix.exact_product(point)

    def settle(self, free: BoolArray, most: int) -> tuple[FloatArray, bool, int]:
        """Exchange until the active set is right.

        Returns the point, whether its set is right, and the number of rounds.
        """
        program, upper = self._program, self._program.upper
        at_upper = (self._centre >= upper) & ~free
        largest = float(np.abs(program.linear).max())
        point: FloatArray = np.zeros(len(upper))
        reduced, worst = -program.linear, largest
        small = min(1e-6 * program.total[1] / len(upper), 0.01 * self._tolerance)
        fewest, least, patience = 2 * len(upper), np.inf, _PATIENCE
        for rounds in range(1, most + 1):
            if not free.any() and not program.allows(upper[at_upper].sum()):
                one = int(np.argmin(np.where(at_upper, np.inf, reduced)))
                free[one], at_upper[one] = True, False
            # What single precision cannot tell from zero is left to exact rounds.
            slack = max(0.8 * self._tolerance, 0.0 if self._exact else 1e-7 * largest)
            point, reduced = self._solve(free, at_upper, point, 0.1 * max(worst, slack))
            below, above = free & (point < -small), free & (point > upper + small)
            rise = ~free & ~at_upper & (reduced < -slack)
            fall = at_upper & (reduced > slack)
            n_wrong = int(np.count_nonzero(below | above | rise | fall))
            n_free = int(np.count_nonzero(free))
            if not n_wrong:
                return point, True, rounds
            worst_now = float(np.abs(reduced[rise | fall]).max(initial=0.0))
            progress = n_wrong < fewest or worst_now < 0.7 * least
            fewest, least = min(fewest, n_wrong), min(least, worst_now)
            patience = _PATIENCE if progress else patience - 1
            if not patience:
                break
            if not progress and n_wrong <= _FEW_WRONG * n_free:
                self._become_exact(point)
            worst = worst_now
            # The more entries turned negative, the fewer are worth a trial.
            growth = (
                _MOST_GROWTH if np.count_nonzero(below) > _MANY_LEFT * n_free else 2 * _MOST_GROWTH
            )
            n_freed = min(growth * n_free, _SHARE_FREED * np.count_nonzero(rise))
            rise &= reduced <= _rank_value(reduced[rise], int(n_freed) + 10)
            free = (free & ~below & ~above) | rise | fall
            at_upper = (at_upper & ~fall) | above
        return point, False, rounds

    def _solve(
        self, free: BoolArray, at_upper: BoolArray, last: FloatArray, accuracy: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the point whose free entries solve their system, and its reduced gradient."""
        program, system = self._program, self._system
        low, high = program.total
        point = np.where(at_upper, program.upper, 0.0)
        gradient = self._gradient(point)
        rows = np.flatnonzero(free)
        if not len(rows):
            return point, gradient + program.multiplier(gradient, at_upper)
        system.move_to(rows)
        right, fixed, guess = -gradient[rows], float(point.sum()), last[rows]
        asked: float | None = low - fixed
        if low < high:
            alone, _ = system.solve(right, None, guess=guess, accuracy=accuracy)
            reached = float(alone.sum()) + fixed
            asked = None if low <= reached <= high else float(np.clip(reached, low, high)) - fixed
        if asked is not None:
            guess = guess + (asked - guess.sum()) / len(rows)
        point[rows], multiplier = system.solve(right, asked, guess=guess, accuracy=accuracy)
        reduced = self._gradient(point) + multiplier
        rest, before = float(np.abs(reduced[rows]).max()), np.inf
        # What rounding has left of the right side is solved for again, as long as it helps.
        while accuracy < rest < 0.5 * before:
            left = None if asked is None else asked - float(point[rows].sum())
            correction, more = system.solve(
                -reduced[rows], left, guess=np.zeros(len(rows)), accuracy=accuracy
            )
            point = point.copy()
            point[rows] += correction
            multiplier += more
            reduced = self._gradient(point) + multiplier
            rest, before = float(np.abs(reduced[rows]).max()), rest
        return point, reduced

    def _gradient(self, point: FloatArray) -> FloatArray:
        """Return the gradient of the program with its proximal term."""
        matrix = self._program.matrix
        gradient = self._proximity * (point - self._centre) - self._program.linear
        if self._system.exact:
            return gradient + matrix.exact_product(point)
        if self._known is None:
            return gradient + matrix.quick_product(point)
        known, image = self._known
        return gradient + image + matrix.quick_product(point - known)


def _rank_value(values: FloatArray, rank: int) -> float:
    """Return the value of this rank from below, or infinity if there are not as many."""
    return float(np.partition(values, rank)[rank]) if rank < len(values) else np.inf
