"""Points that are farther from all of a set than the set's points are from one another."""

from __future__ import annotations

import numpy as np
from scipy import stats

from unskew.numerics.typing import BoolArray, FloatArray

__all__ = ["FAR_FACTOR", "OUTERMOST", "far_rows"]

OUTERMOST = 0.005
"""The share of the set's own points that are taken to be outliers of it."""
FAR_FACTOR = 1.5
"""How many times farther than those a point must be to be out of reach."""


def far_rows(points: FloatArray, others: FloatArray, *, chance: float = 0.01) -> BoolArray:
    """Return which of the others are out of reach of the points.

    A point's distance is that to the nearest other point of the set, repeated ones counting once.
    If both sets were draws from one distribution, the others' distances would be like the points'
    own, and the share of them beyond the k-th largest of m would be no more than Beta(k, m + 1 - k)
    by chance; ``FAR_FACTOR`` times that distance it is less still. Unless more lie there than
    ``chance`` allows, none is called far.

    Parameters
    ----------
    points : ndarray of shape (m, d)
    others : ndarray of shape (r, d)
    chance : float

    Returns
    -------
    ndarray of bool of shape (r,)

    Examples
    --------
    >>> line = np.linspace(0, 1, 100)[:, None]
    >>> far_rows(line, np.array([[0.5], [7.0], [9.0]])).tolist()
    [False, True, True]
    """
    from sklearn.neighbors import NearestNeighbors

    points = np.unique(points, axis=0)
    none = np.zeros(len(others), dtype=bool)
    if len(points) < 2:
        return none
    neighbours = NearestNeighbors(n_neighbors=2).fit(points)
    own = np.sort(neighbours.kneighbors(points)[0][:, 1])
    k = max(1, int(OUTERMOST * len(points)))
    distances = neighbours.kneighbors(others, n_neighbors=1)[0][:, 0]
    far: BoolArray = distances > FAR_FACTOR * own[-k]
    allowed = stats.beta.ppf(1 - chance, k, len(points) + 1 - k)
    return far if far.mean() > allowed else none
