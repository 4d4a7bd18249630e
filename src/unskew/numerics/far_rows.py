"""Points that are farther from all of a set than the set's points are from one another."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from unskew.numerics.cores import one_blas_thread
from unskew.numerics.kernels import blocks
from unskew.numerics.typing import BoolArray, FloatArray, IntArray

OUTERMOST = 0.005
"""The share of the set's own points that may be outliers of it: the scale of "far" is the distance
of the point at this upper quantile, which a few isolated points do not change. Not tuned."""

FAR_FACTOR = 1.5
"""How many times farther than that a point must be to lie outside the set's support. More than 1,
because the quantile is an estimate. Not tuned."""

ENOUGH = 20_000
"""Others beyond which their number no longer limits the precision, while summing over it would
take long. A smaller one is on the safe side."""

_FIRST_POINTS = 64
_TREE_COLUMNS = 3
"""Up to so many columns a k-d tree is faster than comparing all pairs."""


def far_rows(
    points: FloatArray,
    others: FloatArray,
    mass: FloatArray,
    *,
    design: FloatArray | None = None,
    squares: FloatArray | None = None,
    judge_on: int = 5000,
    chance: float = 0.01,
    seed: int = 0,
) -> BoolArray:
    """Return which of the others lie outside the support of the points.

    A point's distance is that to the nearest other point of the set, repeated ones counting once.
    If both sets were draws from one distribution, the others' distances would be like the points'
    own, and the share of them beyond the k-th largest of m would be a draw of Beta(k, m + 1 - k);
    ``FAR_FACTOR`` times that distance it is less still. Unless more mass lies there than ``chance``
    allows, given the effective number of others, no point is called far. Where points have design
    weights, m is such that the k heaviest of them carry a share k / m of the weight: these may be
    the k outermost.

    Parameters
    ----------
    points : ndarray of shape (m, d)
    others : ndarray of shape (r, d)
    mass : ndarray of shape (r,)
        Of the others; it sums to one.
    design, squares : ndarray of shape (m,) and (r,), optional
        As for :class:`~unskew.numerics.even_draw.EvenDraw`.
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
    # 1) How far apart points of the set are: the distance of an outer point from its neighbour.
    random = np.random.RandomState(seed)
    chosen = random.permutation(len(points))[:judge_on]
    some = random.permutation(np.unique(points[chosen], axis=0))
    none = np.zeros(len(others), dtype=bool)
    if len(some) < 2:
        return none
    with one_blas_thread():
        k = max(1, int(OUTERMOST * len(some)))
        limit = FAR_FACTOR * float(np.sort(_nearest_distances(some))[-k])
        # 2) Who is farther than that from some of the points, and then from all of them.
        far = _beyond(others, some, limit)
    if len(chosen) < len(points) and far.any():
        from sklearn.neighbors import NearestNeighbors

        everyone = NearestNeighbors(n_neighbors=1).fit(points)
        far[far] = everyone.kneighbors(others[far])[0][:, 0] > limit
    # 3) Whether more mass is far than chance allows.
    effective = int(min(max(1 / (mass @ mass if squares is None else squares.sum()), 1), ENOUGH))
    weight = np.ones(len(chosen)) if design is None else design[chosen]
    heaviest = np.sort(weight)[len(weight) - k :].sum() / weight.sum()
    m = max(k, len(some) * (k / len(weight)) / heaviest)
    allowed = stats.betabinom.ppf(1 - chance, effective, k, m + 1 - k) / effective
    return far if float(mass[far].sum()) > allowed else none


def _nearest_distances(points: FloatArray) -> FloatArray:
    """Return each point's distance to the nearest other point."""
    if points.shape[1] <= _TREE_COLUMNS:
        return np.asarray(cKDTree(points).query(points, k=2)[0])[:, 1]
    lengths = np.einsum("ij,ij->i", points, points)
    nearest = np.empty(len(points), dtype=np.int64)
    for part in blocks(len(points), len(points)):
        squares = (-2 * points[part]) @ points.T
        squares += lengths  # and each row's own, which decides nothing
        squares[np.arange(len(squares)), np.arange(part.start, part.stop)] = np.inf
        nearest[part] = squares.argmin(axis=1)
    # From the differences: those of squares have lost digits.
    return np.sqrt(np.square(points - points[nearest]).sum(axis=1))


def _beyond(rows: FloatArray, points: FloatArray, limit: float) -> BoolArray:
    """Return which rows are farther than the limit from every point.

    The points are in random order, so the first of them are near most rows already; the others are
    compared only with the rows that are left.
    """
    if points.shape[1] <= _TREE_COLUMNS:
        return np.asarray(cKDTree(points).query(rows)[0] > limit)
    left: IntArray = np.arange(len(rows))
    start, size = 0, _FIRST_POINTS
    while start < len(points) and len(left):
        some = points[start : start + size]
        near = [_any_within(rows[left[part]], some, limit) for part in blocks(len(left), size)]
        left = left[~np.concatenate(near)]
        start, size = start + size, 4 * size
    beyond = np.zeros(len(rows), dtype=bool)
    beyond[left] = True
    return beyond


def _any_within(rows: FloatArray, points: FloatArray, limit: float) -> BoolArray:
    """Return which rows have a point within the limit."""
    mine, theirs = (np.einsum("ij,ij->i", side, side) for side in (rows, points))
    squares = (-2 * rows) @ points.T
    squares += theirs
    excess = squares.min(axis=1) + mine - limit**2
    near: BoolArray = excess <= 0
    # The terms of a squared distance are at most twice ‖x‖² + ‖y‖² together, and rounding depends
    # on the size of the block. Where it could decide, the distances are computed from differences.
    n_terms = rows.shape[1] + 6
    unsure = np.abs(excess) <= 4 * n_terms * np.finfo(float).eps * (mine + theirs.max())
    if unsure.any():
        near[unsure] = cdist(rows[unsure], points).min(axis=1) <= limit
    return near
