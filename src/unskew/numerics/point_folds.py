"""Folds by the values of a point, and sums of a basis over the points of a fold.

They travel to where the rows are, and need nothing but NumPy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.numerics.row_hash import Words, hash_rows
from unskew.numerics.typing import FloatArray, IntArray

N_FOLDS = 5
"""The usual number. Not tuned."""

FREQUENT = 20
"""Sample rows from which on a value is divided over all folds: holding it out would ask the others
for what they cannot know."""

EVERY = -1
"""In place of a fold: the row is divided over all of them."""


class PointFolds(NamedTuple):
    """Which fold a point is in, by a hash of its coordinates.

    Attributes
    ----------
    seed : int
    frequent : ndarray of uint64
        The hashes of points that are divided over all folds, in sorted order.
    """

    seed: int
    frequent: Words

    @classmethod
    def learn(
        cls, points: FloatArray, n_rows: IntArray, random: np.random.RandomState
    ) -> PointFolds:
        """Divide the points over all folds that have many sample rows."""
        seed = int(random.randint(2**31))
        nobody = cls(seed, np.empty(0, dtype=np.uint64))
        return cls(seed, np.sort(nobody.hash(points[n_rows >= FREQUENT])))

    def hash(self, points: FloatArray) -> Words:
        """Return the hash of each point."""
        return hash_rows([np.ascontiguousarray(column) for column in points.T], seed=self.seed)

    def of_hashes(self, hashes: Words) -> IntArray:
        """Return the fold of each hash."""
        fold = (hashes % np.uint64(N_FOLDS)).astype(np.int64)
        if len(self.frequent):
            place = np.minimum(np.searchsorted(self.frequent, hashes), len(self.frequent) - 1)
            fold[self.frequent[place] == hashes] = EVERY
        return fold


class Sums(NamedTuple):
    """Weighted sums of a basis over one side."""

    mass: float
    first: FloatArray
    second: FloatArray | None = None

    @classmethod
    def of(cls, basis: FloatArray, weight: FloatArray, *, squares: bool) -> Sums:
        """Add up the rows of a basis."""
        second = None
        if squares:
            scaled = np.sqrt(weight)[:, None] * basis
            second = scaled.T @ scaled  # of which BLAS computes one half
        return cls(float(weight.sum()), weight @ basis, second)

    def __sub__(self, other: Sums) -> Sums:
        second = None
        if self.second is not None and other.second is not None:
            second = self.second - other.second
        return Sums(self.mass - other.mass, self.first - other.first, second)

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        second = None
        if self.second is not None and other.second is not None:
            second = self.second + other.second
        return Sums(self.mass + other.mass, self.first + other.first, second)
