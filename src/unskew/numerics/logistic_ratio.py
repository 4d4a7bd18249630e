r"""The logistic model of selection, at a chosen rate.

With features φ whose first is constant, minimise over β, with :math:`g = \varphi^\top \beta`,

.. math:: \mathrm{mean}_U \log(1 + e^g) - k\, \mathrm{mean}_S\, g + \tfrac\lambda2 \|\beta\|^2,

the intercept without penalty. Where it is smallest without penalty and the model is right,
:math:`f_U\, \sigma(g) = k f_S`, so the density ratio is :math:`f_U / f_S = k (1 + e^{-g})`. With
k = m / n this is the likelihood of being selected, where the sample is part of the population
(Chen, Li and Wu, JASA 115, 2020); as k goes to zero the ratio becomes log-linear. So one family
serves both, and needs no knowledge of which population rows are in the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from unskew.numerics.calibration import solve_psd
from unskew.numerics.row_features import weighted_moments
from unskew.numerics.softplus import softplus
from unskew.numerics.typing import FloatArray

MAX_STEPS = 100
WIDE = 200
"""Features from which on the Hessian is kept as long as a step with it halves the gradient."""
TOLERANCE = 1e-10


class LogisticCertificate(NamedTuple):
    """How near the coefficients are to the minimum."""

    gradient_norm: float
    """The largest entry of the gradient."""
    steps: int
    converged: bool


class LogisticProblem:
    """Selection by the features, with mean features of the sample and rows of the population.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Of the population; the first is one.
    shares : ndarray of shape (n_rows,)
        Sum to one.
    sample_means : ndarray of shape (n_features,)
    n_free : int
        How many of the features, the first ones, have no penalty.

    Examples
    --------
    Of two kinds of rows, the second is three times as frequent in the sample.

    >>> features = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> problem = LogisticProblem(features, np.array([0.75, 0.25]), np.array([1.0, 0.5]))
    >>> beta, certificate = problem.solve(rate=0.2, penalty=0.0)
    >>> (0.2 * (1 + np.exp(-features @ beta))).round(6)
    array([1.5, 0.5])
    """

    def __init__(
        self, features: FloatArray, shares: FloatArray, sample_means: FloatArray, n_free: int = 1
    ) -> None:
        self.features = features
        self.shares = shares
        self.sample_means = sample_means
        self.n_free = n_free
        self._gram: FloatArray | None = None

    def solve(
        self, rate: float, penalty: float, start: FloatArray | None = None, tol: float = TOLERANCE
    ) -> tuple[FloatArray, LogisticCertificate]:
        """Return the coefficients, by Newton's method with step halving."""
        width = self.features.shape[1]
        ridge = np.full(width, penalty)
        ridge[: self.n_free] = 0.0
        if start is None:
            start = np.zeros(width)
            start[0] = np.log(rate / (1 - rate))
        beta = start
        scores = self.features @ beta
        value = self._value(beta, scores, rate, ridge)
        steps, norm, before = 0, np.inf, np.inf
        inverse: Callable[[FloatArray], FloatArray] | None = None
        while True:
            # 1) The gradient: what selection by the model takes of each feature, less what the
            #    sample has of it.
            chances = expit(scores)
            gradient = (self.shares * chances) @ self.features - rate * self.sample_means
            gradient += ridge * beta
            norm = float(np.abs(gradient).max())
            if norm <= tol or steps == MAX_STEPS:
                break
            # 2) With many features the Hessian costs most of a step. It is kept, also from earlier
            #    penalties and rates, as long as steps with it halve the gradient.
            kept = width >= WIDE and (steps == 0 or norm < before / 2)
            if not kept or self._gram is None:
                curvature = self.shares * chances * (1 - chances)
                self._gram = weighted_moments(self.features, curvature).gram
                inverse = None
            inverse = inverse or _inverse(self._gram, ridge)
            direction, before = -inverse(gradient), norm
            # 3) Halve the step until the objective falls by a share of what its slope promises
            #    (Armijo), up to rounding. Scores are linear in the step: no product is needed.
            ahead = self.features @ direction
            promised = float(gradient @ direction)
            size = 1.0
            while size > 1e-10:
                new = beta + size * direction
                reached = self._value(new, scores + size * ahead, rate, ridge)
                if reached <= value + 1e-4 * size * promised + 1e-15 * abs(value):
                    break
                size /= 2
            else:
                break
            beta, scores, value = new, scores + size * ahead, reached
            steps += 1
        return beta, LogisticCertificate(norm, steps, norm <= tol)

    def curvature(self, beta: FloatArray, penalty: float) -> FloatArray:
        """Return the Hessian at coefficients."""
        chances = expit(self.features @ beta)
        hessian = weighted_moments(self.features, self.shares * chances * (1 - chances)).gram
        hessian.flat[self.n_free * (len(beta) + 1) :: len(beta) + 1] += penalty
        return hessian

    def _value(self, beta: FloatArray, scores: FloatArray, rate: float, ridge: FloatArray) -> float:
        fit = self.shares @ softplus(scores) - rate * float(self.sample_means @ beta)
        return float(fit + ridge @ beta**2 / 2)


def _inverse(gram: FloatArray, ridge: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the product of a vector and the inverse of the Hessian with a ridge."""
    hessian = gram.copy()
    hessian.flat[:: len(ridge) + 1] += ridge + 1e-14
    if len(ridge) < WIDE:
        return lambda vector: solve_psd(hessian, vector)
    try:
        factor = cho_factor(hessian)
    except LinAlgError:
        return lambda vector: solve_psd(hessian, vector)
    return lambda vector: np.asarray(cho_solve(factor, vector))


def log_ratio_of(scores: FloatArray, rate: float) -> FloatArray:
    """Return the logarithm of the density ratio k (1 + e^(-g))."""
    return float(np.log(rate)) + softplus(-scores)
