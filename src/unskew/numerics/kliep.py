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

_NEGLIGIBLE = 1e-150
"""A value of the basis that counts as zero: the square of its inverse is still a number."""

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
    start: FloatArray | None = None,
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
    start : ndarray of shape (n_basis,), optional
        The proportions, positive, to begin with; by default equal ones. Where several are the most
        likely, those near it are found.

    Examples
    --------
    Two cells: one holds half of the sample and three quarters of the population.

    >>> basis = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> solve_kliep(basis, np.ones(4), np.array([0.5, 0.5])).coefficients.round(6)
    array([1.5, 0.5])
    """
    used = np.flatnonzero(means > _NEGLIGIBLE)
    if len(used) < len(means):
        basis = basis[:, used]
    seen = (basis.max(axis=1, initial=0.0) > _NEGLIGIBLE) & (weight > 0)
    coefficients = np.zeros(len(means))
    if not seen.any():
        return Kliep(coefficients, -np.inf, np.inf, 0, False)
    if not seen.all():
        basis, weight = basis[seen], weight[seen]
    first = np.ones(len(used)) if start is None else start[used]
    likelihood = _Likelihood(basis, 1 / means[used], weight / weight.sum(), first / first.sum())
    proportions, gap, iterations = likelihood.maximise(tolerance, max_iterations)
    coefficients[used] = proportions / means[used]
    objective = likelihood.of(likelihood.values(proportions))
    return Kliep(coefficients, objective, gap, iterations, gap <= tolerance)


class _Likelihood(NamedTuple):
    """Of the proportions of a mixture with the components ψ, which are the basis times a scale."""

    basis: FloatArray
    scale: FloatArray
    shares: FloatArray
    start: FloatArray

    def values(self, proportions: FloatArray) -> FloatArray:
        """Return the values of the mixture, Σ p ψ, at each row."""
        return np.asarray(self.basis @ (self.scale * proportions))

    def of(self, values: FloatArray) -> float:
        """Return the mean log likelihood of a mixture with these values."""
        with np.errstate(divide="ignore"):
            return float(self.shares @ np.log(values))

    def maximise(self, tolerance: float, max_iterations: int) -> tuple[FloatArray, float, int]:
        """Return the proportions, the duality gap and the number of steps."""
        proportions = self.start
        for _ in range(_EM_STEPS):
            proportions = proportions * self._gradient(self.values(proportions))
        proportions = self._pruned(proportions / proportions.sum())
        best, gap, steps = proportions, np.inf, 0
        while True:
            values = self.values(proportions)
            gradient = self._gradient(values)
            now = float(gradient.max()) - 1.0
            if now < gap:
                best, gap = proportions, now
            if gap <= tolerance or steps >= max_iterations:
                return best, max(gap, 0.0), steps
            proportions = self._step(proportions, values, gradient)
            steps += 1

    def _gradient(self, values: FloatArray) -> FloatArray:
        return np.asarray(((self.shares / values) @ self.basis) * self.scale)

    def _pruned(self, proportions: FloatArray) -> FloatArray:
        """Leave out small proportions, as far as no row loses most of its likelihood."""
        values = self.values(proportions)
        for limit in (1e-2, 1e-4, 1e-6):
            kept: BoolArray = proportions >= limit * proportions.max()
            fewer = np.where(kept, proportions, 0.0)
            if (self.values(fewer) > 0.1 * values).all():
                return fewer / fewer.sum()
        return proportions

    def _step(
        self, proportions: FloatArray, values: FloatArray, gradient: FloatArray
    ) -> FloatArray:
        """Return better proportions: a Newton step under p ≥ 0, else one of EM."""
        promising = np.argsort(-gradient, kind="stable")[:_ADDED]
        promising = promising[gradient[promising] > 1.0]
        support = np.union1d(np.flatnonzero(proportions), promising)
        direction = -proportions
        direction[support] += self._newton(support, values, gradient[support])
        change = self.values(direction)
        # The likelihood less the sum of p, whose maximum has the sum one, is what Newton models.
        before = self.of(values) - proportions.sum()
        slope = float(gradient @ direction - direction.sum())
        length = 1.0
        while length > 1e-8 and slope > 0:
            moved = proportions + length * direction
            value = self.of(np.maximum(values + length * change, 0.0)) - moved.sum()
            if value >= before + 1e-4 * length * slope:
                moved[moved < 1e-15] = 0.0
                return moved / moved.sum()
            length /= 2
        return proportions * gradient  # never lowers the likelihood, and keeps the sum

    def _newton(self, support: IntArray, values: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the maximiser of the second-order model over non-negative p on the support."""
        relative = self.basis[:, support] * self.scale[support]
        relative *= (np.sqrt(self.shares) / values)[:, None]
        hessian = relative.T @ relative
        # In flat directions, such as of equal components, proportions stay as they began.
        spread = self.start.max() / self.start[support]
        jitter = 1e-12 * float(np.trace(hessian)) / len(support)
        while True:
            try:
                factor = cholesky(hessian + np.diag(jitter * spread))
                break
            except LinAlgError:
                jitter *= 100
        linear = 2 * gradient - 1
        found, _ = nnls(factor, solve_triangular(factor, linear, trans="T"), maxiter=10**4)
        return np.asarray(found)
