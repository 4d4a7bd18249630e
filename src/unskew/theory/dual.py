r"""The dual certificate: how far other weights would move a fitted kernel model.

A kernel model :math:`\hat h = \sum_i a_i K(x_i, \cdot)` that minimises :math:`\sum_i \hat W_i c(h,
z_i) + \lambda \lVert h \rVert_K^2` has :math:`2 \lambda a_i = -\hat W_i c'_i`. So the gradient at ĥ
of the same objective with weights W is :math:`-2\lambda g` with

.. math:: g = \sum_i a_i \Bigl(\frac{W_i}{\hat W_i} - 1\Bigr) K(x_i, \cdot),

and since that objective is strongly convex with modulus 2λ, its minimiser :math:`h_W` is no further
away than :math:`\lVert h_W - \hat h \rVert_K \le \lVert g \rVert_K`. Neither λ nor the loss's
Lipschitz constant appears: the model's own coefficients show how well determined it is.

For the squared loss the objective is quadratic, with half the Hessian :math:`A_W = \alpha + \sum_i
W_i K(x_i, \cdot) \otimes K(x_i, \cdot)` in the learner's units, and :math:`h_W - \hat h = \alpha
A_W^{-1} g` exactly. For every :math:`A \preceq A_W`,

.. math:: \alpha \lVert h_W - \hat h \rVert_K^2 + \sum_i W_i (h_W - \hat h)^2(x_i) \le
          \alpha^2 \langle g, A^{-1} g \rangle,

which is never worse in the first norm, :math:`\lVert g \rVert_{A^{-1}} \le \alpha^{-1/2} \lVert g
\rVert_K`, and bounds the mean squared change of the predictions as well.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular

from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_weights
from unskew.theory.bound import Bound
from unskew.theory.checks import check_positive


def dual_certificate(
    *,
    coefficients: ArrayLike,
    kernel_matrix: ArrayLike,
    weights: ArrayLike,
    other_weights: ArrayLike,
    alpha: float | None = None,
) -> Bound:
    r"""Bound how far a kernel model would move if it were trained with other weights.

    Parameters
    ----------
    coefficients : array-like of shape (m,)
        a, with :math:`\hat h = \sum_i a_i K(x_i, \cdot)`: ``dual_coef_`` of a learner.
    kernel_matrix : array-like of shape (m, m)
    weights, other_weights : array-like of shape (m,)
        Those it was trained with, all positive, and those to compare with, in the same units.
    alpha : float, optional
        The penalty of a kernel ridge regression, in the units of the weights, if that is what was
        trained: its curvature sharpens the bound. Without it the bound holds for any convex loss.

    Returns
    -------
    Bound
        On :math:`\lVert h_W - \hat h \rVert_K`; no prediction moves further than that times
        :math:`\kappa^{1/2}`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from unskew.theory import dual_certificate
    >>> X, y = np.array([[0.0], [1.0]]), np.array([1.0, -1.0])
    >>> model = KernelRidge(alpha=1.0, kernel="rbf", gamma=1.0).fit(X, y, sample_weight=[1.0, 1.0])
    >>> K = rbf_kernel(X, gamma=1.0)
    >>> bound = dual_certificate(coefficients=model.dual_coef_, kernel_matrix=K,
    ...                          weights=[1.0, 1.0], other_weights=[1.0, 2.0])
    >>> round(bound, 3)
    0.613
    """
    a = np.asarray(coefficients, dtype=np.float64).reshape(-1)
    K = np.asarray(kernel_matrix, dtype=np.float64)
    if K.shape != (len(a), len(a)):
        raise InputError(
            f"kernel_matrix has shape {K.shape} for {len(a)} coefficients; give one row and column "
            "for each."
        )
    given = check_weights(weights, name="weights", n_rows=len(a))
    other = check_weights(other_weights, name="other_weights", n_rows=len(a))
    if (given == 0).any():
        raise ParameterError(
            "weights must be positive: a row of weight zero has no coefficient. "
            "Leave such rows out of both."
        )
    moved = a * (other / given - 1)
    image = K @ moved
    norm = math.sqrt(max(float(moved @ image), 0.0))
    terms = {"norm of the gradient over 2 lambda": norm}
    value = norm
    if alpha is not None:
        alpha = check_positive(alpha, name="alpha")
        curvature = RidgeCurvature(K, other, alpha)
        gram = curvature.gram(moved[:, None])
        terms["with the curvature of the squared loss"] = math.sqrt(
            alpha * max(float(gram[0, 0]), 0.0)
        )
        value = min(norm, terms["with the curvature of the squared loss"])
    return Bound(
        value=value,
        terms=terms,
        assumptions=(
            "a convex loss, and a learner that has minimised sum_i W_i loss_i + lambda |h|_K^2 "
            "without an unpenalised offset",
            "the same lambda with both weightings",
        ),
        reference="strong convexity of the objective",
        statement="The distance in the kernel's norm from what the other weights would give",
    )


class RidgeCurvature:
    r"""The curvature of a weighted kernel ridge regression, factored once.

    Holds the Cholesky factor L of :math:`S = \alpha + D^{1/2} K D^{1/2}` for weights D. With
    :math:`b` the coefficients of a function, :math:`\langle b, A^{-1} b \rangle = b^\top
    D^{-1/2} (I - \alpha S^{-1}) D^{-1/2} b`.

    Zero weights D are allowed only where the coefficients are zero.
    """

    def __init__(self, K: FloatArray, weights: FloatArray, alpha: float) -> None:
        self.alpha = alpha
        self.root = np.sqrt(weights)
        S = K * self.root
        S *= self.root[:, None]
        S.flat[:: len(S) + 1] += alpha
        # S is its own transpose, which LAPACK can overwrite without a copy.
        self.factor = cholesky(S.T, lower=True, overwrite_a=True, check_finite=False)

    def scaled(self, coefficients: FloatArray) -> FloatArray:
        """Return D^{-1/2} b, with zero where D is zero."""
        root = self.root[:, None]
        return np.divide(coefficients, root, out=np.zeros_like(coefficients), where=root > 0)

    def gram(self, coefficients: FloatArray) -> FloatArray:
        """Return the inner products in A⁻¹ of functions, given by columns of coefficients."""
        scaled = self.scaled(coefficients)
        solved = self._solve(scaled)
        return scaled.T @ scaled - self.alpha * (solved.T @ solved)

    def moves(self, coefficients: FloatArray, weights: FloatArray, steps: int = 4) -> FloatArray:
        r"""Return how refits with other weights move the predictions at the sample.

        Column j of ``coefficients`` holds :math:`a\,(W/\hat W - 1)` for the weights of column j.
        Each refit is a linear system, solved by conjugate gradients with this factor as
        preconditioner.
        """
        # With R = W / D and x = D^{1/2} v, the refit's change (α + W K) x = α t a turns into
        # (α R^{-1} + D^{1/2} K D^{1/2}) v = α D^{-1/2} R^{-1} t a. Preconditioned from both
        # sides it is I - α L^{-1} (1 - R^{-1}) L^{-T}.
        inverse = self.root[:, None] ** 2 / weights
        right = self._solve(self.alpha * self.scaled(coefficients) * inverse)
        lost = self.alpha * (1 - inverse)

        def apply(y: FloatArray) -> FloatArray:
            return y - self._solve(lost * self._solve(y, transposed=True))

        y = np.zeros_like(right)
        residual, direction = right.copy(), right.copy()
        old = np.einsum("ij,ij->j", residual, residual)
        for _ in range(steps):
            image = apply(direction)
            step = old / np.maximum(np.einsum("ij,ij->j", direction, image), 1e-300)
            y += step * direction
            residual -= step * image
            new = np.einsum("ij,ij->j", residual, residual)
            direction = residual + new / np.maximum(old, 1e-300) * direction
            old = new
        # Predictions K x = D^{-1/2} (S - α) v, and S v = L y.
        v = self._solve(y, transposed=True)
        return (self.factor @ y - self.alpha * v) / self.root[:, None]

    def _solve(self, right: FloatArray, *, transposed: bool = False) -> FloatArray:
        kind: Literal["N", "T"] = "T" if transposed else "N"
        solved = solve_triangular(self.factor, right, lower=True, trans=kind, check_finite=False)
        return np.asarray(solved, dtype=np.float64)
