r"""Convex losses as the certificate needs them: slopes, and the least curvature on the way.

A loss is a convex function f of :math:`z = y\,h(x)` (margin losses, labels ±1) or of
:math:`z = h(x) - y` (regression). Where f has a kink, any number between its two slopes is a
subgradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from unskew.numerics.typing import FloatArray


@dataclass(frozen=True)
class Loss:
    r"""A convex loss.

    Attributes
    ----------
    margin : bool
        Whether it depends on y h(x) instead of h(x) − y.
    value, slope : callable
        f(z) and f'(z); at a kink, either slope.
    curvature : callable
        Takes z and r, and returns the least average of the second derivative between z and any
        point at a distance of at most r: the least :math:`(f'(z + \delta) - f'(z)) / \delta`.
    most : callable
        The same for the largest average, or a bound on it.
    kinks : tuple of (float, float, float)
        Each kink's place, and the slopes on its left and right.
    lipschitz : float or None
        The largest absolute slope; None where there is none.
    bend : float or None
        The largest second derivative; None for a loss with kinks.
    """

    margin: bool
    value: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    curvature: Callable[[FloatArray, FloatArray], FloatArray]
    most: Callable[[FloatArray, FloatArray], FloatArray]
    kinks: tuple[tuple[float, float, float], ...] = ()
    lipschitz: float | None = None
    bend: float | None = None

    def argument(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return z."""
        return labels * scores if self.margin else scores - labels

    def bending(self, z: FloatArray, r: FloatArray) -> FloatArray:
        """Return by how much the average second derivative within r can differ from that at z."""
        here = self.curvature(z, np.zeros(len(z)))
        return np.maximum(here - self.curvature(z, r), self.most(z, r) - here)

    def change_of_mean(self, z: FloatArray, weights: FloatArray, moved: float) -> float:
        """Return by how much the weighted mean loss changes at most.

        ``moved`` is the root mean square by which the scores move.
        """
        bounds = [np.inf if self.lipschitz is None else self.lipschitz * moved]
        if self.bend is not None:
            slope = np.sqrt(np.average(self.slope(z) ** 2, weights=weights))
            bounds.append(float(slope) * moved + self.bend / 2 * moved**2)
        return float(min(bounds))


def _flat(z: FloatArray, r: FloatArray) -> FloatArray:  # noqa: ARG001
    return np.zeros(len(z))


def _share(inside: FloatArray, r: FloatArray) -> FloatArray:
    """Return the share of a way of length r that lies within the first ``inside`` of it."""
    share = np.clip(inside, 0.0, None) / np.maximum(r, 1e-300)
    return np.where(inside <= 0, 0.0, np.minimum(share, 1.0))


def _entered(outside: FloatArray, r: FloatArray, length: float = np.inf) -> FloatArray:
    """Return the largest share of a way of at most r within an interval that begins ``outside``."""
    way = np.minimum(r, np.maximum(outside, 0.0) + length)
    share = 1 - np.maximum(outside, 0.0) / np.maximum(way, 1e-300)
    return np.where(outside < 0, 1.0, np.where(r > 0, np.maximum(share, 0.0), 0.0))


def squared(half: bool = False) -> Loss:
    """Return z², or half of it."""
    k = 0.5 if half else 1.0
    return Loss(
        margin=False,
        value=lambda z: k * z**2,
        slope=lambda z: 2 * k * z,
        curvature=lambda z, r: np.full(len(z), 2 * k),  # noqa: ARG005
        most=lambda z, r: np.full(len(z), 2 * k),  # noqa: ARG005
        bend=2 * k,
    )


