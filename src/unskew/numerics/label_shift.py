"""Label shift: p(y) differs between sample and population, p(x | y) does not.

Two estimators of the class weights w(y) = p_U(y)/p_S(y) from a classifier's probabilities: the
linear system of Lipton, Wang and Smola (ICML 2018, "BBSE"), and maximum likelihood (Saerens,
Latinne and Decaestecker, Neural Computation 14, 2002, "MLLS"), which needs calibrated probabilities
(Alexandari, Kundaje and Shrikumar, ICML 2020).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from unskew.numerics.density_ratio import solve_kliep
from unskew.numerics.newton import minimise
from unskew.numerics.typing import FloatArray, IntArray

SMALLEST = 1e-12
"""Probabilities below it are taken as this: zero would have no logarithm."""
_RIDGE = 1e-2
"""How much of a row it counts against a calibration that it changes probabilities."""


class Calibration(NamedTuple):
    """A bias-corrected temperature: log p becomes ``slope`` · log p + ``bias``, normalised."""

    slope: float
    bias: FloatArray

    def __call__(self, probabilities: FloatArray) -> FloatArray:
        """Return calibrated probabilities; the classes are the last axis."""
        return softmax(self.slope * _log(probabilities) + self.bias, axis=-1)


def fit_calibration(probabilities: FloatArray, labels: IntArray, weight: FloatArray) -> Calibration:
    """Return the bias-corrected temperature with the smallest log loss on held-out predictions.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    >>> calibration = fit_calibration(np.tile(p, (50, 1)), np.tile([0, 1, 1, 0], 50), np.ones(200))
    >>> calibration(p).round(2)[0]  # right half of the time, whatever is predicted
    array([0.5, 0.5])
    """
    logs, n_classes = _log(probabilities), probabilities.shape[1]
    hits = np.eye(n_classes)[labels]
    neutral = np.append(1.0, np.zeros(n_classes - 1))  # the last bias is zero

    def terms(params: FloatArray) -> FloatArray:
        return params[0] * logs + np.append(params[1:], 0.0)

    def value(params: FloatArray) -> float:
        fit = weight @ (hits * log_softmax(terms(params), axis=1)).sum(axis=1)
        return float(0.5 * _RIDGE * ((params - neutral) ** 2).sum() - fit)

    def derivatives(params: FloatArray) -> tuple[FloatArray, FloatArray]:
        fitted = softmax(terms(params), axis=-1)
        # For the logits z = slope · log p + bias, the gradient is Σ (hit − fitted) dz, and the
        # information the covariance of dz under the fitted probabilities.
        gap = weight[:, None] * (hits - fitted)
        mean = (fitted * logs).sum(axis=1, keepdims=True)
        across = weight @ (fitted * (logs - mean))
        inner = np.diag(weight @ fitted) - (fitted.T * weight) @ fitted
        information = np.empty((n_classes, n_classes))
        information[0, 0] = weight @ (fitted * (logs - mean) ** 2).sum(axis=1)
        information[0, 1:] = information[1:, 0] = across[:-1]
        information[1:, 1:] = inner[:-1, :-1]
        gradient = np.append((gap * logs).sum(), gap.sum(axis=0)[:-1])
        pull = _RIDGE * (params - neutral)
        return pull - gradient, information + _RIDGE * np.eye(n_classes)

    params = minimise(value, derivatives, neutral).params
    return Calibration(float(params[0]), np.append(params[1:], 0.0))


def _log(probabilities: FloatArray) -> FloatArray:
    return np.log(np.maximum(probabilities, SMALLEST))


class Shares(NamedTuple):
    """The class shares with the largest likelihood, and how far any others can be above it."""

    shares: FloatArray
    gap: float
    """An upper bound of how much larger the mean log-likelihood could be."""


def most_likely_shares(
    probabilities: FloatArray, weight: FloatArray, prior: FloatArray, *, tolerance: float = 1e-9
) -> Shares:
    """Return the population's class shares, by Newton's method.

    The mean of log Σ_y p(y|x) π_y/π⁰_y is concave in π, and π is to a mixture of the p(y|x)/π⁰_y
    what KLIEP's coefficients are to one of kernels: the same program, of :mod:`.density_ratio`.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
        Of population rows, as a model for a prior of ``prior`` gives them.
    weight : ndarray of shape (n_rows,)
    prior : ndarray of shape (n_classes,)

    Examples
    --------
    >>> sure = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # then it counts
    >>> most_likely_shares(sure, np.ones(3), np.array([0.5, 0.5])).shares.round(6)
    array([0.666667, 0.333333])
    """
    # With π = π⁰ c, the likelihood is that of Σ_y c_y p(y|x), and Σ π⁰ c = 1.
    basis = np.maximum(probabilities, SMALLEST)
    found = solve_kliep(basis, weight, prior, start=prior, tolerance=tolerance)
    return Shares(found.coefficients * prior, found.gap)


def by_class(values: FloatArray, labels: IntArray, weight: FloatArray) -> FloatArray:
    """Return the mean of each column times 1{y = j}, for each class j.

    Of probabilities p̂, that is the matrix C of what is predicted where the label is j.
    """
    n_classes = int(labels.max()) + 1
    return (values.T * (weight / weight.sum())) @ np.eye(n_classes)[labels]


def solve_confusion(matrix: FloatArray, means: FloatArray) -> FloatArray:
    """Return the class weights under which the sample's predictions have the population's mean.

    They may be negative, as no others solve the system.

    Examples
    --------
    >>> matrix = np.array([[0.4, 0.1], [0.1, 0.4]])
    >>> solve_confusion(matrix, matrix @ [0.5, 1.5])
    array([0.5, 1.5])
    """
    return np.linalg.solve(matrix, means)


def evidence(
    probabilities: FloatArray,
    labels: IntArray,
    weight: FloatArray,
    means: FloatArray,
    n_rows: float,
) -> float:
    """Return how much of an estimated shift is more than chance, from 0 to 1.

    That is (1 − (k − 1)/T)₊, the factor by which James and Stein shrink k − 1 numbers, with T the
    squared distance of the mean predictions in sample and population, in standard errors. Without a
    shift T is about k − 1, with a clear one far larger. The sample's classes are as they are: only
    what varies within them adds to its error.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Of the sample.
    labels, weight : ndarray of shape (n_samples,)
    means : ndarray of shape (n_classes,)
        The population's mean probabilities.
    n_rows : float
        The number of population rows.

    Examples
    --------
    >>> p, labels = np.array([[0.9, 0.1], [0.2, 0.8]] * 50), np.array([0, 1] * 50)
    >>> ones = np.ones(100)
    >>> evidence(p, labels, ones, p.mean(axis=0), 100)
    0.0
    >>> evidence(p, labels, ones, np.array([0.9, 0.1]), 10_000) > 0.99
    True
    """
    # The variance of the difference of the two means: in the population's, all of a prediction's
    # spread over n; in the sample's, what is left within the labels over its effective size.
    share = weight / weight.sum()
    middle = share @ probabilities
    centred = probabilities - middle
    by_label = by_class(probabilities, labels, weight) / np.bincount(labels, share)
    within = probabilities - by_label.T[labels]
    effective = 1.0 / float(share @ share)
    variance = (centred.T * share) @ centred / n_rows + (within.T * share) @ within / effective
    distance = means - middle
    size = float(distance @ np.linalg.pinv(variance, rcond=1e-10, hermitian=True) @ distance)
    return max(0.0, 1.0 - (len(means) - 1) / size) if size > 0 else 0.0


def adjusted(probabilities: FloatArray, weights: FloatArray) -> FloatArray:
    """Return probabilities for other class shares: each times its weight, normalised (Elkan 2001).

    Examples
    --------
    >>> adjusted(np.array([[0.5, 0.5]]), np.array([1.0, 3.0]))
    array([[0.25, 0.75]])
    """
    raised = probabilities * weights
    return raised / raised.sum(axis=-1, keepdims=True)
