"""The likelihood of Heckman's selection model with a linear outcome, and its maximum.

With s = log σ and τ = atanh ρ, of which any value is allowed, e = (y − xᵀβ)/σ and a = zᵀγ, a
selected row adds log Φ(a·cosh τ + e·sinh τ) − e²/2 − s − ½ log 2π to the log-likelihood.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr

from unskew.numerics.heckman import Problem, TwoStep
from unskew.numerics.probit import inverse_mills
from unskew.numerics.selection_likelihood import Maximum, SelectionLikelihood
from unskew.numerics.typing import FloatArray

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


def maximise(problem: Problem, start: TwoStep) -> Maximum:
    """Return the maximum likelihood estimates, from the two-step estimates."""
    n_selection, n_outcome = problem.sizes
    unit = np.ones(n_selection + n_outcome + 2)  # of each parameter, where σ is about one
    unit[n_selection:-2] = start.sigma
    # In units of the two-step σ, so that all parameters are of the size of one; log σ then moves by
    # its logarithm, and the density of y by as much for each row.
    likelihood = Likelihood(replace(problem, y=problem.y / start.sigma))
    coefficients = start.params[:-1] / unit[:-2]
    found = likelihood.maximum(
        lambda rho: np.concatenate([coefficients, [0.0, np.arctanh(rho)]]),
        float(np.clip(start.rho, -0.95, 0.95)),
    )
    shift = np.log(start.sigma)
    params = found.params * unit
    params[-2] += shift
    return replace(
        found,
        params=params,
        covariance=found.covariance * unit[:, None] * unit,
        influence=found.influence * unit,
        log_likelihood=float(found.log_likelihood - shift * problem.seen.sum()),
    )


class Likelihood(SelectionLikelihood):
    """The log-likelihood of a problem, as a function of γ, β, log σ and atanh ρ."""

    def rows(self, a: FloatArray, fit: FloatArray, further: FloatArray) -> FloatArray:
        """Return what each selected row adds."""
        # Given the residual e in units of σ, the selection index is normal with mean a + ρ e and
        # variance 1 − ρ². With ρ = tanh τ, (a + ρ e) / (1 − ρ²)^{1/2} is a cosh τ + e sinh τ.
        log_sigma, tau = further
        e = (self.problem.y - fit) * np.exp(-log_sigma)
        result: FloatArray = log_ndtr(a * np.cosh(tau) + e * np.sinh(tau))
        result += -0.5 * e**2 - log_sigma - _HALF_LOG_2PI
        return result

    def slopes(
        self, a: FloatArray, fit: FloatArray, further: FloatArray
    ) -> tuple[list[FloatArray], list[list[FloatArray]]]:
        """Return its derivatives."""
        log_sigma, tau = further
        per_sigma = np.exp(-log_sigma)
        e = (self.problem.y - fit) * per_sigma
        cosh, sinh = np.cosh(tau), np.sinh(tau)
        inner = a * cosh + e * sinh
        turn = a * sinh + e * cosh  # its derivative by τ
        mills = inverse_mills(inner)
        bend = mills * (mills + inner)  # −d mills / d inner
        pull = e - mills * sinh
        slope = 1.0 + bend * sinh**2  # d pull / de
        by_tau = bend * turn * sinh - mills * cosh  # d pull / dτ
        across = bend * cosh * sinh
        first = [mills * cosh, pull * per_sigma, pull * e - 1.0, mills * turn]
        second = [
            [-bend * cosh**2],
            [across * per_sigma, -slope * per_sigma**2],
            [across * e, -(pull + e * slope) * per_sigma, -e * (pull + e * slope)],
            [
                mills * sinh - bend * cosh * turn,
                by_tau * per_sigma,
                e * by_tau,
                mills * inner - bend * turn**2,
            ],
        ]
        return first, second
