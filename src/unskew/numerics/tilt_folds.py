r"""Tilts :math:`e^{\lambda^\top \varphi}` of a sample to targets, each without one of its folds.

With shares p, a target t and a ridge r, a tilt minimises

.. math:: \log \sum_i p_i e^{\lambda^\top \varphi_i} - \lambda^\top t + r \|\lambda\|^2 / 2,

whose gradient is the mean under the tilted shares less t, and whose second derivative is the
covariance under them, each plus the ridge's. Folds differ little from one another: second
derivatives at the tilt of all rows, less what each fold adds to them, serve all steps, and the
steps of all folds are two matrix products.
"""

from __future__ import annotations

import numpy as np

from unskew.numerics.typing import FloatArray

TOLERANCE = 1e-7
"""The largest gradient, in the features' unit, and the order of errors of a loss of the tilt."""
MAX_STEPS = 12
"""Of either kind: more mean that the folds differ too much, and each is to be solved by itself."""


def tilts_without_folds(
    features: FloatArray, shares: FloatArray, targets: FloatArray, ridge: float, start: FloatArray
) -> FloatArray | None:
    """Return the tilt without each fold, or None where this method does not get there.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Rows belong to the folds 0, 1, …, k − 1, 0, 1, … in turn.
    shares : ndarray of shape (n_rows,)
        Positive; they sum to one.
    targets : ndarray of shape (k, n_features)
    ridge : float
    start : ndarray of shape (n_features,)
        Near the tilt of all rows to the mean target.

    Returns
    -------
    ndarray of shape (k, n_features), or None

    Examples
    --------
    >>> line = np.linspace(-1, 1, 10)[:, None]
    >>> found = tilts_without_folds(line, np.full(10, 0.1), np.full((2, 1), 0.3), 0.0, np.zeros(1))
    >>> kept = line[1::2, 0]  # without the first fold
    >>> print(np.average(kept, weights=np.exp(found[0] * kept)).round(6))
    0.3
    """
    n_folds, width = targets.shape
    n_rows = -(-len(features) // n_folds) * n_folds  # rows that fill the last turn count nothing
    padded, mine = np.zeros((n_rows, width)), np.zeros((1, n_rows))
    padded[: len(features)], mine[0, : len(features)] = features, shares
    across = np.ascontiguousarray(padded.T)
    centre = _all_rows(across, padded, mine, targets.mean(axis=0, keepdims=True), ridge, start)
    if centre is None:
        return None
    tilted, _ = _tilted(across, padded, mine, centre)
    try:
        inverse = _inverse_without_folds(padded, tilted[0], n_folds, ridge)
    except np.linalg.LinAlgError:
        return None
    without = mine * (np.arange(n_rows) % n_folds != np.arange(n_folds)[:, None])
    tilts = np.repeat(centre, n_folds, axis=0)
    for _ in range(MAX_STEPS):
        _, means = _tilted(across, padded, without, tilts)
        gradient = means - targets + ridge * tilts
        largest = np.abs(gradient).max()
        if largest <= TOLERANCE:
            return tilts
        if not np.isfinite(largest):
            break
        tilts = tilts - (inverse @ gradient[:, :, None])[:, :, 0]
    return None


def _tilted(
    across: FloatArray, features: FloatArray, shares: FloatArray, tilts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the tilted shares, a row for each tilt that sums to one, and the features' means.

    Scores that overflow give means that are not finite, and no tilt.
    """
    tilted = tilts @ across
    with np.errstate(over="ignore", invalid="ignore"):
        np.exp(tilted, out=tilted)
        tilted *= shares
        tilted /= tilted.sum(axis=1, keepdims=True)
        return tilted, tilted @ features


def _all_rows(
    across: FloatArray,
    features: FloatArray,
    shares: FloatArray,
    target: FloatArray,
    ridge: float,
    start: FloatArray,
) -> FloatArray | None:
    """Return the tilt of all rows by Newton's method: it need not be exact."""
    tilt = start[None, :]
    for _ in range(MAX_STEPS):
        tilted, mean = _tilted(across, features, shares, tilt)
        gradient = mean - target + ridge * tilt
        largest = np.abs(gradient).max()
        if largest <= np.sqrt(TOLERANCE):
            return tilt
        if not np.isfinite(largest):
            break
        second = (across * tilted) @ features - mean.T @ mean
        second.flat[:: len(second) + 1] += ridge
        try:
            tilt = tilt - np.linalg.solve(second, gradient[0])
        except np.linalg.LinAlgError:
            break
    return None


def _inverse_without_folds(
    features: FloatArray, tilted: FloatArray, n_folds: int, ridge: float
) -> FloatArray:
    """Return the inverse of each fold's second derivatives, at one tilt."""
    by_fold = features.reshape(-1, n_folds, features.shape[1]).transpose(1, 0, 2)
    masses = tilted.reshape(-1, n_folds).T
    counted = by_fold * masses[:, :, None]
    products, sums = counted.transpose(0, 2, 1) @ by_fold, counted.sum(axis=1)
    mass = 1.0 - masses.sum(axis=1)  # of the other folds
    products = (products.sum(axis=0) - products) / mass[:, None, None]
    means = (sums.sum(axis=0) - sums) / mass[:, None]
    second = products - means[:, :, None] * means[:, None, :]
    return np.linalg.inv(second + ridge * np.eye(second.shape[-1]))