def logistic() -> Loss:
    """Return log(1 + e^(−z))."""

    def curvature(z: FloatArray, r: FloatArray) -> FloatArray:
        # It falls with the distance from zero, so the least average is on the way outwards.
        here = np.abs(z)
        average = (expit(-here) - expit(-here - r)) / np.maximum(r, 1e-300)
        return np.where(r > 1e-6, average, expit(here) * expit(-here - r))

    def most(z: FloatArray, r: FloatArray) -> FloatArray:
        # Towards zero it grows by a factor of at most e per unit, by at most 1/(6 √3) per unit,
        # and to no more than at the point that is nearest to zero.
        here, nearest = np.abs(z), np.maximum(np.abs(z) - r, 0.0)
        k = expit(here) * expit(-here)
        some = np.minimum(np.maximum(r, 1e-12), 50.0)
        slow = np.minimum(k * np.expm1(some) / some, k + r / (12 * np.sqrt(3)))
        return np.minimum(slow, expit(nearest) * expit(-nearest))

    def slope(z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # infinity is the right limit
            power = np.exp(z)
        power += 1
        return np.asarray(np.divide(-1.0, power, out=power))

    return Loss(
        margin=True,
        value=lambda z: np.logaddexp(0.0, -z),
        slope=slope,
        curvature=curvature,
        most=most,
        lipschitz=1.0,
        bend=0.25,
    )


def hinge() -> Loss:
    """Return max(0, 1 − z)."""
    return Loss(
        margin=True,
        value=lambda z: np.maximum(0.0, 1 - z),
        slope=lambda z: np.where(z < 1, -1.0, 0.0),
        curvature=_flat,
        most=_flat,  # not used: there is no second derivative at a kink
        kinks=((1.0, -1.0, 0.0),),
        lipschitz=1.0,
    )


def squared_hinge() -> Loss:
    """Return max(0, 1 − z)²."""

    def slope(z: FloatArray) -> FloatArray:
        short: FloatArray = 1 - z
        np.maximum(short, 0.0, out=short)
        short *= -2
        return short

    return Loss(
        margin=True,
        value=lambda z: np.maximum(0.0, 1 - z) ** 2,
        slope=slope,
        curvature=lambda z, r: _share(1 - z, r) * 2.0,
        most=lambda z, r: _entered(z - 1, r) * 2.0,
        bend=2.0,
    )


def modified_huber() -> Loss:
    """Return max(0, 1 − z)² from z = −1 on, and its tangent before."""
    return Loss(
        margin=True,
        value=lambda z: np.where(z >= -1, np.maximum(0.0, 1 - z) ** 2, -4 * z),
        slope=lambda z: -2 * np.clip(1 - z, 0.0, 2.0),
        curvature=lambda z, r: np.minimum(_share(1 - z, r), _share(z + 1, r)) * 2.0,
        most=lambda z, r: _entered(np.abs(z) - 1, r, 2.0) * 2.0,
        lipschitz=4.0,
        bend=2.0,
    )


def epsilon_insensitive(epsilon: float) -> Loss:
    """Return max(0, |z| − ε)."""
    return Loss(
        margin=False,
        value=lambda z: np.maximum(0.0, np.abs(z) - epsilon),
        slope=lambda z: np.where(np.abs(z) > epsilon, np.sign(z), 0.0),
        curvature=_flat,
        most=_flat,  # not used: there is no second derivative at a kink
        kinks=((-epsilon, -1.0, 0.0), (epsilon, 0.0, 1.0)) if epsilon else ((0.0, -1.0, 1.0),),
        lipschitz=1.0,
    )


def squared_epsilon_insensitive(epsilon: float) -> Loss:
    """Return max(0, |z| − ε)²."""
    return Loss(
        margin=False,
        value=lambda z: np.maximum(0.0, np.abs(z) - epsilon) ** 2,
        slope=lambda z: 2 * np.sign(z) * np.maximum(0.0, np.abs(z) - epsilon),
        curvature=lambda z, r: (
            _share(np.abs(z) - epsilon, np.minimum(r, np.abs(z) + epsilon)) * 2.0
        ),
        most=lambda z, r: _entered(epsilon - np.abs(z), r) * 2.0,
        bend=2.0,
    )


def huber(epsilon: float) -> Loss:
    """Return z²/2 up to |z| = ε, and its tangents beyond."""

    def value(z: FloatArray) -> FloatArray:
        inside = np.minimum(np.abs(z), epsilon)
        return inside**2 / 2 + epsilon * (np.abs(z) - inside)

    return Loss(
        margin=False,
        value=value,
        slope=lambda z: np.clip(z, -epsilon, epsilon),
        curvature=lambda z, r: _share(epsilon - np.abs(z), r),
        most=lambda z, r: _entered(np.abs(z) - epsilon, r, 2 * epsilon),
        lipschitz=epsilon,
        bend=1.0,
    )
