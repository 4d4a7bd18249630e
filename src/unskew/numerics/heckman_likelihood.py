"""The likelihood of Heckman's selection model, and its maximum.

With s = log σ and τ = atanh ρ, of which any value is allowed, e = (y − xᵀβ)/σ and a = zᵀγ, a
selected row adds log Φ(a·cosh τ + e·sinh τ) − e²/2 − s − ½ log 2π to the log-likelihood, another
row log Φ(−a). The first two derivatives are exact, so Newton's method takes few steps, and the
second is the information from which standard errors follow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from unskew.numerics.heckman import Problem, TwoStep
from unskew.numerics.newton import Certificate, Climb, climb
from unskew.numerics.probit import inverse_mills
from unskew.numerics.typing import FloatArray

BOUNDARY = 6.0
"""The |atanh ρ| beyond which ρ, then above 0.99998, counts as one."""
_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_STARTS = (0.0, -0.5, 0.5, -0.85, 0.85)
"""The correlations from which to start where the two-step estimate leads nowhere."""


@dataclass(frozen=True)
class Maximum:
    """The maximum likelihood estimates, in the basis of a problem.

    Attributes
    ----------
    params : ndarray
        γ, β, log σ, atanh ρ.
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


def maximise(problem: Problem, start: TwoStep) -> Maximum:
    """Return the maximum likelihood estimates, from the two-step estimates.

    Where that leads to no maximum, other correlations are tried, and the largest of what they find
    is returned.
    """
    n_selection, n_outcome = problem.sizes
    unit = np.ones(n_selection + n_outcome + 2)  # of each parameter, where σ is about one
    unit[n_selection:-2] = start.sigma
    likelihood = Likelihood(replace(problem, y=problem.y / start.sigma))
    coefficients = start.params[:-1] / unit[:-2]

    def from_correlation(rho: float) -> Climb:
        return climb(
            likelihood.value,
            lambda params: (likelihood.gradient(params), -likelihood.hessian(params)),
            np.concatenate([coefficients, [0.0, np.arctanh(rho)]]),
            limit=lambda move: float(np.abs(move[-2:]).max()),  # log σ, atanh ρ: at most by one
            outside=lambda params: bool(abs(params[-1]) >= BOUNDARY),
        )

    best = from_correlation(float(np.clip(start.rho, -0.95, 0.95)))
    if not best.certificate.converged:
        tries = [best, *map(from_correlation, _STARTS)]
        best = max(tries, key=lambda one: (round(one.value, 6), one.certificate.converged))
    params, value, certificate = best
    covariance = np.linalg.pinv(-likelihood.hessian(params), hermitian=True)
    influence = likelihood.scores(params) @ covariance
    shift = np.log(start.sigma)
    params = params * unit
    params[-2] += shift
    return Maximum(
        params,
        covariance * unit[:, None] * unit,
        influence * unit,
        float(value - shift * problem.seen.sum()),
        certificate,
        bool(abs(params[-1]) >= BOUNDARY),
    )


