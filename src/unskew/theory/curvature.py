"""Matrices of the curvature of a linear model's objective."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh, solve_triangular

from unskew.numerics.typing import FloatArray

SMALL = 64
"""Columns up to which NumPy's functions are faster: SciPy's take longer to begin."""


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
