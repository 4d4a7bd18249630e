r"""Lengths of gradients in the inverse of a curvature, and the ellipsoids of models within them.

Other weights change the gradient of a model's objective by :math:`g = \sum_i (W_i / \hat W_i - 1)
\,p_i \varphi_i`. In the metric of the curvature H its length bounds how far the model moves
(:mod:`unskew.theory.moves`, whose equations are referred to here). With features as numbers H is a
matrix of their pairs (:class:`RootMetric`); with a kernel only inner products of features are known
(:class:`KernelMetric`). Both answer the same questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh, solve_triangular

from unskew.numerics.joint_region import RelativeErrors, worst_norm, worst_norm_of
from unskew.numerics.typing import FloatArray

SMALL = 64
"""Columns up to which NumPy's functions are faster: SciPy's take longer to begin."""


@dataclass(frozen=True)
class Ellipsoid:
    r"""Scores move by at most :math:`\lVert A x \rVert + |b^\top x| + r \lVert R x \rVert`.

    Attributes
    ----------
    along : ndarray of shape (k, d)
        A: the score moves by e times this, for one e of length one at most.
    centre : ndarray of shape (d,) or None
        b
    root : ndarray of shape (d, d)
        R
    rest : float
        r
    """

    along: FloatArray
    centre: FloatArray | None
    root: FloatArray
    rest: float

    def parts(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A x, and the rest of the reach, of each row."""
        rest = np.zeros(len(features))
        if self.rest:
            rest += self.rest * np.linalg.norm(features @ self.root.T, axis=1)
        if self.centre is not None:
            rest += np.abs(features @ self.centre)
        return features @ self.along.T, rest

    def without_rest(self, squares: FloatArray) -> Ellipsoid:
        r"""Return an ellipsoid that contains this one with its rest.

        For any :math:`\varepsilon > 0`, :math:`(\lVert A x \rVert + r \lVert R x \rVert)^2 \le
        (1 + \varepsilon) \lVert A x \rVert^2 + (1 + 1/\varepsilon)\, r^2 \lVert R x \rVert^2`;
        this :math:`\varepsilon` makes the mean over rows with these mean ``squares`` least.
        """
        first = math.sqrt(float(np.sum((self.along @ squares) * self.along)))
        second = self.rest * math.sqrt(float(np.sum((self.root @ squares) * self.root)))
        # The best ε is the ratio of the two roots of the means, second / first.
        if not second:
            return self
        if not first:
            return replace(self, along=self.rest * self.root, rest=0.0)
        parts = (
            math.sqrt(1 + second / first) * self.along,
            math.sqrt(1 + first / second) * self.rest * self.root,
        )
        return replace(self, along=np.asarray(np.linalg.qr(np.vstack(parts), mode="r")), rest=0.0)

    def reach(self, features: FloatArray) -> FloatArray:
        """Return by how much each row's score can move."""
        z, rest = self.parts(features)
        return np.asarray(np.linalg.norm(z, axis=1) + rest)


