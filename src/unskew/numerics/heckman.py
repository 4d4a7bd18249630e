r"""Heckman's selection model: an outcome that is seen only where a probit says so.

The outcome is :math:`y = x^\top\beta + \varepsilon` and is seen where :math:`z^\top\gamma + \nu >
0`; :math:`(\varepsilon, \nu)` are normal with standard deviations σ and 1 and correlation ρ.

0. **Probit.** With signs :math:`q_i = \pm 1` for rows that are selected or not, γ minimises
   :math:`-\sum_i v_i \log \Phi(q_i z_i^\top \gamma)`. It is convex: with the inverse Mills ratio
   :math:`\lambda(t) = \varphi(t) / \Phi(t)`, the derivative of :math:`\log \Phi` is λ, and that of
   λ(t) is :math:`-\lambda(t)(\lambda(t) + t) < 0`.

1. **Two steps** (Heckman, Econometrica 47, 1979; covariance of Greene, International Economic
   Review 22, 1981): the probit gives :math:`a = z^\top\gamma`; then y is regressed on x and λ(a):

   .. math:: E[y \mid \text{seen}] = x^\top\beta + \rho\sigma\, \lambda(z^\top\gamma).     \tag{1}

2. **Maximum likelihood.** A row that is not selected adds :math:`\log\Phi(-a)`. With
   :math:`s = \log\sigma`, :math:`\tau = \operatorname{atanh}\rho`, of which any value is allowed,
   and :math:`e = (y - x^\top\beta) / \sigma`, a selected row adds

   .. math:: \log\Phi(a \cosh\tau + e \sinh\tau) - e^2/2 - s - \tfrac12 \log 2\pi.        \tag{2}

3. **An outcome of 0 or 1**, one where :math:`x^\top\beta + \varepsilon > 0` with σ = 1 (van de Ven
   and van Praag, Journal of Econometrics 17, 1981). With q = 1 for one and −1 for zero, a selected
   row adds :math:`\log\Phi_2(a, q\,x^\top\beta; q\rho)`.                                  (3)

All work in orthonormal columns, so that the columns' scale has no influence. All logarithms, also
that of the bivariate normal distribution function, hold where the probability itself underflows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.special import log_ndtr, ndtr, owens_t

from unskew.numerics.newton import Certificate, NewtonSolution, minimise
from unskew.numerics.typing import BoolArray, FloatArray, IntArray

_DEPENDENT = 1e-10
"""The share of a column's length outside of earlier columns below which it depends on them."""


BOUNDARY = 6.0
"""The |atanh ρ| beyond which ρ, then above 0.99998, counts as one."""
_STARTS = (0.0, -0.5, 0.5, -0.85, 0.85)
"""The correlations from which to start where the first leads nowhere."""
_LOG_2PI = np.log(2 * np.pi)
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
    return np.exp(-0.5 * index**2 - _LOG_2PI / 2 - log_ndtr(index))


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
        return -0.5 * t**2 - _LOG_2PI / 2 + log_ndtr((b - r * t) / root)

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


@dataclass(frozen=True)
class Basis:
    """Orthonormal columns for those of a matrix, from left to right.

    Attributes
    ----------
    kept : ndarray of int
        The columns that do not depend linearly on earlier ones.
    columns : ndarray of shape (n_rows, n_kept)
        With a mean square of one.
    back : ndarray of shape (n_kept, n_kept)
        Coefficients of ``columns`` times this are coefficients of the kept columns.
    """

    kept: IntArray
    columns: FloatArray
    back: FloatArray

    @classmethod
    def from_matrix(cls, matrix: FloatArray) -> Basis:
        """Return the basis of a matrix.

        Examples
        --------
        >>> ones = np.ones(4)
        >>> basis = Basis.from_matrix(np.column_stack([ones, 3 * ones, [0, 2, 0, 2]]))
        >>> basis.kept, basis.columns[:, 1] * np.sign(basis.columns[1, 1])
        (array([0, 2]), array([-1.,  1., -1.,  1.]))
        """
        kept = np.arange(matrix.shape[1])
        lengths = np.abs(matrix).max(axis=0, initial=0.0)
        scale = np.where(lengths > 0, lengths, 1.0)
        scale = scale * np.maximum(np.linalg.norm(matrix / scale, axis=0), np.finfo(float).tiny)
        while True:
            q, r = qr(matrix[:, kept] / scale[kept], mode="economic", check_finite=False)
            square = min(r.shape)
            outside = np.append(np.abs(np.diag(r)), np.zeros(len(kept) - square))
            dependent = np.flatnonzero(outside < _DEPENDENT)
            if not len(dependent):
                break
            kept = np.delete(kept, dependent[0])
        size = np.sqrt(len(matrix))
        back = solve_triangular(r, np.eye(len(kept))) / scale[kept][:, None] * size
        return cls(kept, q * size, back)


