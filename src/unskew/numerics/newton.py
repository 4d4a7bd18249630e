r"""Newton's method: the one loop of steps for smooth functions, and how it ended.

At a place :math:`x` with the gradient g and the curvature H, a step solves

.. math:: H d = -g                                                                    \tag{1}

and is halved until the function falls by a share of what the slope promises (Armijo 1966),

.. math:: f(x + s d) < f(x) + c\, s\, g^\top d + \text{rounding}.                     \tag{2}

Calibration, the logistic model and pools of ratios know how to solve (1) for themselves, and what
of a place serves the next one: each is a :class:`Place`, and :func:`descend` goes from one to the
next. For functions of few parameters with two derivatives there is :func:`minimise`. Where H has
negative eigenvalues, which a likelihood far from its maximum may have, their absolute values take
their place: the step then leads down in any case. For a log-likelihood, minimise its negative: the
Newton decrement :math:`\sqrt{g^\top H^{-1} g}` is then the gradient in units of standard errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from unskew.numerics.typing import FloatArray

MAX_STEPS = 200
CONVERGED = 1e-6
"""The Newton decrement below which a minimum is reached."""
_FLAT = 1e-9
"""The share of the largest curvature below which a direction is flat: no minimum is there."""
_NEAR = 1e-3
"""The Newton decrement below which whole steps are taken."""


class Certificate(NamedTuple):
    """How a minimum was found: what a check of it needs."""

    steps: int
    gradient: float
    """The Newton decrement √(gᵀH⁻¹g), the gradient in units of standard errors; for models of
    selection by many features the largest entry of the gradient."""
    converged: bool


PlaceType = TypeVar("PlaceType", bound="Place")


class Step(NamedTuple, Generic[PlaceType]):
    """A way down from a place."""

    along: Callable[[float], PlaceType]
    """The place after this share of the whole step."""
    slope: float
    """Of the function along the step: negative."""
    whole: bool = False
    """Whether to take all of it, whatever the function's last digits say."""


class Place(Protocol):
    """Parameters, and what the function to minimise is there."""

    @property
    def value(self) -> float:
        """The function."""

    @property
    def done(self) -> bool:
        """Whether no further step is wanted."""

    def step(self) -> Step[Self] | None:
        """Return Newton's step; None where there is none."""


def descend(
    place: PlaceType,
    *,
    max_steps: int,
    armijo: float = 1e-4,
    rounding: float = 1e-14,
    shortest: float = 1e-12,
) -> tuple[PlaceType, int]:
    """Return the place where Newton's steps end, and their number.

    Parameters
    ----------
    place : Place
        Where to start.
    max_steps : int
    armijo : float
        The share of the promised fall that a step must have: c in equation (2).
    rounding : float
        By how much the function may rise, as a share of its size or of one: near the minimum, its
        fall is lost in its last digits.
    shortest : float
        The share of a step below which halving it is given up.
    """
    for steps in range(max_steps):
        step = None if place.done else place.step()
        if step is None:
            return place, steps
        allowed = place.value + rounding * max(abs(place.value), 1.0)
        share, new = 1.0, step.along(1.0)
        while not step.whole and not new.value < allowed + armijo * share * step.slope:
            share /= 2
            if share < shortest:
                return place, steps
            new = step.along(share)
        place = new
    return place, max_steps


class NewtonSolution(NamedTuple):
    """Where Newton's method ended."""

    params: FloatArray
    value: float
    certificate: Certificate


def minimise(
    value: Callable[[FloatArray], float],
    derivatives: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    start: FloatArray,
    *,
    limit: Callable[[FloatArray], float] = lambda move: 1.0,  # noqa: ARG005
    outside: Callable[[FloatArray], bool] = lambda params: False,  # noqa: ARG005
) -> NewtonSolution:
    """Minimise a function; where it is not convex, go down along its mirrored curvature.

    Parameters
    ----------
    value : function of params
    derivatives : function of params
        Returns the gradient and the second derivative.
    start : ndarray
    limit : function of a step
        The number to divide it by if that is above one.
    outside : function of params
        Whether they are where there is no minimum any more.

    Examples
    --------
    >>> value = lambda x: float(np.cosh(x[0] - 3))
    >>> derivatives = lambda x: (np.sinh(x - 3), np.cosh(x - 3)[:, None])
    >>> end = minimise(value, derivatives, np.zeros(1))
    >>> end.params, end.certificate.converged
    (array([3.]), True)
    """
    function = _Function(value, derivatives, limit, outside)
    first = _Point(function, start, value(start), np.inf, np.inf)
    end, steps = descend(first, max_steps=MAX_STEPS, armijo=0.0, rounding=0.0)
    # Outside, the curvature may be no number: the last decrement is the one before.
    gone = bool(steps) and outside(end.params)
    certificate = Certificate(steps, end.before if gone else end.decrement, not gone and end.done)
    return NewtonSolution(end.params, end.value, certificate)


class _Function(NamedTuple):
    value: Callable[[FloatArray], float]
    derivatives: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    limit: Callable[[FloatArray], float]
    outside: Callable[[FloatArray], bool]


@dataclass(frozen=True)
class _Point:
    """A place of a function with two derivatives."""

    function: _Function
    params: FloatArray
    value: float
    before: float
    """The decrement at the place before."""
    best: float
    """The same, if the step from there was whole; infinite otherwise."""

    @cached_property
    def _axes(self) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """The curvature along its axes, these, the gradient along them, and whether it is convex.

        Directions that are flat or bend down get their absolute size.
        """
        gradient, curvature = self.function.derivatives(self.params)
        sizes, axes = np.linalg.eigh(curvature)
        convex = bool(sizes[0] > _FLAT * sizes[-1])
        sizes = np.maximum(np.abs(sizes), 1e-12 * np.abs(sizes).max())
        return sizes, axes, axes.T @ gradient, convex

    @cached_property
    def decrement(self) -> float:
        sizes, _, along, _ = self._axes
        return float(np.sqrt((along**2 / sizes).sum()))

    @property
    def _near(self) -> bool:
        return self._axes[-1] and self.decrement < _NEAR

    @property
    def _stalled(self) -> bool:
        """Newton's method squares a small error: what does not shrink any more is rounding."""
        return self._near and self.decrement > self.best / 2

    @property
    def done(self) -> bool:
        if np.isfinite(self.before) and self.function.outside(self.params):
            return True
        reached = self.decrement < 1e-10 or (self._stalled and self.decrement < CONVERGED)
        return self._axes[-1] and reached

    def step(self) -> Step[_Point]:
        sizes, axes, along, _ = self._axes
        move = -(axes @ (along / sizes))
        move = move / max(1.0, self.function.limit(move))
        # Near the minimum the last digits of the function would reject steps that are right; but on
        # a flat ridge whole steps may go too far.
        whole = self._near and not self._stalled
        best = self.decrement if whole else np.inf

        def after(share: float) -> _Point:
            params = self.params + share * move
            value = self.function.value(params)
            return _Point(self.function, params, value, self.decrement, best)

        return Step(after, -(self.decrement**2), whole)
