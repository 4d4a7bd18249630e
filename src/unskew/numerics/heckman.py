"""Heckman's selection model: a linear outcome that is seen only where a probit says so.

The outcome is y = xᵀβ + ε and is seen where zᵀγ + ν > 0; (ε, ν) are normal with standard deviations
σ and 1 and correlation ρ. Here is the two-step estimator of Heckman (Econometrica 47, 1979), with
the covariance of Greene (International Economic Review 22, 1981); maximum likelihood is in
``heckman_likelihood``. Both work in orthonormal columns, so that the columns' scale has no
influence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import qr, solve_triangular

from unskew.numerics.probit import Probit, fit_probit, inverse_mills, scores
from unskew.numerics.typing import BoolArray, FloatArray, IntArray

_DEPENDENT = 1e-10
"""The share of a column's length outside of earlier columns below which it depends on them."""


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
    def of(cls, matrix: FloatArray) -> Basis:
        """Return the basis of a matrix.

        Examples
        --------
        >>> ones = np.ones(4)
        >>> basis = Basis.of(np.column_stack([ones, 3 * ones, [0, 2, 0, 2]]))
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
class Problem:
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


@dataclass(frozen=True)
class SecondStep:
    """Least squares of the outcome on its columns and the inverse Mills ratio.

    Attributes
    ----------
    params : ndarray
        β, and the coefficient ρσ of the ratio.
    sigma, rho : float
    regressors : ndarray of shape (n_selected, n_params)
        The columns, and the ratio.
    decline : ndarray of shape (n_selected,)
        Minus the derivative of the ratio by the index.
    residuals : ndarray of shape (n_selected,)
    bread : ndarray
        The inverse of the regressors' moments.
    condition : float
        See :func:`condition_number`.
    """

    params: FloatArray
    sigma: float
    rho: float
    regressors: FloatArray
    decline: FloatArray
    residuals: FloatArray
    bread: FloatArray
    condition: float

    def influence(self, problem: Problem) -> FloatArray:
        """Return how much each selected row moves ``params``, if the index is known."""
        return (self.regressors * (problem.seen * self.residuals)[:, None]) @ self.bread


def second_step(problem: Problem, index: FloatArray) -> SecondStep:
    """Regress the outcome, given the index whose Φ is the probability of being selected.

    Parameters
    ----------
    problem : Problem
    index : ndarray of shape (n_selected,)
        Of the selected rows: zᵀγ.
    """
    mills = inverse_mills(index)
    decline = mills * (mills + index)  # δ = −dλ/d(zγ)
    weight = problem.seen
    regressors = np.column_stack([problem.outcome.columns, mills])
    root = np.sqrt(weight)
    theta = np.linalg.lstsq(regressors * root[:, None], problem.y * root, rcond=None)[0]
    residuals = problem.y - regressors @ theta
    variance = (weight @ residuals**2 + theta[-1] ** 2 * (weight @ decline)) / weight.sum()
    sigma = float(np.sqrt(variance))
    rho = float(theta[-1] / sigma) if sigma > 1e-12 * np.abs(problem.y).max() else 0.0
    bread = np.linalg.pinv((regressors.T * weight) @ regressors)
    condition = condition_number(problem, mills)
    return SecondStep(theta, sigma, rho, regressors, decline, residuals, bread, condition)


def two_step(problem: Problem) -> TwoStep:
    """Return Heckman's estimates: a probit, then least squares on x and the inverse Mills ratio."""
    gamma = problem.probit.coef
    second = second_step(problem, problem.z @ gamma)
    weight, bread, decline = problem.seen, second.bread, second.decline
    regressors, slope_of_mills = second.regressors, second.params[-1]
    slope = (regressors.T * (weight * slope_of_mills * decline)) @ problem.z  # by γ, through λ in y
    of_gamma = np.linalg.inv(problem.probit.information)
    variance = second.sigma**2 - slope_of_mills**2 * decline  # σ² (1 − ρ²δ)
    noise = (regressors.T * (weight * variance)) @ regressors
    carried = bread @ slope
    covariance = np.block(
        [
            [of_gamma, of_gamma @ carried.T],
            [carried @ of_gamma, bread @ noise @ bread + carried @ of_gamma @ carried.T],
        ]
    )
    slope[-1] -= (weight * second.residuals * decline) @ problem.z  # and through λ as a regressor
    by_selection = (
        problem.selection.columns
        * (problem.weight * scores(problem.selection.columns @ gamma, problem.selected))[:, None]
    ) @ of_gamma
    by_outcome = by_selection @ (bread @ slope).T
    by_outcome[problem.selected] += second.influence(problem)
    return TwoStep(
        np.append(gamma, second.params),
        second.sigma,
        second.rho,
        covariance,
        np.column_stack([by_selection, by_outcome]),
        second.condition,
    )


def independent_log_likelihood(problem: Problem) -> float:
    """Return the maximum of the log-likelihood if ρ is zero: a probit and least squares."""
    weight = problem.seen
    root = np.sqrt(weight)
    columns = problem.outcome.columns
    beta = np.linalg.lstsq(columns * root[:, None], problem.y * root, rcond=None)[0]
    variance = (weight @ (problem.y - columns @ beta) ** 2) / weight.sum()
    with np.errstate(divide="ignore"):  # an outcome without error has an infinite likelihood
        outcome = -0.5 * weight.sum() * (np.log(2 * np.pi * variance) + 1)
    return float(problem.probit.log_likelihood + outcome)


def condition_number(problem: Problem, mills: FloatArray) -> float:
    """Return the condition number of the outcome's columns and the Mills ratio, of unit length.

    The columns, with the constant, are orthonormal: what they share among themselves, such as age
    and its square, does not count, only what the ratio shares with them. If R is the cosine between
    the ratio and their span, this is √((1 + R)/(1 − R)).
    """
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
