"""Points that are farther from all of a set than the set's points are from one another.

The distance from a point of a set to its nearest neighbour in it says how densely the set lies
there. With the distances of m points in order, a row is far if its own nearest point is more than
``FAR_FACTOR`` times as far away as the k-th largest of them, and if more mass lies there than would
by chance: for draws from one distribution, the share beyond the k-th largest is a draw of
Beta(k, m + 1 − k). Rows have numbers and categories; categories count by the number of columns in
which two rows agree (:func:`count_matches`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from unskew.numerics.cores import one_blas_thread
from unskew.numerics.kernels import blocks
from unskew.numerics.row_keys import order_by
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


_AT_ONCE = 255
"""Columns that one byte can count."""


class MixedPoints:
    """Points of which some coordinates are one-hot columns, kept as the place of the one.

    Parameters
    ----------
    numbers : ndarray of shape (n, d)
    labels : ndarray of int of shape (n, k), optional
        For each group of one-hot columns which of them is one; -1 for none.

    Examples
    --------
    >>> points = MixedPoints(np.array([[3.0], [0.0]]), np.array([[0], [2]]))
    >>> points.inner(points), points.lengths
    (array([[10.,  0.], [ 0.,  1.]]), array([10.,  1.]))
    """

    def __init__(self, numbers: FloatArray, labels: IntArray | None = None) -> None:
        self.numbers = numbers
        self.labels = np.empty((len(numbers), 0), np.int64) if labels is None else labels
        self._columns = [np.ascontiguousarray(column, np.int16) for column in self.labels.T]
        self._n_ones = np.count_nonzero(self.labels >= 0, axis=1)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def n_columns(self) -> int:
        """How many coordinates a distance adds up."""
        return self.numbers.shape[1] + self.labels.shape[1]

    @cached_property
    def lengths(self) -> FloatArray:
        """The squared lengths."""
        return np.einsum("ij,ij->i", self.numbers, self.numbers) + self._n_ones

    def take(self, rows: Any) -> MixedPoints:
        """Return some of the points."""
        return MixedPoints(self.numbers[rows], self.labels[rows])

    def distinct(self) -> MixedPoints:
        """Return each point once, in a fixed order."""
        keys = [*self.labels.T[::-1], *self.numbers.T[::-1]]  # the first column decides first
        order = order_by(keys)
        rises = np.ones(len(order), dtype=bool)
        rises[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
        return self.take(order[rises])

    def inner(self, points: MixedPoints) -> FloatArray:
        """Return the inner products with points of which each label is one of these."""
        products = self.numbers @ points.numbers.T
        if self._columns:
            products += count_matches(self._columns, points._columns)
        return products

    def distances(self, points: MixedPoints) -> FloatArray:
        """Return all distances, from the differences: those of squares have lost digits."""
        # Two one-hot groups differ by 2 in the square, unless they agree or have no one.
        squares = cdist(self.numbers, points.numbers, "sqeuclidean")
        if self._columns:
            squares += self._n_ones[:, None] + points._n_ones
            squares -= 2 * count_matches(self._columns, points._columns)
        return np.sqrt(squares)

    def distances_to(self, points: MixedPoints) -> FloatArray:
        """Return the distance of each point to the one in its place."""
        squares = np.square(self.numbers - points.numbers).sum(axis=1)
        squares += self._n_ones + points._n_ones
        return np.sqrt(squares - 2 * ((self.labels == points.labels) & (self.labels >= 0)).sum(1))


def far_rows(
    points: FloatArray | MixedPoints,
    others: FloatArray | MixedPoints,
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
    points : ndarray of shape (m, d), or MixedPoints
    others : ndarray of shape (r, d), or MixedPoints
    mass : ndarray of shape (r,)
        Of the others; it sums to one.
    design, squares : ndarray of shape (m,) and (r,), optional
        As for :class:`~unskew.numerics.empty_boxes.EvenDraw`.
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
    points, others = _mixed(points), _mixed(others)
    # 1) How far apart points of the set are: the distance of an outer point from its neighbour.
    random = np.random.RandomState(seed)
    chosen = random.permutation(len(points))[:judge_on]
    some = points.take(chosen).distinct()
    some = some.take(random.permutation(len(some)))
    none = np.zeros(len(others), dtype=bool)
    if len(some) < 2:
        return none
    with one_blas_thread():
        k = max(1, int(OUTERMOST * len(some)))
        limit = FAR_FACTOR * float(np.sort(_nearest_distances(some))[-k])
        # 2) Who is farther than that from some of the points, and then from all of them.
        far = _beyond(others, some, limit)
        if len(chosen) < len(points) and far.any():
            far[far] = _beyond(others.take(far), points, limit)
    if not far.any():
        return none
    # 3) Whether more mass is far than chance allows.
    effective = int(min(max(1 / (mass @ mass if squares is None else squares.sum()), 1), ENOUGH))
    weight = np.ones(len(chosen)) if design is None else design[chosen]
    heaviest = np.sort(weight)[len(weight) - k :].sum() / weight.sum()
    m = max(k, len(some) * (k / len(weight)) / heaviest)
    allowed = stats.betabinom.ppf(1 - chance, effective, k, m + 1 - k) / effective
    return far if float(mass[far].sum()) > allowed else none


def _mixed(points: FloatArray | MixedPoints) -> MixedPoints:
    return points if isinstance(points, MixedPoints) else MixedPoints(points)


def _nearest_distances(points: MixedPoints) -> FloatArray:
    """Return each point's distance to the nearest other point."""
    if not points.labels.shape[1] and points.n_columns <= _TREE_COLUMNS:
        return np.asarray(cKDTree(points.numbers).query(points.numbers, k=2)[0])[:, 1]
    nearest = np.empty(len(points), dtype=np.int64)
    for part in blocks(len(points), len(points)):
        squares = -2 * points.take(part).inner(points)
        squares += points.lengths  # and each row's own, which decides nothing
        squares[np.arange(len(squares)), np.arange(part.start, part.stop)] = np.inf
        nearest[part] = squares.argmin(axis=1)
    return points.distances_to(points.take(nearest))


