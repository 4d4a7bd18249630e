r"""An exact solver for programs over a box and one sum: exchanging active sets in blocks.

Most entries of a solution are zero, so the solver begins with few free entries and lets the set
grow. The linear systems stay as small as the solution allows, and one or two dozen of them end in a
solution that is exact up to rounding.

**A round** (:class:`_ExchangePass`) has five steps:

1. Solve the linear system of the free entries, all others at their bounds.
2. Find the wrong entries: free ones that left the box, and entries at a bound whose gradient says
   that they should leave it.
3. Stop if there are none, or if many rounds have brought no progress.
4. If gradients are near what rounding leaves of them, if only a few entries are wrong and they do
   not become fewer, or if the system could not be solved as exactly as asked, compute gradients
   more exactly from here on.
5. Exchange: entries that left the box go to their bound, and of the entries that should leave their
   bound the most promising become free.

**A pass** is a sequence of rounds for the objective plus
:math:`\tfrac\rho2 \lVert\gamma - c\rVert^2` around the last point c. This proximal term makes every
system regular, even if K is singular (repeated rows, a very wide kernel). Passes are repeated
around their own result, which leads to the solution of the program itself (Rockafellar, "Monotone
operators and the proximal point algorithm", 1976).

**Precision** rises only when it must. The first pass works in single precision. The next ones take
the gradient at the last point in double precision, and add what the step from there changes in
single precision: that step is short, and so is its error. If this is not enough either, everything
is in double precision.

**Stopping.** The solver ends when the certificate of the program, always computed in double
precision, is within the tolerance; or, without convergence, after ``max_iterations`` rounds or when
ρ has passed ``_LARGEST_PROXIMITY``. A pass ends when no entry is wrong, or without a result after
some rounds without progress.

The constants below affect the time, not the solution, which its certificate checks. "Measured"
refers to sixteen Gaussian programs of 800 and 1,600 rows (2 and 8 columns, bandwidths from 0.5 to 8
standard deviations, bounds 2 and 1,000) at a tolerance of 1e-3; work is the number of operations in
matrix factors. All sixteen converged with every value that was tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from unskew.numerics.box_simplex import BlockMatrix, BoxCertificate, BoxSimplex, approach
from unskew.numerics.free_system import FreeSystem
from unskew.numerics.typing import BoolArray, FloatArray

# Passes

_PROXIMITY = 1e-5
"""The first ρ, and the smallest: small beside the diagonal of K, which is 1 for a Gaussian kernel,
and large beside the rounding of single precision, 6e-8. Measured: a hundredth takes 1.6 times the
rounds, a hundredfold 2.5 times the work; a tenth or tenfold change the time by less than 15 %."""

_LARGEST_PROXIMITY = 1e6
"""ρ beyond which the solver gives up: only rounding can then keep a pass from settling. Not tuned;
reached only where the tolerance asks for more than double precision has."""

_PROXIMITY_UP, _PROXIMITY_DOWN = 10.0, 3.0
"""By how much ρ grows after a pass that did not settle, and shrinks after one that did."""

# Which entries are free at first

_MOST_AT_START = 1000
"""How many entries are free at first: at most this many, and at most a quarter, but always enough
to hold the sum ``_ROOM_AT_START`` times over. A system of 1,000 takes a few milliseconds. Measured
at 5,000 and 10,000 rows with a ridge: half takes 2 or 3 rounds more, 1,500 1.1 times the work."""

_SPREAD_AT_START = 0.75
"""The share of the entries, those with the largest linear terms, over which they are spread: next
to each other, many turn negative. Measured on shifts by 1, 1,000 to 5,000 rows of 2, 8 and 32
columns, against the largest terms alone: 0.6 to 1 times the time; on shifts by 2.5 and 3 1 to 1.2
times."""

_TIGHT, _STEPS_AT_START = 10, 100
"""Where the upper bounds leave room for less than this many times the sum, many entries will be at
them, and exchange would move them there and back for dozens of rounds. Gradient steps find most of
them first. Measured on bounds of 1.2 to 5, 1,000 rows, 8 columns: 2 to 8 rounds, not 12 to 32."""

_ROOM_AT_START = 2
"""Some of the first free entries will turn negative; the others must hold the sum. Not tuned."""

# How the set of free entries grows

_MOST_GROWTH = 0.4
"""By which share of its size the free set may grow in a round where many entries turned negative;
twice that where few did. It limits the cost of a bad guess, because a system of twice the size
takes eight times as long. Measured: a quarter takes 1.26 times the work, twice as much 0.8 times,
but on single programs 1.3 times the rounds."""

_MANY_NEGATIVE = 0.1
"""The share of free entries that is many. Measured: a quarter to four times this: work ± 5 %."""

_SHARE_FREED = 0.5
"""The share of the entries that should leave zero of which a round makes free the most promising:
once these are free, the gradient of the others often turns. Measured: a quarter takes 1.17 times
the work, all at once 0.98 times, but on single programs 1.25 times the rounds."""

_LEAST_FREED = 10
"""Freed in any case, so that small sets grow too. Not tuned."""

# When to give up a pass

_PATIENCE = 8
"""Rounds without progress after which a pass is given up: the number of wrong entries may rise for
a few rounds before it falls. Measured: half takes as much work, twice as many 0.87 times."""

_CLEARLY_LESS = 0.7
"""Progress is fewer wrong entries than ever, or a worst gradient below this share of the least."""

# When to suspect rounding

_FEW_WRONG = 0.02
"""With fewer wrong entries than this share of the free ones, and no progress, suspect rounding.
Measured: a quarter to four times this changes rounds by less than 1 %."""

_NEAR_NOISE = 20
"""Gradients this many times the rounding of single precision are near it: soon it would hide more
entries that should rise than it shows. Measured at 50,000 rows of 8 columns, all at first those
with the largest terms: 160 s, without it 187 s. At 20,000 rows, 50 takes as long."""

_HARDLY_ANY = 0.002
"""With fewer wrong entries than this share of the free ones, the next set is likely to be the last,
and its system is solved to the tolerance at once. Chosen on one draw of 2,000 to 10,000
rows: it changes the time, not the solution."""

# Tolerances of a round, as parts of the tolerance of the program

_TOLERANCE_SHARE = 0.8
"""Of the gradients of a round: less than 1, because settling the point on its bounds afterwards
moves the gradient once more. Where entries are at their upper bound, they and those at zero share
it: the violation is the difference of the two sides. Not tuned."""

_SINGLE_NOISE = 1e-7
"""What single precision cannot distinguish from zero, relative to the largest linear term: its
rounding, 6e-8, and a little more. It is left to rounds with more exact gradients."""

_SYSTEM_ACCURACY = 0.1
"""Systems are solved to this share of the worst gradient of the last round, or of the tolerance:
more would be lost on a set of free entries that is not the right one yet. Not tuned."""

_OUTSIDE_BOX, _OUTSIDE_BOX_SHARE = 1e-6, 0.01
"""An entry has left the box if it is outside by this share of the mean entry, or by this share of
the tolerance, whichever is less; closer than that, it is at its bound up to rounding."""

_REFINEMENT = 0.5
"""A refinement step of a system is repeated as long as it leaves less than this share of the
residual: the usual rule of iterative refinement (Higham, "Accuracy and stability of numerical
algorithms", 2002, chapter 12)."""


def solve_by_exchange(
    program: BoxSimplex[BlockMatrix],
    *,
    tolerance: float,
    regular: bool = False,
    max_iterations: int = 1000,
) -> tuple[FloatArray, BoxCertificate]:
    """Solve the program; the solution is feasible whether or not it converged.

    Parameters
    ----------
    program : BoxSimplex
    tolerance : float
        The largest violation of the optimality conditions.
    regular : bool
        Whether every eigenvalue of K is well above zero, as with a ridge: then no proximal term is
        needed, and the first pass leads to the solution itself.
    max_iterations : int
        The largest number of rounds.

    Returns
    -------
    ndarray, BoxCertificate
    """
    # 1) Begin at the end of some gradient steps, or in the middle of the box.
    certificate = None
    if program.upper.sum() < _TIGHT * program.total[0]:
        point, _ = approach(program, tolerance=tolerance, max_steps=_STEPS_AT_START)
        free = (point > 0) & (point < program.upper)
    else:
        free = _first_free(program)
        # The point counts only as the centre of a proximal term: without one, it uses few rows.
        room = np.where(free, program.upper, 0.0) if regular else program.upper
        point = program.feasible(room * (0.5 * sum(program.total) / room.sum()))
    least = 0.0 if regular else _PROXIMITY
    proximity, rounds = least, 0
    known: _KnownImage | None = None
    double = False
    system = FreeSystem(program.matrix, proximity)
    while rounds < max_iterations and proximity <= _LARGEST_PROXIMITY:
        # 2) A pass of exchange around the last point.
        one = _ExchangePass(program, system, point, tolerance, known=known)
        result = one.run(free, max_iterations - rounds)
        rounds += result.rounds
        before = proximity, double
        if result.settled or not double:
            # 3) Certify its result in double precision, also one that single precision could not
            #    settle: it may be good enough.
            point = program.settled(result.point)
            image = program.matrix.exact_product(point)
            certificate = program.certify(point, image - program.linear, rounds, tolerance)
            if certificate.converged:
                return point, certificate
            # 4) It is not: the next pass is more exact, first in its gradients, then in all.
            double = known is not None or not result.settled
            known = _KnownImage(point, image)
            proximity = max(proximity / _PROXIMITY_DOWN, least)
        else:
            # 5) Double precision did not settle: repeat closer to the last point.
            proximity = max(proximity * _PROXIMITY_UP, _PROXIMITY)
        if (proximity, double) != before:
            system = FreeSystem(program.matrix, proximity, exact=double)
        free = (point > 0) & (point < program.upper)
    certificate = certificate or _certify(program, point, rounds, tolerance)
    return point, replace(certificate, iterations=rounds)


def _certify(
    program: BoxSimplex[BlockMatrix], point: FloatArray, rounds: int, tolerance: float
) -> BoxCertificate:
    gradient = program.matrix.exact_product(point) - program.linear
    return program.certify(point, gradient, rounds, tolerance)


def _first_free(program: BoxSimplex[BlockMatrix]) -> BoolArray:
    """Return entries spread over those with large linear terms, with room for the sum."""
    order, room = np.argsort(-program.linear, kind="stable"), _ROOM_AT_START * program.total[0]
    enough = int(np.searchsorted(np.cumsum(program.upper[order]), room)) + 1
    size = min(max(enough, min(_MOST_AT_START, len(order) // 4)), len(order))
    last = max(size, int(_SPREAD_AT_START * len(order))) - 1
    spread = order[np.linspace(0, last, size).astype(np.intp)]
    chosen = spread if program.upper[spread].sum() >= room else order[:size]
    free = np.zeros(len(order), dtype=np.bool_)
    free[chosen] = True
    return free


class _KnownImage(NamedTuple):
    """A point γ with its image K γ in double precision."""

    point: FloatArray
    image: FloatArray


class _PassResult(NamedTuple):
    """The last point of a pass, whether no entry of it is wrong, and the rounds that it took."""

    point: FloatArray
    settled: bool
    rounds: int


class _ExchangePass:
    """Rounds of exchange for the program with a proximal term around ``centre``."""

    def __init__(
        self,
        program: BoxSimplex[BlockMatrix],
        system: FreeSystem,
        centre: FloatArray,
        tolerance: float,
        *,
        known: _KnownImage | None,
    ) -> None:
        self._program = program
        self._system = system
        self._centre = centre
        self._tolerance = tolerance
        self._known = known
        self._noise = _SINGLE_NOISE * float(np.abs(program.linear).max())

    def run(self, free: BoolArray, max_rounds: int) -> _PassResult:
        """Exchange until no entry is wrong, or progress ends, or the rounds do."""
        program, upper = self._program, self._program.upper
        at_upper = (self._centre >= upper) & ~free
        point = self._at_bounds(self._centre, free, at_upper)
        gradient, multiplier = self._gradient(point), 0.0
        worst = float(np.abs(gradient[free] - gradient[free].mean()).max()) if free.any() else 0.0
        outside, progress = self._outside(), PassProgress(fewest_wrong=2 * len(upper))
        for rounds in range(1, max_rounds + 1):
            # 1) Solve for the free entries; if there is none and the sum is off, free the best one.
            if not free.any() and not program.allows(upper[at_upper].sum()):
                best = int(np.argmin(np.where(at_upper, np.inf, gradient)))
                free[best], at_upper[best] = True, False
            slack = self._slack(one_sided=not at_upper.any())
            accuracy = _SYSTEM_ACCURACY * max(worst, slack)
            # It begins at the last point, moved to the bounds of the entries that are not free.
            start = self._at_bounds(point, free, at_upper)
            gradient = gradient + self._change(start - point)
            point, gradient, multiplier = self._solve(free, at_upper, start, gradient, accuracy)
            reduced = gradient + multiplier
            # 2) Find the wrong entries.
            wrong = Wrong(
                below=free & (point < -outside),
                above=free & (point > upper + outside),
                rise=~free & ~at_upper & (reduced < -slack),
                fall=at_upper & (reduced > slack),
            )
            n_wrong, n_free = wrong.size(), int(np.count_nonzero(free))
            # 3) Stop if there are none and the system is solved, or for lack of progress.
            rest = float(np.abs(reduced[free]).max(initial=0.0))
            if not n_wrong and rest <= slack:
                return _PassResult(point, True, rounds)
            worst = float(np.abs(reduced[wrong.rise | wrong.fall]).max(initial=0.0))
            better = progress.update(n_wrong, worst)
            if n_wrong <= _HARDLY_ANY * n_free:
                worst = 0.0
            if not progress.patience:
                break
            # 4) Gradients are near rounding, or few are wrong and they do not become fewer, or the
            #    system was not solved as asked: gradients must be more exact.
            if self._known is None:
                stuck = worst <= _NEAR_NOISE * self._noise or n_wrong <= _FEW_WRONG * n_free
            else:
                stuck = not better and n_wrong <= _FEW_WRONG * n_free
            if stuck or rest > accuracy:
                self._known = _KnownImage(point, program.matrix.exact_product(point))
                gradient = self._gradient(point)
            # 5) Exchange.
            freed = most_promising(wrong, reduced, n_free)
            free = (free & ~wrong.below & ~wrong.above) | freed | wrong.fall
            at_upper = (at_upper & ~wrong.fall) | wrong.above
        return _PassResult(point, False, rounds)

    def _slack(self, *, one_sided: bool) -> float:
        """Return the size below which a gradient counts as zero."""
        exact = self._known is not None or self._system.exact
        noise = 0.0 if exact else self._noise
        share = _TOLERANCE_SHARE if one_sided else _TOLERANCE_SHARE / 2
        return max(share * self._tolerance, noise)

    def _outside(self) -> float:
        """Return how far outside the box an entry must be to have left it."""
        mean = self._program.total[1] / len(self._program.upper)
        return min(_OUTSIDE_BOX * mean, _OUTSIDE_BOX_SHARE * self._tolerance)

    def _at_bounds(self, point: FloatArray, free: BoolArray, at_upper: BoolArray) -> FloatArray:
        """Return the point with all but its free entries at their bounds."""
        return np.where(free, point, np.where(at_upper, self._program.upper, 0.0))

    def _solve(
        self,
        free: BoolArray,
        at_upper: BoolArray,
        start: FloatArray,
        gradient: FloatArray,
        accuracy: float,
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return the point whose free entries solve their system, its gradient, and a multiplier.

        The gradient plus the multiplier of the sum is zero at free entries. Each system is solved
        for the step from the last point, which errs less than the point itself.
        """
        system, (low, high) = self._system, self._program.total
        rows = np.flatnonzero(free)
        if not len(rows):
            return start, gradient, self._program.multiplier(gradient, at_upper)
        system.move_to(rows)
        # 1) A sum with room for play is asked for only where the solution without it leaves it.
        begun = float(start.sum())
        asked: float | None = low
        if low < high:
            alone, _ = system.solve(-gradient[rows], None, accuracy=accuracy)
            reached = begun + float(alone.sum())
            asked = None if low <= reached <= high else float(np.clip(reached, low, high))
        # 2) Solve, then solve again for what rounding has left, as long as that helps.
        multiplier = 0.0 if asked is None else -float(gradient[rows].mean())
        point, reduced = start, gradient + multiplier
        rest, before = np.inf, np.inf
        while True:
            left = None if asked is None else asked - float(point.sum())
            step, more = system.solve(-reduced[rows], left, accuracy=accuracy)
            point = point.copy()
            point[rows] += step
            multiplier += more
            gradient = self._gradient(point)
            reduced = gradient + multiplier
            rest, before = float(np.abs(reduced[rows]).max()), rest
            if not accuracy < rest < _REFINEMENT * before:
                return point, gradient, multiplier

    def _change(self, step: FloatArray) -> FloatArray:
        """Return by how much a step changes the gradient."""
        if not step.any():
            return np.zeros_like(step)
        matrix, system = self._program.matrix, self._system
        product = matrix.exact_product if system.exact else matrix.quick_product
        return system.proximity * step + product(step)

    def _gradient(self, point: FloatArray) -> FloatArray:
        """Return the gradient of the program with its proximal term."""
        matrix = self._program.matrix
        gradient = self._system.proximity * (point - self._centre) - self._program.linear
        if self._system.exact:
            return gradient + matrix.exact_product(point)
        if self._known is None:
            return gradient + matrix.quick_product(point)
        return gradient + self._known.image + matrix.quick_product(point - self._known.point)


class Wrong(NamedTuple):
    """The entries that a round found in the wrong set."""

    below: BoolArray  # free, and below zero
    above: BoolArray  # free, and above their upper bound
    rise: BoolArray  # at zero, though the objective falls if they rise
    fall: BoolArray  # at their upper bound, though the objective falls if they fall

    def size(self) -> int:
        return int(np.count_nonzero(self.below | self.above | self.rise | self.fall))


@dataclass
class PassProgress:
    """The best that the rounds of a pass have reached, and how long ago."""

    fewest_wrong: int
    least_gradient: float = np.inf
    patience: int = _PATIENCE

    def update(self, n_wrong: int, gradient: float) -> bool:
        """Return whether a round was better than all before it."""
        better = n_wrong < self.fewest_wrong or gradient < _CLEARLY_LESS * self.least_gradient
        self.fewest_wrong = min(self.fewest_wrong, n_wrong)
        self.least_gradient = min(self.least_gradient, gradient)
        self.patience = _PATIENCE if better else self.patience - 1
        return better


def most_promising(wrong: Wrong, reduced: FloatArray, n_free: int) -> BoolArray:
    """Return those of the entries that should rise from zero with the steepest gradients."""
    many = np.count_nonzero(wrong.below) > _MANY_NEGATIVE * n_free
    growth = _MOST_GROWTH if many else 2 * _MOST_GROWTH
    limit = int(min(growth * n_free, _SHARE_FREED * np.count_nonzero(wrong.rise)))
    rank, gradients = limit + _LEAST_FREED, reduced[wrong.rise]
    if rank >= len(gradients):
        return wrong.rise
    return wrong.rise & (reduced <= np.partition(gradients, rank)[rank])