@dataclass(frozen=True)
class SelectionProblem:
    """The rows of a selection model.

    Attributes
    ----------
    selection : Basis
        Of the selection equation's columns, for all rows.
    outcome : Basis
        Of the outcome equation's columns, for the selected rows.
    selected : ndarray of bool of shape (n_rows,)
    y : ndarray of shape (n_selected,)
        The outcome of the selected rows.
    weight : ndarray of shape (n_rows,)
    """

    selection: Basis
    outcome: Basis
    selected: BoolArray
    y: FloatArray
    weight: FloatArray

    @cached_property
    def z(self) -> FloatArray:
        """The selection equation's columns for the selected rows."""
        return self.selection.columns[self.selected]

    @cached_property
    def seen(self) -> FloatArray:
        """The weights of the selected rows."""
        return self.weight[self.selected]

    @cached_property
    def probit(self) -> Probit:
        """The selection equation by itself."""
        return fit_probit(self.selection.columns, self.selected, self.weight)

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of coefficients of the two equations."""
        return len(self.selection.kept), len(self.outcome.kept)

    def back(self, *further: float) -> FloatArray:
        """Return the matrix that takes parameters of the basis to those of the columns."""
        n_selection, n_outcome = self.sizes
        size = n_selection + n_outcome + len(further)
        matrix = np.zeros((size, size))
        matrix[:n_selection, :n_selection] = self.selection.back
        matrix[n_selection : size - len(further), n_selection : size - len(further)] = (
            self.outcome.back
        )
        for place, factor in enumerate(further, start=size - len(further)):
            matrix[place, place] = factor
        return matrix


@dataclass(frozen=True)
class TwoStep:
    """The two-step estimates, in the basis of a problem.

    Attributes
    ----------
    params : ndarray
        γ, β, and the coefficient ρσ of the inverse Mills ratio.
    sigma, rho : float
    covariance : ndarray
        Of ``params``, where the model holds: with what estimating γ adds.
    influence : ndarray of shape (n_rows, n_params)
        How much each row moves ``params``.
    condition : float
        See :func:`condition_number`.
    """

    params: FloatArray
    sigma: float
    rho: float
    covariance: FloatArray
    influence: FloatArray
    condition: float


def two_step(problem: SelectionProblem) -> TwoStep:
    """Return Heckman's estimates: a probit, then least squares on x and the inverse Mills ratio."""
    # 1) Least squares by equation (1), given the probit.
    gamma, weight = problem.probit.coef, problem.seen
    index = problem.z @ gamma
    mills = inverse_mills(index)
    decline = mills * (mills + index)  # δ = −dλ/d(zγ)
    regressors = np.column_stack([problem.outcome.columns, mills])
    theta, residuals = _least_squares(regressors, problem.y, weight)
    rho_sigma = theta[-1]
    # 2) The residuals of selected rows have the variance σ² (1 − ρ²δ), which gives σ and ρ.
    variance = (weight @ residuals**2 + rho_sigma**2 * (weight @ decline)) / weight.sum()
    sigma = float(np.sqrt(variance))
    rho = float(rho_sigma / sigma) if sigma > 1e-12 * np.abs(problem.y).max() else 0.0
    # 3) Greene's covariance: that of least squares, and what estimating γ adds through λ in y.
    bread = np.linalg.pinv((regressors.T * weight) @ regressors)
    slope = (regressors.T * (weight * rho_sigma * decline)) @ problem.z
    of_gamma = np.linalg.inv(problem.probit.information)
    noise = (regressors.T * (weight * (sigma**2 - rho_sigma**2 * decline))) @ regressors
    carried = bread @ slope
    covariance = np.block(
        [
            [of_gamma, of_gamma @ carried.T],
            [carried @ of_gamma, bread @ noise @ bread + carried @ of_gamma @ carried.T],
        ]
    )
    # 4) What each row moves: γ, then θ through γ (also by λ as a regressor) and by its residual.
    slope[-1] -= (weight * residuals * decline) @ problem.z
    columns = problem.selection.columns
    pull = problem.weight * scores(columns @ gamma, problem.selected)
    by_selection = (columns * pull[:, None]) @ of_gamma
    by_outcome = by_selection @ (bread @ slope).T
    by_outcome[problem.selected] += (regressors * (weight * residuals)[:, None]) @ bread
    influence = np.column_stack([by_selection, by_outcome])
    condition = condition_number(problem, mills)
    return TwoStep(np.append(gamma, theta), sigma, rho, covariance, influence, condition)