class RootMetric:
    r"""Lengths in :math:`H^{-1}` of gradients, for features that are given as numbers.

    Parameters
    ----------
    vectors : ndarray of shape (m, d)
        What each row adds to the gradient.
    root : ndarray of shape (d, d)
        The inverse root of H.
    left : ndarray of shape (d,)
        The gradient at the fitted model and its own weights.
    squares : ndarray of shape (d, d)
        The weighted mean of the outer products of the features.
    """

    def __init__(
        self, vectors: FloatArray, root: FloatArray, left: FloatArray, squares: FloatArray
    ) -> None:
        self.vectors, self.root, self.squares = vectors, root, squares
        self.left = root @ left
        self.gap = float(np.linalg.norm(self.left))
        # The weighted sample's mean square of φᵀΔ is at most its largest eigenvalue times ‖Δ‖²_H.
        self.spread = root @ squares @ root.T
        self.widest = math.sqrt(top(self.spread))
        self.norm = float(np.linalg.norm(root, 2))

    def sums(self, columns: Any) -> FloatArray:
        """Return the sums of the rows' vectors, one for each column of factors."""
        return np.asarray(columns.T @ self.vectors) @ self.root.T

    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of these sums."""
        sums = self.sums(columns)
        return sums @ sums.T

    def worst(self, errors: RelativeErrors, columns: Any) -> tuple[float, int]:
        """Bound the norm of the sums times errors, and name the cell with the largest part."""
        return worst_norm_of(errors, self.sums(columns))

    def ball(self, size: float) -> Ellipsoid:
        """Return the ball (2) of this radius, by how far it moves scores."""
        return Ellipsoid(size * self.root, None, self.root, 0.0)


class KernelMetric:
    r"""The same for the rows of a factor of a kernel matrix, by (5).

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        K
    pulls : ndarray of shape (m,)
        What each row adds to the gradient, in units of its features.
    penalty : float
        ρ
    constant : float, default=0.0
        Added to K; without curvature alone.
    kappa : float
        The largest K(x, x) with it.
    curvature : ndarray of shape (m,), optional
        D, all positive. Without it H = R.
    shares : ndarray of shape (m,)
        Of the weights.
    gap : float
        The length of the gradient at the fitted model.
    """

    def __init__(
        self,
        matrix: FloatArray,
        pulls: FloatArray,
        penalty: float,
        *,
        constant: float = 0.0,
        kappa: float = np.inf,
        curvature: FloatArray | None = None,
        shares: FloatArray | None = None,
        gap: float = 0.0,
    ) -> None:
        self.matrix, self.constant, self.pulls = matrix, constant, pulls
        self.penalty, self.gap = penalty, gap
        self.norm = 1 / math.sqrt(penalty)
        self.widest = math.sqrt(kappa) * self.norm
        self.curvature = curvature
        if curvature is None:
            return
        self.scale = np.sqrt(curvature)[:, None]
        S = matrix * self.scale.T
        S *= self.scale
        S.flat[:: len(S) + 1] += penalty
        # S is its own transpose, which LAPACK can overwrite without a copy.
        self.factor = cholesky(S.T, lower=True, overwrite_a=True, check_finite=False)
        if shares is not None:
            # Σ D_i (φ_iᵀΔ)² ≤ ‖Δ‖²_H, and each share is at most this multiple of D.
            self.widest = min(self.widest, math.sqrt(float((shares / curvature).max())))

    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of the sums of the rows' vectors, one for each column."""
        dense = columns.toarray() if hasattr(columns, "toarray") else columns
        sums = self.pulls[:, None] * dense
        if self.curvature is None:
            total = sums.sum(axis=0)
            found = sums.T @ (self.matrix @ sums) + self.constant * np.outer(total, total)
            return np.asarray(found / self.penalty)
        sums /= self.scale
        solved = self._solve(sums)
        return np.asarray(sums.T @ sums - self.penalty * (solved.T @ solved))

    def worst(self, errors: RelativeErrors, columns: Any) -> tuple[float, int]:
        """Bound the norm of the sums times errors, and name the cell with the largest part."""
        return worst_norm(errors, self.gram(columns))

    def ball(self, size: float) -> Ellipsoid:
        """Return the ball (2) of this radius, for rows whose feature is their largest length."""
        return Ellipsoid(np.array([[size * self.norm]]), None, np.eye(1), 0.0)

    def refit_changes(self, changes: FloatArray, ratios: FloatArray, steps: int = 4) -> FloatArray:
        r"""Return how the scores move if the weights change, for a quadratic loss.

        Parameters
        ----------
        changes : ndarray of shape (m, n)
            W/Ŵ − 1, for weights in each column.
        ratios : ndarray of shape (m, n)
            Of the curvature with these weights to that of the metric.
        steps : int
            Of conjugate gradients; for equal curvature, the first is exact.
        """
        # With R the ratios and x = D^{1/2} v, the refit's (ρ + R D K) x = −p, p the change of the
        # pulls, turns into (ρ R⁻¹ + D^{1/2} K D^{1/2}) v = −D^{-1/2} R⁻¹ p. Preconditioned from
        # both sides by the factor L, its matrix is 1 − ρ L⁻¹ (1 − R⁻¹) L⁻ᵀ.
        right = self._solve(-self.pulls[:, None] * changes / (self.scale * ratios))
        lost = self.penalty * (1 - 1 / ratios)
        y = conjugate_gradients(
            lambda y: y - self._solve(lost * self._solve(y, "T")), right, steps=steps
        )
        # The scores K x are D^{-1/2} (S − ρ) v, and S v = L y.
        return np.asarray(self.factor @ y - self.penalty * self._solve(y, "T")) / self.scale

    def _solve(self, right: FloatArray, trans: Literal["N", "T"] = "N") -> FloatArray:
        solved = solve_triangular(self.factor, right, lower=True, trans=trans, check_finite=False)
        return np.asarray(solved, dtype=np.float64)


def conjugate_gradients(
    image: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    inverse: FloatArray | None = None,
    *,
    steps: int = 4,
    enough: float = 0.0,
) -> FloatArray:
    """Solve a system for each column, all at once and roughly.

    Parameters
    ----------
    image : callable
        Returns each column's matrix times its direction.
    right : ndarray of shape (d, n)
    inverse : ndarray of shape (d, d), optional
        The preconditioner.
    steps : int
    enough : float
        The share of the right-hand side that may be left.
    """
    # All columns take their steps together, each with its own length and direction.
    solved, residual = np.zeros_like(right), right.copy()
    direction = better = residual if inverse is None else inverse @ residual
    old = np.einsum("ij,ij->j", residual, better)
    for _ in range(steps):
        mapped = image(direction)
        step = old / np.maximum(np.einsum("ij,ij->j", direction, mapped), 1e-300)
        solved += step * direction
        residual = residual - step * mapped
        if np.linalg.norm(residual) <= enough * np.linalg.norm(right):
            break
        better = residual if inverse is None else inverse @ residual
        new = np.einsum("ij,ij->j", residual, better)
        direction = better + new / np.maximum(old, 1e-300) * direction
        old = new
    return solved


def gram(features: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum of the outer products of rows, for weights that are not negative."""
    scaled = features * np.sqrt(weights)[:, None]
    return np.asarray(scaled.T @ scaled)


def inverse_root(matrix: FloatArray) -> FloatArray | None:
    """Return R with R A Rᵀ = 1, or None where A is not positive definite."""
    try:
        if len(matrix) <= SMALL:
            root: FloatArray = np.linalg.inv(np.linalg.cholesky(matrix))
        else:
            factor = cholesky(matrix, lower=True)
            root = np.asarray(solve_triangular(factor, np.eye(len(factor)), lower=True))
    except LinAlgError:
        return None
    return root if np.isfinite(root).all() else None


def top(matrix: FloatArray) -> float:
    """Return the largest eigenvalue, not below zero.

    Examples
    --------
    >>> round(top(np.diag([2.0, 3.0])), 12)
    3.0
    """
    last = len(matrix) - 1
    if last < SMALL:
        return max(float(np.linalg.eigvalsh(matrix)[last]), 0.0)
    return max(float(eigvalsh(matrix, subset_by_index=[last, last])[0]), 0.0)