class Likelihood:
    """The log-likelihood of a problem, as a function of γ, β, log σ and atanh ρ."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._unseen = problem.selection.columns[~problem.selected]
        self._unseen_weight = problem.weight[~problem.selected]

    def _terms(self, params: FloatArray) -> tuple[FloatArray, FloatArray, float, float]:
        """Return a and e of the selected rows, log σ and atanh ρ."""
        n_selection, _ = self.problem.sizes
        log_sigma, atanh_rho = float(params[-2]), float(params[-1])
        a = self.problem.z @ params[:n_selection]
        fitted = self.problem.outcome.columns @ params[n_selection:-2]
        e = (self.problem.y - fitted) * np.exp(-log_sigma)
        return a, e, log_sigma, atanh_rho

    def value(self, params: FloatArray) -> float:
        """Return the log-likelihood."""
        n_selection, _ = self.problem.sizes
        with np.errstate(over="ignore", invalid="ignore"):
            a, e, log_sigma, tau = self._terms(params)
            seen = log_ndtr(a * np.cosh(tau) + e * np.sinh(tau))
            seen += -0.5 * e**2 - log_sigma - _HALF_LOG_2PI
            unseen = log_ndtr(-(self._unseen @ params[:n_selection]))
            return float(self.problem.seen @ seen + self._unseen_weight @ unseen)

    def gradient(self, params: FloatArray) -> FloatArray:
        """Return the derivative."""
        by_a, by_fit, by_sigma, by_tau, by_unseen = self._first(params)
        weight = self.problem.seen
        by_gamma = self.problem.z.T @ (weight * by_a)
        by_gamma += self._unseen.T @ (self._unseen_weight * by_unseen)
        by_beta = self.problem.outcome.columns.T @ (weight * by_fit)
        return np.concatenate([by_gamma, by_beta, [weight @ by_sigma, weight @ by_tau]])

    def scores(self, params: FloatArray) -> FloatArray:
        """Return each row's part of the derivative."""
        by_a, by_fit, by_sigma, by_tau, by_unseen = self._first(params)
        problem = self.problem
        rows = np.zeros((len(problem.selected), len(params)))
        rows[problem.selected] = problem.seen[:, None] * np.column_stack(
            [
                problem.z * by_a[:, None],
                problem.outcome.columns * by_fit[:, None],
                by_sigma,
                by_tau,
            ]
        )
        n_selection, _ = problem.sizes
        rows[~problem.selected, :n_selection] = (
            self._unseen * (self._unseen_weight * by_unseen)[:, None]
        )
        return rows

    def _first(self, params: FloatArray) -> tuple[FloatArray, ...]:
        """Return each row's derivative by a, xᵀβ, log σ and atanh ρ, and by a if not selected."""
        n_selection, _ = self.problem.sizes
        a, e, log_sigma, tau = self._terms(params)
        cosh, sinh = np.cosh(tau), np.sinh(tau)
        mills = inverse_mills(a * cosh + e * sinh)
        pull = e - mills * sinh
        unseen = -inverse_mills(-(self._unseen @ params[:n_selection]))
        by_tau = mills * (a * sinh + e * cosh)
        return mills * cosh, pull * np.exp(-log_sigma), pull * e - 1.0, by_tau, unseen

    def hessian(self, params: FloatArray) -> FloatArray:
        """Return the second derivative."""
        n_selection, _ = self.problem.sizes
        a, e, log_sigma, tau = self._terms(params)
        cosh, sinh, per_sigma = np.cosh(tau), np.sinh(tau), np.exp(-log_sigma)
        inner = a * cosh + e * sinh
        turn = a * sinh + e * cosh  # its derivative by τ
        mills = inverse_mills(inner)
        bend = mills * (mills + inner)  # −dφ/Φ
        weight, z, x = self.problem.seen, self.problem.z, self.problem.outcome.columns

        def product(left: FloatArray, by: FloatArray, right: FloatArray) -> FloatArray:
            return (left.T * (weight * by)) @ right

        by_gamma = product(z, -bend * cosh**2, z)
        index = -(self._unseen @ params[:n_selection])
        away = inverse_mills(index)
        by_gamma -= (self._unseen.T * (self._unseen_weight * away * (away + index))) @ self._unseen
        across = bend * cosh * sinh
        slope = 1.0 + bend * sinh**2  # d(e − mills·sinh)/de
        pull = e - mills * sinh
        by_tau = bend * turn * sinh - mills * cosh  # d(e − mills·sinh)/dτ
        one = np.ones((len(e), 1))
        ends = np.array(
            [
                [weight @ (-e * (pull + e * slope)), weight @ (e * by_tau)],
                [weight @ (e * by_tau), weight @ (mills * inner - bend * turn**2)],
            ]
        )
        of_z = np.hstack(
            [product(z, across * e, one), product(z, mills * sinh - bend * cosh * turn, one)]
        )
        of_x = np.hstack([product(x, -(pull + e * slope), one), product(x, by_tau, one)])
        of_x *= per_sigma
        mixed = product(z, across * per_sigma, x)
        by_beta = product(x, -slope * per_sigma**2, x)
        return np.block([[by_gamma, mixed, of_z], [mixed.T, by_beta, of_x], [of_z.T, of_x.T, ends]])
