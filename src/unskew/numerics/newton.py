r"""Newton's method for the minimum of a smooth function, with a certificate.

A step solves :math:`H d = -g`. Where H has negative eigenvalues, which a likelihood far from its
maximum may have, their absolute values take their place: the step then leads down in any case.
Steps are halved until the function falls. Near the minimum they are taken whole, for there the last
digits of the function would reject steps that are right. For a log-likelihood, minimise its
negative: the Newton decrement :math:`\sqrt{g^\top H^{-1} g}` is then the gradient in units of
standard errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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
    """The Newton decrement √(gᵀH⁻¹g): the gradient in units of standard errors."""
    converged: bool


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
    params, height = start, value(start)
    best, decrement = np.inf, np.inf
    for step in range(1, MAX_STEPS + 1):
        gradient, curvature = derivatives(params)
        # 1) The curvature's axes; directions that are flat or bend down get their absolute size.
        sizes, axes = np.linalg.eigh(curvature)
        convex = bool(sizes[0] > _FLAT * sizes[-1])
        sizes = np.maximum(np.abs(sizes), 1e-12 * np.abs(sizes).max())
        along = axes.T @ gradient
        decrement = float(np.sqrt((along**2 / sizes).sum()))
        near = convex and decrement < _NEAR
        stalled = near and decrement > best / 2
        if convex and (decrement < 1e-10 or (stalled and decrement < CONVERGED)):
            # Newton's method squares a small error: what does not shrink any more is rounding.
            return NewtonSolution(params, height, Certificate(step, decrement, True))
        near = near and not stalled  # on a flat ridge whole steps may go too far
        best = decrement if near else np.inf
        # 2) The step, not longer than the caller allows, halved until the function falls.
        move = -(axes @ (along / sizes))
        move = move / max(1.0, limit(move))
        new = value(params + move)
        while not near and not new < height:
            move = move / 2
            if np.abs(move).max() < 1e-12 * max(1.0, np.abs(params).max()):
                return NewtonSolution(params, height, Certificate(step, decrement, False))
            new = value(params + move)
        params, height = params + move, new
        if outside(params):
            break
    return NewtonSolution(params, height, Certificate(step, decrement, False))
