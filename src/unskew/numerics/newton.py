r"""Newton's method: the one loop of steps for smooth functions, and how it ended.

At a place :math:`x` with the gradient g and the curvature H, a step solves

.. math:: H d = -g                                                                    \tag{1}

and is halved until the function falls by a share of what the slope promises (Armijo 1966),

.. math:: f(x + s d) < f(x) + c\, s\, g^\top d + \text{rounding}.                     \tag{2}

Calibration, the logistic model and pools of ratios know how to solve (1) for themselves, and what
of a place serves the next one: :func:`descend` asks them for steps. For functions of few parameters
with two derivatives there is :func:`minimise`. Where H has negative eigenvalues, which a likelihood
far from its maximum may have, their absolute values take their place: the step then leads down in
any case. For a log-likelihood, minimise its negative: the Newton decrement :math:`\sqrt{g^\top
H^{-1} g}` is then the gradient in units of standard errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

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


PlaceType = TypeVar("PlaceType")


class Step(NamedTuple, Generic[PlaceType]):
    """A way down from a place."""

    along: Callable[[float], tuple[PlaceType, float]]
    """The place after this share of the whole step, and the function there."""
    slope: float
    """Of the function along the step: negative."""
    whole: bool = False
    """Whether to take all of it, whatever the function's last digits say."""


def descend(
    place: PlaceType,
    value: float,
    step: Callable[[PlaceType], Step[PlaceType] | None],
    *,
    max_steps: int,
    armijo: float = 1e-4,
    rounding: float = 1e-14,
    shortest: float = 1e-12,
) -> tuple[PlaceType, float, int]:
    """Return where Newton's steps end, the function there, and the number of steps.

    Parameters
    ----------
    place
        Where to start: parameters, and what else a step needs.
    value : float
        The function there.
    step : function of a place
        Returns Newton's step from there; None to stay. It is asked at the last place, too.
    max_steps : int
    armijo : float
        The share of the promised fall that a step must have: c in equation (2).
    rounding : float
        By how much the function may rise, as a share of its size or of one: near the minimum, its
        fall is lost in its last digits.
    shortest : float
        The share of a step below which halving it is given up.
    """
    for steps in range(max_steps + 1):
        found = step(place)
        if found is None or steps == max_steps:
            break
        # Equation (2): halve the step until the function falls by enough.
        allowed = value + rounding * max(abs(value), 1.0)
        share, (new, reached) = 1.0, found.along(1.0)
        while not found.whole and not reached < allowed + armijo * share * found.slope:
            share /= 2
            if share < shortest:
                return place, value, steps
            new, reached = found.along(share)
        place, value = new, reached
    return place, value, steps


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
    best = decrement = np.inf
    converged = False

    def step(params: FloatArray) -> Step[FloatArray] | None:
        nonlocal best, decrement, converged
        if np.isfinite(decrement) and outside(params):
            return None
        # 1) The curvature's axes; directions that are flat or bend down get their absolute size.
        gradient, curvature = derivatives(params)
        sizes, axes = np.linalg.eigh(curvature)
        convex = bool(sizes[0] > _FLAT * sizes[-1])
        sizes = np.maximum(np.abs(sizes), 1e-12 * np.abs(sizes).max())
        along = axes.T @ gradient
        decrement = float(np.sqrt((along**2 / sizes).sum()))
        # 2) Newton's method squares a small error: what does not shrink any more is rounding.
        near = convex and decrement < _NEAR
        stalled = near and decrement > best / 2
        converged = convex and (decrement < 1e-10 or (stalled and decrement < CONVERGED))
        if converged:
            return None
        # 3) Near the minimum the last digits of the function would reject steps that are right; but
        #    on a flat ridge whole steps may go too far.
        whole = near and not stalled
        best = decrement if whole else np.inf
        move = -(axes @ (along / sizes))
        move = move / max(1.0, limit(move))

        def after(share: float) -> tuple[FloatArray, float]:
            new = params + share * move
            return new, value(new)

        return Step(after, -(decrement**2), whole)

    # Any fall is enough: what a likelihood that is not concave promises is not to be relied on.
    end, height, steps = descend(
        start, value(start), step, max_steps=MAX_STEPS, armijo=0.0, rounding=0.0
    )
    return NewtonSolution(end, height, Certificate(steps, decrement, converged))
