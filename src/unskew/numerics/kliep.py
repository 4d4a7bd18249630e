r"""The density ratio of the largest likelihood, Sugiyama and others' KLIEP (2008), to its optimum.

.. math:: \max_{\alpha \ge 0} \sum_u v_u \log \alpha^\top \phi(u)
          \quad\text{with } \mathrm{mean}_S\, \alpha^\top \phi = 1

With :math:`p_l = \alpha_l b_l`, where b is the mean of the basis over the sample, this is the
maximum likelihood of the proportions of a mixture:
:math:`\max \sum_u v_u \log \sum_l p_l \psi_l(u)` over the simplex, with
:math:`\psi_l = \phi_l / b_l`. Few proportions are positive. The solver holds
those, adds the ones that would raise the likelihood most, and takes Newton steps under
:math:`p \ge 0` (Wang, "On fast computation of the non-parametric maximum likelihood estimate of a
mixing distribution", JRSS B 69, 2007).

By concavity, :math:`\max_l \sum_u v_u \psi_l(u) / w(u) - 1` is an upper bound on how much higher
the optimum is: the duality gap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from unskew.numerics.typing import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-8
"""Of the duality gap, in units of the mean log likelihood."""

MAX_ITERATIONS = 200

_EM_STEPS = 10
"""Steps of expectation maximisation before the first Newton step. Not tuned."""

_ADDED = 10
"""Proportions that are added in a step. Not tuned."""


class Kliep(NamedTuple):
    """Coefficients, and how good they are.

    Attributes
    ----------
    coefficients : ndarray of shape (n_basis,)
    objective : float
        The mean over the population of the logarithm of the ratio, at the rows that the basis
        reaches.
    gap : float
        How far the objective is from its optimum at most.
    iterations : int
    converged : bool
    """

    coefficients: FloatArray
    objective: float
    gap: float
    iterations: int
    converged: bool


def solve_kliep(
    basis: FloatArray,
    weight: FloatArray,
    means: FloatArray,
    *,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Kliep:
    """Return the coefficients of largest likelihood.

    Parameters
    ----------
    basis : ndarray of shape (n_rows, n_basis)
        The basis at the population's rows; not negative.
    weight : ndarray of shape (n_rows,)
        Their weights, of any total.
    means : ndarray of shape (n_basis,)
        The means of the basis over the sample. Where one is zero, its coefficient is zero: the
        sample says nothing about it, and the likelihood would have no bound.

    Examples
    --------
    Two cells: one holds half of the sample and three quarters of the population.

    >>> basis = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> solve_kliep(basis, np.ones(4), np.array([0.5, 0.5])).coefficients.round(6)
    array([1.5, 0.5])
    """
    used = np.flatnonzero(means > 0)
    ratios = basis[:, used] / means[used]
    tops = ratios.max(axis=1, initial=0.0)
    seen = (tops > 0) & (weight > 0)
    coefficients = np.zeros(len(means))
    if not seen.any():
        return Kliep(coefficients, -np.inf, np.inf, 0, False)
    if not seen.all():
        ratios, tops, weight = ratios[seen], tops[seen], weight[seen]
    ratios /= tops[:, None]  # a factor of a row moves the objective alone
    likelihood = _Likelihood(ratios, weight / weight.sum())
    proportions, gap, iterations = likelihood.maximise(tolerance, max_iterations)
    coefficients[used] = proportions / means[used]
    objective = likelihood.of(ratios @ proportions) + float(likelihood.shares @ np.log(tops))
    return Kliep(coefficients, objective, gap, iterations, gap <= tolerance)


class _Likelihood(NamedTuple):
    """Of the proportions of a mixture."""

    ratios: FloatArray
    shares: FloatArray

    def of(self, values: FloatArray) -> float:
        """Return the mean log likelihood of a mixture with these values."""
        with np.errstate(divide="ignore"):
            return float(self.shares @ np.log(values))

    def maximise(self, tolerance: float, max_iterations: int) -> tuple[FloatArray, float, int]:
        """Return the proportions, the duality gap and the number of steps."""
        n_basis = self.ratios.shape[1]
        proportions = np.full(n_basis, 1 / n_basis)
        for _ in range(_EM_STEPS):
            proportions = proportions * self._gradient(self.ratios @ proportions)
        proportions = self._pruned(proportions)
        best, gap, steps = proportions, np.inf, 0
        while True:
            values = self.ratios @ proportions
            gradient = self._gradient(values)
            now = float(gradient.max()) - 1.0
            if now < gap:
                best, gap = proportions, now
            if gap <= tolerance or steps >= max_iterations:
                return best, max(gap, 0.0), steps
            proportions = self._step(proportions, values, gradient)
            steps += 1

    def _gradient(self, values: FloatArray) -> FloatArray:
        return (self.shares / values) @ self.ratios

    def _pruned(self, proportions: FloatArray) -> FloatArray:
        """Leave out small proportions, as far as no row loses most of its likelihood."""
        values = self.ratios @ proportions
        for limit in (1e-2, 1e-4, 1e-6):
            kept: BoolArray = proportions >= limit * proportions.max()
            fewer = np.where(kept, proportions, 0.0)
            if (self.ratios @ fewer > 0.1 * values).all():
                return fewer / fewer.sum()
        return proportions

    def _step(
        self, proportions: FloatArray, values: FloatArray, gradient: FloatArray
    ) -> FloatArray:
        """Return better proportions: a Newton step under p ≥ 0, else one of EM."""
        promising = np.argsort(-gradient, kind="stable")[:_ADDED]
        promising = promising[gradient[promising] > 1.0]
        support = np.union1d(np.flatnonzero(proportions), promising)
        target = self._newton(support, values)
        before = self.of(values)
        direction = -proportions
        direction[support] += target
        change = self.ratios @ direction
        # The likelihood less the sum of p, whose maximum has the sum one, is what Newton models.
        slope = float(gradient @ direction - direction.sum())
        length = 1.0
        while length > 1e-8 and slope > 0:
            moved = proportions + length * direction
            value = self.of(np.maximum(values + length * change, 0.0)) - moved.sum()
            if value >= before - proportions.sum() + 1e-4 * length * slope:
                moved[moved < 1e-15] = 0.0
                return moved / moved.sum()
            length /= 2
        return proportions * gradient  # never lowers the likelihood, and keeps the sum

    def _newton(self, support: IntArray, values: FloatArray) -> FloatArray:
        """Return the maximiser of the second-order model over non-negative p on the support."""
        relative = self.ratios[:, support] / values[:, None]
        hessian = (self.shares[:, None] * relative).T @ relative
        linear = 2 * (self.shares @ relative) - 1
        jitter = 1e-12 * float(np.trace(hessian)) / len(support)
        while True:
            try:
                factor = cholesky(hessian + jitter * np.eye(len(support)))
                break
            except LinAlgError:
                jitter *= 100
        found, _ = nnls(factor, solve_triangular(factor, linear, trans="T"), maxiter=10**4)
        return np.asarray(found)
