"""Points that are farther from all of a set than the set's points are from one another."""

from __future__ import annotations

import numpy as np
from scipy import stats

from unskew.numerics.typing import BoolArray, FloatArray

__all__ = ["FAR_FACTOR", "OUTERMOST", "far_rows"]

OUTERMOST = 0.005
"""The share of the set's own points that may be outliers of it: the scale of "far" is the distance
of the point at this upper quantile, which a few isolated points do not change. Not tuned."""

FAR_FACTOR = 1.5
"""How many times farther than that a point must be to lie outside the set's support. More than 1,
because the quantile is an estimate. Not tuned."""


def far_rows(
    points: FloatArray,
    others: FloatArray,
    mass: FloatArray,
    *,
    judge_on: int = 5000,
    chance: float = 0.01,
    seed: int = 0,
) -> BoolArray:
    """Return which of the others lie outside the support of the points.

    A point's distance is that to the nearest other point of the set, repeated ones counting once.
    If both sets were draws from one distribution, the others' distances would be like the points'
    own, and the share of them beyond the k-th largest of m would be a draw of Beta(k, m + 1 - k);
    ``FAR_FACTOR`` times that distance it is less still. Unless more mass lies there than ``chance``
    allows, given the effective number of others, no point is called far.

    Parameters
    ----------
    points : ndarray of shape (m, d)
    others : ndarray of shape (r, d)
    mass : ndarray of shape (r,)
        Of the others; it sums to one.
    judge_on : int
        How many of the points, drawn at random, determine the distance between points. Others that
        are far from these are compared with all of them.
    chance : float
        The probability of calling any point far if both sets have one distribution.
    seed : int
        Of the draw.

    Returns
    -------
    ndarray of bool of shape (r,)

    Examples
    --------
    >>> line = np.linspace(0, 1, 100)[:, None]
    >>> far_rows(line, np.array([[0.5], [7.0], [9.0]]), np.full(3, 1 / 3)).tolist()
    [False, True, True]
    """
    from sklearn.neighbors import NearestNeighbors

    # 1) How far apart points of the set are: the distance of an outer point from its neighbour.
    chosen = np.random.RandomState(seed).permutation(len(points))[:judge_on]
    some = np.unique(points[chosen], axis=0)
    none = np.zeros(len(others), dtype=bool)
    if len(some) < 2:
        return none
    neighbours = NearestNeighbors(n_neighbors=2).fit(some)
    own = np.sort(neighbours.kneighbors(some)[0][:, 1])
    k = max(1, int(OUTERMOST * len(some)))
    limit = FAR_FACTOR * own[-k]
    # 2) Who is farther than that from some of the points, and then from all of them.
    far: BoolArray = neighbours.kneighbors(others, n_neighbors=1)[0][:, 0] > limit
    if len(chosen) < len(points) and far.any():
        everyone = NearestNeighbors(n_neighbors=1).fit(points)
        far[far] = everyone.kneighbors(others[far])[0][:, 0] > limit
    # 3) Whether more mass is far than chance allows.
    effective = max(1, int(1 / (mass @ mass)))
    allowed = stats.betabinom.ppf(1 - chance, effective, k, len(some) + 1 - k) / effective
    return far if float(mass[far].sum()) > allowed else none
