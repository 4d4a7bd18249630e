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
    slope : callable
        f'(z); at a kink, either slope.
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


def _share(inside: FloatArray, r: FloatArray) -> FloatArray:
    """Return the share of a way of length r that lies within the first ``inside`` of it."""
    share = (inside > 0).astype(np.float64)
    return np.divide(inside, r, out=share, where=(inside > 0) & (inside < r))


def _entered(outside: FloatArray, r: FloatArray, length: float = np.inf) -> FloatArray:
    """Return the largest share of a way of at most r within an interval that begins ``outside``."""
    # The way that enters most ends with the interval, if it gets so far.
    way = np.minimum(r, np.maximum(outside, 0.0) + length)
    share = 1 - np.maximum(outside, 0.0) / np.maximum(way, 1e-300)
    return np.where(outside < 0, 1.0, np.where(r > 0, np.maximum(share, 0.0), 0.0))


def _curved(low: float, high: float, bend: float, *, zero: float, margin: bool) -> Loss:
    """Return a parabola between two points, and its tangents beyond them.

    Its slope is ``bend`` times (z, kept within ``low`` and ``high``, less ``zero``).
    """

    def slope(z: FloatArray) -> FloatArray:
        found = np.clip(z, low, high)
        found -= zero
        found *= bend
        return found

    steepest = bend * max(abs(low - zero), abs(high - zero))
    return Loss(
        margin=margin,
        slope=slope,
        # The least average curvature is on the way to the nearer end; the largest on the way in.
        curvature=lambda z, r: bend * _share(np.minimum(high - z, z - low), r),
        most=lambda z, r: bend * _entered(np.maximum(z - high, low - z), r, high - low),
        lipschitz=steepest if np.isfinite(steepest) else None,
        bend=bend,
    )


def _broken(kinks: tuple[tuple[float, float, float], ...], *, margin: bool) -> Loss:
    """Return straight lines that meet in kinks: each one's place, and the slopes before and after.

    There is no second derivative, and no curvature to count on.
    """
    places = np.array([place for place, _, _ in kinks])
    slopes = np.array([kinks[0][1], *(after for _, _, after in kinks)])

    def flat(z: FloatArray, r: FloatArray) -> FloatArray:  # noqa: ARG001
        return np.zeros(len(z))

    return Loss(
        margin=margin,
        slope=lambda z: slopes[np.searchsorted(places, z)],
        curvature=flat,
        most=flat,
        kinks=kinks,
        lipschitz=float(np.abs(slopes).max()),
    )


def squared(half: bool = False) -> Loss:
    """Return z², or half of it."""
    return _curved(-np.inf, np.inf, 1.0 if half else 2.0, zero=0.0, margin=False)


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
        slope=slope,
        curvature=curvature,
        most=most,
        lipschitz=1.0,
        bend=0.25,
    )


def hinge() -> Loss:
    """Return max(0, 1 − z)."""
    return _broken(((1.0, -1.0, 0.0),), margin=True)


def squared_hinge() -> Loss:
    """Return max(0, 1 − z)²."""
    return _curved(-np.inf, 1.0, 2.0, zero=1.0, margin=True)


def modified_huber() -> Loss:
    """Return max(0, 1 − z)² from z = −1 on, and its tangent before."""
    return _curved(-1.0, 1.0, 2.0, zero=1.0, margin=True)


def huber(epsilon: float) -> Loss:
    """Return z²/2 up to |z| = ε, and its tangents beyond."""
    return _curved(-epsilon, epsilon, 1.0, zero=0.0, margin=False)


def epsilon_insensitive(epsilon: float) -> Loss:
    """Return max(0, |z| − ε)."""
    if not epsilon:
        return _broken(((0.0, -1.0, 1.0),), margin=False)
    return _broken(((-epsilon, -1.0, 0.0), (epsilon, 0.0, 1.0)), margin=False)


def squared_epsilon_insensitive(epsilon: float) -> Loss:
    """Return max(0, |z| − ε)²."""
    return Loss(
        margin=False,
        slope=lambda z: 2 * np.sign(z) * np.maximum(0.0, np.abs(z) - epsilon),
        # Beyond the flat part the other arm begins, which makes longer ways curved again.
        curvature=lambda z, r: (
            _share(np.abs(z) - epsilon, np.minimum(r, np.abs(z) + epsilon)) * 2.0
        ),
        most=lambda z, r: _entered(epsilon - np.abs(z), r) * 2.0,
        bend=2.0,
    )


BY_NAME: dict[str, Callable[[float], Loss]] = {
    "hinge": lambda _: hinge(),
    "squared_hinge": lambda _: squared_hinge(),
    "modified_huber": lambda _: modified_huber(),
    "log_loss": lambda _: logistic(),
    "squared_error": lambda _: squared(half=True),
    "huber": huber,
    "epsilon_insensitive": epsilon_insensitive,
    "squared_epsilon_insensitive": squared_epsilon_insensitive,
}
"""What scikit-learn calls them, as functions of its ``epsilon``."""