def _least_squares(
    columns: FloatArray, y: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and residuals."""
    root = np.sqrt(weight)
    theta = np.linalg.lstsq(columns * root[:, None], y * root, rcond=None)[0]
    return theta, y - columns @ theta


def independent_log_likelihood(problem: SelectionProblem) -> float:
    """Return the maximum of the log-likelihood if ρ is zero: a probit and least squares."""
    weight = problem.seen
    _, residuals = _least_squares(problem.outcome.columns, problem.y, weight)
    variance = (weight @ residuals**2) / weight.sum()
    with np.errstate(divide="ignore"):  # an outcome without error has an infinite likelihood
        outcome = -0.5 * weight.sum() * (np.log(2 * np.pi * variance) + 1)
    return float(problem.probit.log_likelihood + outcome)


def condition_number(problem: SelectionProblem, mills: FloatArray) -> float:
    """Return the condition number of the outcome's columns and the Mills ratio, of unit length.

    The columns, with the constant, are orthonormal: what they share among themselves, such as age
    and its square, does not count, only what the ratio shares with them. If R is the cosine between
    the ratio and their span, this is √((1 + R)/(1 − R)).
    """
    # Eigenvalues of the cosines are 1 ± R and ones: √((1 + R)/(1 − R)) = (1 + R)/√(1 − R²).
    columns = problem.outcome.columns / np.sqrt(len(mills))
    ratio = mills / np.linalg.norm(mills)
    outside = float(np.linalg.norm(ratio - columns @ (columns.T @ ratio)))
    inside = float(np.sqrt(max(0.0, 1.0 - outside**2)))
    return (1 + inside) / outside if outside > 0 else np.inf


def sandwich(influence: FloatArray, groups: IntArray | None = None) -> FloatArray:
    """Return the covariance of parameters from how much each row, or group of rows, moves them."""
    if groups is not None:
        sums = np.zeros((int(groups.max()) + 1, influence.shape[1]))
        np.add.at(sums, groups, influence)
        influence = sums
    n = len(influence)
    return influence.T @ influence * (n / (n - 1))


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

    def __init__(self, problem: SelectionProblem) -> None:
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

        def downhill(params: FloatArray) -> tuple[FloatArray, FloatArray]:
            gradient, hessian = self.derivatives(params)
            return -gradient, -hessian

        def from_correlation(rho: float) -> NewtonSolution:
            return minimise(
                lambda params: -self.value(params),
                downhill,
                start(rho),
                limit=lambda move: float(np.abs(move[n_coefficients:]).max()),  # at most by one
                outside=lambda params: bool(abs(params[-1]) >= BOUNDARY),
            )

        # The likelihood may have several maxima in ρ: where the first try fails, the best of many.
        best = from_correlation(first)
        if not best.certificate.converged:
            tries = [best, *map(from_correlation, _STARTS)]
            best = max(tries, key=lambda one: (round(-one.value, 6), one.certificate.converged))
        params, value, certificate = best
        covariance = np.linalg.pinv(-self.derivatives(params)[1], hermitian=True)
        influence = self.scores(params) @ covariance
        at_boundary = bool(abs(params[-1]) >= BOUNDARY)
        return Maximum(params, covariance, influence, -value, certificate, at_boundary)

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


def maximise_linear(problem: SelectionProblem, start: TwoStep) -> Maximum:
    """Return the maximum likelihood estimates, from the two-step estimates."""
    # In units of the two-step σ, so that all parameters are of the size of one; log σ then moves by
    # its logarithm, and the density of y by as much for each row.
    n_selection, n_outcome = problem.sizes
    unit = np.ones(n_selection + n_outcome + 2)  # of each parameter, where σ is about one
    unit[n_selection:-2] = start.sigma
    likelihood = LinearLikelihood(replace(problem, y=problem.y / start.sigma))
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


class LinearLikelihood(SelectionLikelihood):
    """The log-likelihood of a problem, as a function of γ, β, log σ and atanh ρ."""

    def rows(self, a: FloatArray, fit: FloatArray, further: FloatArray) -> FloatArray:
        """Return what each selected row adds."""
        # Given the residual e in units of σ, the selection index is normal with mean a + ρ e and
        # variance 1 − ρ². With ρ = tanh τ, (a + ρ e) / (1 − ρ²)^{1/2} is a cosh τ + e sinh τ.
        log_sigma, tau = further
        e = (self.problem.y - fit) * np.exp(-log_sigma)
        result: FloatArray = log_ndtr(a * np.cosh(tau) + e * np.sinh(tau))
        result += -0.5 * e**2 - log_sigma - _LOG_2PI / 2
        return result

    def slopes(
        self, a: FloatArray, fit: FloatArray, further: FloatArray
    ) -> tuple[list[FloatArray], list[list[FloatArray]]]:
        """Return its derivatives."""
        log_sigma, tau = further
        per_sigma = np.exp(-log_sigma)
        # By the chain rule, from (2): inner = a cosh τ + e sinh τ, with the slope mills of log Φ.
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


def outcome_probit(problem: SelectionProblem) -> Probit:
    """Return the outcome equation by itself, on the selected rows: what ρ = 0 would make of it."""
    return fit_probit(problem.outcome.columns, problem.y > 0, problem.seen)


def maximise_probit(problem: SelectionProblem, outcome: Probit) -> Maximum:
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
        # An outcome of zero is one of −xβ − ε, whose correlation with ν is −ρ.
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
