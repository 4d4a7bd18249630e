"""Probit regression: the probability Φ(zᵀγ) of being selected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from unskew.numerics.newton import Certificate, minimise
from unskew.numerics.typing import BoolArray, FloatArray

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


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
