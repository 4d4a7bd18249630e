r"""Quadratic programs over a box and one sum, the shape of kernel mean matching.

.. math:: \min_\gamma \tfrac12 \gamma^\top K \gamma - \kappa^\top \gamma
          \quad\text{with } 0 \le \gamma_i \le u_i,\ \ell \le \textstyle\sum_i \gamma_i \le h

This is the dual of a support-vector problem: one sum, a box, and a solution in which most entries
are zero. For matrices of low rank, projected gradient steps (:func:`solve_by_gradient_steps`) cost
one product with K each, which is cheap even with a million rows. For any matrix,
:func:`solve_by_exchange` is exact up to rounding. It begins with few free entries and lets the set
grow, so that one or two dozen linear systems, as small as the solution allows, are enough.

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
from typing import Any

import numpy as np

from unskew.numerics.free_system import FreeSystem
from unskew.numerics.typing import BoolArray, FloatArray

# Gradient steps

_CHECK_EVERY = 25
"""Steps between two certificates: a certificate sorts all entries, which costs as much as a few
steps. Not tuned."""

_NORM_STEPS, _NORM_MARGIN = 8, 1.2
"""Power steps for the largest eigenvalue, and what their estimate is multiplied by, because it is
from below and a step must not be too long. Not tuned."""

_SINGLE_SHARE = 0.5
"""The share of the tolerance at which to stop: steps compute in single precision, and the final
certificate is in double precision. Not tuned."""

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
class BoxSimplex:
    """The data of a program and what follows from them alone.

    Parameters
    ----------
    matrix : KernelMatrix or LowRankMatrix
        K, positive semi-definite: its ``size``, ``quick_product(v)`` in single and
        ``exact_product(v)`` in double precision; for the exact solver also ``block``.
    linear : ndarray of shape (n,)
        κ.
    upper : ndarray of shape (n,)
        The upper bounds; positive.
    total : tuple of float
        The least and the largest sum; feasible within the box.
    """

    matrix: Any
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


def solve_by_gradient_steps(
    program: BoxSimplex, *, tolerance: float, max_iterations: int = 1000
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


def approach(program: BoxSimplex, *, tolerance: float, max_steps: int) -> tuple[FloatArray, int]:
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


def _norm(matrix: Any, *, centred: bool) -> float:
    """Estimate the largest eigenvalue of K by power steps; centred: on vectors of sum zero."""
    vector = np.random.RandomState(0).normal(size=matrix.size).astype(np.float32)
    for _ in range(_NORM_STEPS):
        vector -= vector.mean() if centred else 0
        vector /= max(float(np.linalg.norm(vector)), 1e-30)
        vector = matrix.quick_product(vector)
    vector -= vector.mean() if centred else 0
    return max(float(np.linalg.norm(vector)), 1e-6)


def solve_by_exchange(
    program: BoxSimplex,
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
        found, settled, used = one.run(free, max_iterations - rounds)
        rounds += used
        before = proximity, double
        if settled or not double:
            # 3) Certify its result in double precision, also one that single precision could not
            #    settle: it may be good enough.
            point = program.settled(found)
            image = program.matrix.exact_product(point)
            certificate = program.certify(point, image - program.linear, rounds, tolerance)
            if certificate.converged:
                return point, certificate
            # 4) It is not: the next pass is more exact, first in its gradients, then in all.
            double = known is not None or not settled
            known = point, image
            proximity = max(proximity / _PROXIMITY_DOWN, least)
        else:
            # 5) Double precision did not settle: repeat closer to the last point.
            proximity = max(proximity * _PROXIMITY_UP, _PROXIMITY)
        if (proximity, double) != before:
            system = FreeSystem(program.matrix, proximity, exact=double)
        free = (point > 0) & (point < program.upper)
    if certificate is None:
        gradient = program.matrix.exact_product(point) - program.linear
        certificate = program.certify(point, gradient, rounds, tolerance)
    return point, replace(certificate, iterations=rounds)


def _first_free(program: BoxSimplex) -> BoolArray:
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


_KnownImage = tuple[FloatArray, FloatArray]
"""A point γ, and its image K γ in double precision."""


class _ExchangePass:
    """Rounds of exchange for the program with a proximal term around ``centre``."""

    def __init__(
        self,
        program: BoxSimplex,
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
        # The best that the rounds have reached, and how many more may pass without better.
        self._fewest_wrong, self._least_gradient = 2.0 * len(centre), np.inf
        self._patience = _PATIENCE

    def run(self, free: BoolArray, max_rounds: int) -> tuple[FloatArray, bool, int]:
        """Exchange until no entry is wrong, or progress ends, or the rounds do.

        Returns the last point, whether no entry of it is wrong, and the number of rounds.
        """
        program, upper = self._program, self._program.upper
        at_upper = (self._centre >= upper) & ~free
        point = self._at_bounds(self._centre, free, at_upper)
        gradient, multiplier = self._gradient(point), 0.0
        worst = float(np.abs(gradient[free] - gradient[free].mean()).max()) if free.any() else 0.0
        mean = program.total[1] / len(upper)
        outside = min(_OUTSIDE_BOX * mean, _OUTSIDE_BOX_SHARE * self._tolerance)
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
            # 2) Find the wrong entries: free ones that left the box, and those at a bound though
            #    the objective falls if they rise from zero, or fall from their upper bound.
            below, above = free & (point < -outside), free & (point > upper + outside)
            rise, fall = ~free & ~at_upper & (reduced < -slack), at_upper & (reduced > slack)
            n_wrong = int(np.count_nonzero(below | above | rise | fall))
            n_free = int(np.count_nonzero(free))
            # 3) Stop if there are none and the system is solved, or for lack of progress.
            rest = float(np.abs(reduced[free]).max(initial=0.0))
            if not n_wrong and rest <= slack:
                return point, True, rounds
            worst = float(np.abs(reduced[rise | fall]).max(initial=0.0))
            better = self._is_better(n_wrong, worst)
            if n_wrong <= _HARDLY_ANY * n_free:
                worst = 0.0
            if not self._patience:
                break
            # 4) Gradients are near rounding, or few are wrong and they do not become fewer, or the
            #    system was not solved as asked: gradients must be more exact.
            if self._known is None:
                stuck = worst <= _NEAR_NOISE * self._noise or n_wrong <= _FEW_WRONG * n_free
            else:
                stuck = not better and n_wrong <= _FEW_WRONG * n_free
            if stuck or rest > accuracy:
                self._known = point, program.matrix.exact_product(point)
                gradient = self._gradient(point)
            # 5) Exchange.
            many_left = np.count_nonzero(below) > _MANY_NEGATIVE * n_free
            freed = _most_promising(rise, reduced, n_free, _MOST_GROWTH * (1 if many_left else 2))
            free = (free & ~below & ~above) | freed | fall
            at_upper = (at_upper & ~fall) | above
        return point, False, rounds

    def _is_better(self, n_wrong: int, gradient: float) -> bool:
        """Return whether a round was better than all before it."""
        better = n_wrong < self._fewest_wrong or gradient < _CLEARLY_LESS * self._least_gradient
        self._fewest_wrong = min(self._fewest_wrong, n_wrong)
        self._least_gradient = min(self._least_gradient, gradient)
        self._patience = _PATIENCE if better else self._patience - 1
        return better

    def _slack(self, *, one_sided: bool) -> float:
        """Return the size below which a gradient counts as zero."""
        exact = self._known is not None or self._system.exact
        noise = 0.0 if exact else self._noise
        share = _TOLERANCE_SHARE if one_sided else _TOLERANCE_SHARE / 2
        return max(share * self._tolerance, noise)

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
        known, image = self._known
        return gradient + image + matrix.quick_product(point - known)


def _most_promising(rise: BoolArray, reduced: FloatArray, n_free: int, growth: float) -> BoolArray:
    """Return those of the entries that should rise from zero with the steepest gradients."""
    limit = int(min(growth * n_free, _SHARE_FREED * np.count_nonzero(rise)))
    rank, gradients = limit + _LEAST_FREED, reduced[rise]
    if rank >= len(gradients):
        return rise
    return rise & (reduced <= np.partition(gradients, rank)[rank])
