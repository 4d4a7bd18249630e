"""What the likelihoods of selection models share: a probit of who is seen, and their maximum.

A row that is not selected adds log Φ(−zᵀγ) to the log-likelihood. What a selected row adds is a
function of a = zᵀγ, of its fit xᵀβ and of few further parameters, the last of which is atanh ρ;
from its first two derivatives follow those of the whole, and from these Newton's method, standard
errors and the influence of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from unskew.numerics.heckman import Problem
from unskew.numerics.newton import Certificate, NewtonSolution, minimise
from unskew.numerics.probit import inverse_mills
from unskew.numerics.typing import FloatArray

BOUNDARY = 6.0
"""The |atanh ρ| beyond which ρ, then above 0.99998, counts as one."""
_STARTS = (0.0, -0.5, 0.5, -0.85, 0.85)
"""The correlations from which to start where the first leads nowhere."""


@dataclass(frozen=True)
class Maximum:
    """The maximum likelihood estimates, in the basis of a problem.

    Attributes
    ----------
    params : ndarray
        γ, β and the further parameters.
    covariance : ndarray
        Of ``params``: the inverse of the observed information.
    influence : ndarray of shape (n_rows, n_params)
        How much each row moves ``params``.
    log_likelihood : float
    certificate : Certificate
    at_boundary : bool
        Whether the likelihood still rises at |ρ| = 1.
    """

    params: FloatArray
    covariance: FloatArray
    influence: FloatArray
    log_likelihood: float
    certificate: Certificate
    at_boundary: bool


class SelectionLikelihood(ABC):
    """The log-likelihood of a problem, as a function of γ, β and further parameters."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._unseen = problem.selection.columns[~problem.selected]
        self._unseen_weight = problem.weight[~problem.selected]

    @abstractmethod
    def rows(self, a: FloatArray, fit: FloatArray, further: FloatArray) -> FloatArray:
        """Return what each selected row adds."""

    @abstractmethod
    def slopes(
        self, a: FloatArray, fit: FloatArray, further: FloatArray
    ) -> tuple[list[FloatArray], list[list[FloatArray]]]:
        """Return its derivatives by a, fit and each further parameter.

        The second ones are the lower triangle of a matrix, row by row.
        """

    def value(self, params: FloatArray) -> float:
        """Return the log-likelihood."""
        with np.errstate(over="ignore", invalid="ignore"):
            seen = self.rows(*self._terms(params))
            unseen = log_ndtr(-self._unseen_index(params))
            return float(self.problem.seen @ seen + self._unseen_weight @ unseen)

    def gradient(self, params: FloatArray) -> FloatArray:
        """Return the derivative."""
        return self.derivatives(params)[0]

    def hessian(self, params: FloatArray) -> FloatArray:
        """Return the second derivative."""
        return self.derivatives(params)[1]

    def derivatives(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first two derivatives."""
        # 1) Selected rows: the chain rule, by the columns on which a, the fit and each further
        #    parameter depend.
        first, second = self.slopes(*self._terms(params))
        weight, matrices = self.problem.seen, self._matrices(params)
        parts = [matrix.T @ (weight * by) for matrix, by in zip(matrices, first, strict=True)]
        blocks = [
            [
                (matrices[i].T * (weight * second[max(i, j)][min(i, j)])) @ matrices[j]
                for j in range(len(matrices))
            ]
            for i in range(len(matrices))
        ]
        # 2) Rows that were not selected add log Φ(−zγ), which depends on γ alone: its derivative by
        #    the index is −m for the inverse Mills ratio m(−zγ), and the second −m (m − zγ).
        away = -self._unseen_index(params)
        mills = inverse_mills(away)
        parts[0] -= self._unseen.T @ (self._unseen_weight * mills)
        bend = self._unseen_weight * mills * (mills + away)
        blocks[0][0] -= (self._unseen.T * bend) @ self._unseen
        return np.concatenate(parts), np.block(blocks)

    def scores(self, params: FloatArray) -> FloatArray:
        """Return each row's part of the derivative."""
        first, _ = self.slopes(*self._terms(params))
        selected = self.problem.selected
        rows = np.zeros((len(selected), len(params)))
        rows[selected] = self.problem.seen[:, None] * np.hstack(
            [matrix * by[:, None] for matrix, by in zip(self._matrices(params), first, strict=True)]
        )
        mills = inverse_mills(-self._unseen_index(params))
        n_selection, _ = self.problem.sizes
        rows[~selected, :n_selection] = -self._unseen * (self._unseen_weight * mills)[:, None]
        return rows

    def maximum(self, start: Callable[[float], FloatArray], first: float) -> Maximum:
        """Return the maximum that Newton's method finds.

        Parameters
        ----------
        start : function
            Returns the parameters to start from, for a correlation.
        first : float
            The correlation to try first. Where that leads to no maximum, others are tried, and the
            largest of what they find is returned.
        """
        n_coefficients = sum(self.problem.sizes)

        def from_correlation(rho: float) -> NewtonSolution:
            return minimise(
                lambda params: -self.value(params),
                self._curvature,
                start(rho),
                limit=lambda move: float(np.abs(move[n_coefficients:]).max()),  # at most by one
                outside=lambda params: bool(abs(params[-1]) >= BOUNDARY),
            )

        best = from_correlation(first)
        if not best.certificate.converged:
            tries = [best, *map(from_correlation, _STARTS)]
            best = max(tries, key=lambda one: (round(-one.value, 6), one.certificate.converged))
        params, value, certificate = best
        covariance = np.linalg.pinv(-self.hessian(params), hermitian=True)
        influence = self.scores(params) @ covariance
        at_boundary = bool(abs(params[-1]) >= BOUNDARY)
        return Maximum(params, covariance, influence, -value, certificate, at_boundary)

    def _curvature(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        gradient, hessian = self.derivatives(params)
        return -gradient, -hessian

    def _terms(self, params: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return a and the fit of the selected rows, and the further parameters."""
        n_selection, n_outcome = self.problem.sizes
        end = n_selection + n_outcome
        fit = self.problem.outcome.columns @ params[n_selection:end]
        return self.problem.z @ params[:n_selection], fit, params[end:]

    def _matrices(self, params: FloatArray) -> list[FloatArray]:
        """Return the columns that belong to a, to the fit and to each further parameter."""
        ones = np.ones((len(self.problem.y), 1))
        n_further = len(params) - sum(self.problem.sizes)
        return [self.problem.z, self.problem.outcome.columns, *[ones] * n_further]

    def _unseen_index(self, params: FloatArray) -> FloatArray:
        return self._unseen @ params[: self.problem.sizes[0]]
