r"""Probit regression, the probability :math:`\Phi(z^\top\gamma)`, and the bivariate normal.

With signs :math:`q_i = \pm 1` for rows that are selected or not, minimise

.. math:: -\sum_i v_i \log \Phi(q_i z_i^\top \gamma).                                      \tag{1}

It is convex: with the inverse Mills ratio :math:`\lambda(t) = \varphi(t) / \Phi(t)`, the
derivative of :math:`\log \Phi` is :math:`\lambda`, and that of :math:`\lambda(t)` is
:math:`-\lambda(t)(\lambda(t) + t) < 0`. All logarithms hold where :math:`\Phi` itself underflows,
and so does that of the bivariate normal distribution function, which a probit of an outcome beside
one of selection needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr, owens_t

from unskew.numerics.newton import Certificate, minimise
from unskew.numerics.typing import BoolArray, FloatArray

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


_SMALL = 1e-5
"""Below it, the differences in Owen's formula leave too few digits, and the tail is integrated."""
_TINY = 1e-300
_DROP = 40.0
"""How far below its maximum, in logarithms, an integrand is followed."""
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(48)


def inverse_mills(index: FloatArray) -> FloatArray:
    """Return φ(t)/Φ(t), also where Φ is too small for floating point.

    Examples
    --------
    >>> inverse_mills(np.array([0.0, -40.0])).round(4)
    array([ 0.7979, 40.025 ])
    """
    return np.exp(-0.5 * index**2 - _HALF_LOG_2PI - log_ndtr(index))


@dataclass(frozen=True)
class Probit:
    """A fitted probit model.

    Attributes
    ----------
    coef : ndarray of shape (n_columns,)
    information : ndarray of shape (n_columns, n_columns)
        The observed information, minus the second derivative of the log-likelihood.
    log_likelihood : float
    certificate : Certificate
    """

    coef: FloatArray
    information: FloatArray
    log_likelihood: float
    certificate: Certificate


def fit_probit(design: FloatArray, selected: BoolArray, weight: FloatArray) -> Probit:
    """Maximise the probit likelihood, which is concave, by Newton's method.

    Parameters
    ----------
    design : ndarray of shape (n_rows, n_columns)
        Of full rank, with a column of ones if there is to be an intercept. Newton's method does not
        depend on the columns' scale; its rounding does, so let them be about orthonormal.
    selected : ndarray of bool of shape (n_rows,)
    weight : ndarray of shape (n_rows,)

    Examples
    --------
    >>> ones = np.ones((4, 1))
    >>> fit = fit_probit(ones, np.array([True, True, True, False]), np.ones(4))
    >>> fit.coef.round(4)  # Φ(0.6745) = 3/4
    array([0.6745])
    """
    sign = np.where(selected, 1.0, -1.0)

    def value(coef: FloatArray) -> float:
        return -float(weight @ log_ndtr(sign * (design @ coef)))

    def derivatives(coef: FloatArray) -> tuple[FloatArray, FloatArray]:
        index = sign * (design @ coef)
        mills = inverse_mills(index)
        curvature = weight * mills * (mills + index)
        return -(design.T @ (weight * sign * mills)), (design.T * curvature) @ design

    def perfect(coef: FloatArray) -> bool:
        return value(coef) < 1e-9

    end = minimise(value, derivatives, np.zeros(design.shape[1]), outside=perfect)
    return Probit(end.params, derivatives(end.params)[1], -end.value, end.certificate)


def scores(index: FloatArray, selected: BoolArray) -> FloatArray:
    """Return the derivative of each row's log-likelihood by its index."""
    sign = np.where(selected, 1.0, -1.0)
    return sign * inverse_mills(sign * index)


def log_bivariate_ndtr(a: FloatArray, b: FloatArray, r: FloatArray) -> FloatArray:
    """Return log P(A < a, B < b) of standard normal A and B with correlation r, |r| < 1.

    By Owen's T function (Annals of Mathematical Statistics 27, 1956), and by quadrature where the
    probability is below 1e-5, so that about ten digits are right everywhere.

    Examples
    --------
    >>> zero, r = np.zeros(1), np.array([0.5])
    >>> np.exp(log_bivariate_ndtr(zero, zero, r))  # 1/4 + arcsin(r)/2π
    array([0.33333333])
    >>> log_bivariate_ndtr(zero - 30, zero - 30, -r).round(2)
    array([-1809.88])
    """
    a, b, r = (np.array(one) for one in np.broadcast_arrays(a, b, r))
    probability = _by_owen(a, b, r)
    small = probability < _SMALL
    with np.errstate(divide="ignore", invalid="ignore"):
        result: FloatArray = np.log(probability)
    if small.any():
        result[small] = _log_tail(a[small], b[small], r[small])
    return result


def _by_owen(a: FloatArray, b: FloatArray, r: FloatArray) -> FloatArray:
    # T(h, ·) has a limit at h = 0, which a tiny number stands for.
    a, b = np.where(a == 0, _TINY, a), np.where(b == 0, _TINY, b)
    root = np.sqrt((1 - r) * (1 + r))
    with np.errstate(over="ignore"):
        first = owens_t(a, (b - r * a) / (a * root))
        second = owens_t(b, (a - r * b) / (b * root))
    apart = np.where((a < 0) != (b < 0), 0.5, 0.0)
    return 0.5 * (ndtr(a) + ndtr(b)) - first - second - apart


def _log_tail(a: FloatArray, b: FloatArray, r: FloatArray) -> FloatArray:
    """Integrate φ(t) Φ((b − rt)/√(1−r²)) over t < a, relative to its maximum.

    The logarithm of the integrand is concave, so it falls on both sides of one maximum.
    """
    root = np.sqrt((1 - r) * (1 + r))

    def height(t: FloatArray) -> FloatArray:
        return -0.5 * t**2 - _HALF_LOG_2PI + log_ndtr((b - r * t) / root)

    def rises(t: FloatArray) -> BoolArray:
        rising: BoolArray = -t - r / root * inverse_mills((b - r * t) / root) > 0
        return rising

    top = _last(rises, np.minimum(a, -np.abs(b) - 1), a)
    highest = height(top)

    def low(t: FloatArray) -> BoolArray:
        return highest - height(t) > _DROP

    # Its second derivative is below −1: nine away from the maximum, it has fallen by 40.
    begin = _last(low, top - 9, top)
    end = _last(lambda t: ~low(t), top, np.minimum(a, top + 9))
    total = np.zeros_like(top)
    for left, right in ((begin, top), (top, end)):
        half = (right - left) / 2
        for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
            total += half * weight * np.exp(height(left + half * (1 + node)) - highest)
    return highest + np.log(total)


def _last(
    holds: Callable[[FloatArray], BoolArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return up to where something holds that does not hold again, by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        there = holds(middle)
        low, high = np.where(there, middle, low), np.where(there, high, middle)
    return high