def _beyond(rows: MixedPoints, points: MixedPoints, limit: float) -> BoolArray:
    """Return which rows are farther than the limit from every point.

    The points are in random order, so the first of them are near most rows already; the others are
    compared only with the rows that are left.
    """
    if not points.labels.shape[1] and points.n_columns <= _TREE_COLUMNS:
        return np.asarray(cKDTree(points.numbers).query(rows.numbers)[0] > limit)
    left: IntArray = np.arange(len(rows))
    start, size = 0, _FIRST_POINTS
    while start < len(points) and len(left):
        some = points.take(slice(start, start + size))
        near = [_any_within(rows.take(left[part]), some, limit) for part in blocks(len(left), size)]
        left = left[~np.concatenate(near)]
        start, size = start + size, 4 * size
    beyond = np.zeros(len(rows), dtype=bool)
    beyond[left] = True
    return beyond


def _any_within(rows: MixedPoints, points: MixedPoints, limit: float) -> BoolArray:
    """Return which rows have a point within the limit."""
    own_lengths, lengths = rows.lengths, points.lengths
    squares = -2 * rows.inner(points)
    squares += lengths
    excess = squares.min(axis=1) + own_lengths - limit**2
    near: BoolArray = excess <= 0
    # The terms of a squared distance are at most twice ‖x‖² + ‖y‖² together, and rounding depends
    # on the size of the block. Where it could decide, the distances are computed from differences.
    n_terms = rows.n_columns + 6
    unsure = np.abs(excess) <= 4 * n_terms * np.finfo(float).eps * (own_lengths + lengths.max())
    if unsure.any():
        near[unsure] = rows.take(unsure).distances(points).min(axis=1) <= limit
    return near


def narrow(codes: IntArray) -> list[NDArray[Any]]:
    """Return columns of non-negative codes, each in the smallest type that holds them."""
    return [np.ascontiguousarray(c, np.min_scalar_type(c.max(initial=0))) for c in codes.T]


def count_matches(
    columns: list[NDArray[Any]], others: list[NDArray[Any]] | None = None, *parts: Any
) -> NDArray[np.float32]:
    """Return in how many columns each row agrees with each of the others.

    For one-hot columns this is the matrix of inner products, at a cost that does not depend on the
    number of categories.

    Parameters
    ----------
    columns, others : list of ndarray
        Of equal types, column by column; by default the others are the rows themselves.
    *parts : slice or ndarray of int
        Two: which rows, and which of the others; all by default.

    Examples
    --------
    >>> rows = narrow(np.array([[1, 7], [1, 8]]))
    >>> count_matches(rows)
    array([[2., 1.], [1., 2.]], dtype=float32)
    """
    first, second = parts or (slice(None), slice(None))
    others = columns if others is None else others
    total: Any = 0.0
    for start in range(0, len(columns), _AT_ONCE):
        pairs = zip(columns[start : start + _AT_ONCE], others[start:], strict=False)
        count: Any = None
        for column, other in pairs:
            equal = (column[first, None] == other[second]).view(np.uint8)
            count = equal if count is None else np.add(count, equal, out=count)
        total = total + count.astype(np.float32)
    return np.asarray(total, dtype=np.float32)
