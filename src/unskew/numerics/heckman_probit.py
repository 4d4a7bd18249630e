"""The likelihood of a probit with sample selection, and its maximum.

The outcome is one where xᵀβ + ε > 0, and seen where zᵀγ + ν > 0; (ε, ν) are standard normal with
correlation ρ (van de Ven and van Praag, Journal of Econometrics 17, 1981). With q = 1 for an
outcome of one and −1 for zero, a selected row adds log Φ₂(zᵀγ, q·xᵀβ; q·ρ) to the log-likelihood,
where Φ₂ is the bivariate normal distribution function. Any τ = atanh ρ is allowed.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from unskew.numerics.bivariate_normal import log_bivariate_ndtr
from unskew.numerics.heckman import Problem
from unskew.numerics.probit import Probit, fit_probit
from unskew.numerics.selection_likelihood import Maximum, SelectionLikelihood
from unskew.numerics.typing import FloatArray

_LOG_2PI = np.log(2 * np.pi)


def outcome_probit(problem: Problem) -> Probit:
    """Return the outcome equation by itself, on the selected rows: what ρ = 0 would make of it."""
    return fit_probit(problem.outcome.columns, problem.y > 0, problem.seen)


def maximise(problem: Problem, outcome: Probit) -> Maximum:
    """Return the maximum likelihood estimates, from the two probits by themselves."""
    coefficients = np.append(problem.probit.coef, outcome.coef)
    likelihood = ProbitLikelihood(problem)
    return likelihood.maximum(lambda rho: np.append(coefficients, np.arctanh(rho)), 0.0)


class ProbitLikelihood(SelectionLikelihood):
    """The log-likelihood of a problem with outcomes 0 and 1, as a function of γ, β and atanh ρ."""

    def rows(self, a: FloatArray, fit: FloatArray, further: FloatArray) -> FloatArray:
        """Return what each selected row adds."""
        sign = 2 * self.problem.y - 1
        return log_bivariate_ndtr(a, sign * fit, sign * np.tanh(further[0]))

    def slopes(
        self, a: FloatArray, fit: FloatArray, further: FloatArray
    ) -> tuple[list[FloatArray], list[list[FloatArray]]]:
        """Return its derivatives: those of Φ₂ are Φ of a line times φ, and the density."""
        sign = 2 * self.problem.y - 1
        b, r = sign * fit, sign * np.tanh(further[0])
        cosh = np.cosh(further[0])
        left = 1 / cosh**2  # 1 − ρ²
        log_value = log_bivariate_ndtr(a, b, r)

        def edge(one: FloatArray, other: FloatArray) -> FloatArray:
            log_slope = -0.5 * one**2 - 0.5 * _LOG_2PI + log_ndtr((other - r * one) * cosh)
            return np.exp(log_slope - log_value)

        by_a, by_b = edge(a, b), edge(b, a)
        square = (a - r * b) ** 2 * cosh**2 + b**2
        density = np.exp(-0.5 * square - _LOG_2PI + np.log(cosh) - log_value)
        first = [by_a, sign * by_b, sign * density * left]
        second = [
            [-a * by_a - r * density - by_a**2],
            [sign * (density - by_a * by_b), -b * by_b - r * density - by_b**2],
            [
                sign * density * (r * b - a - by_a * left),
                density * (r * a - b - by_b * left),
                density * (a * b * (1 + r**2) - r * (a**2 + b**2) - r * left)
                - (density * left) ** 2,
            ],
        ]
        return first, second
