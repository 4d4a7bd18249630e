"""Folds by the values of a row, so that equal rows of sample and population share one.

Where the sample is part of the population, a row is on both sides. In different folds, one copy
would teach the model what the other is asked. So a row's fold is a function of its values: of their
hash, compared with borders that give every fold as many distinct sample rows. But on a table of few
distinct values that would hold out whole cells. A value with many sample rows is *frequent*: its
rows are dealt over all folds, so that every model has seen the value, and it is weighed by the
average of all models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.numerics.row_hash import Words
from unskew.numerics.typing import BoolArray, IntArray

FREQUENT = 20
"""Sample rows from which on a value is frequent."""
AVERAGE = -1
"""In place of the number of a fold: the average of all models."""


class ValueFolds(NamedTuple):
    """Which model weighs a row: the one that has not seen its values, or the average of all.

    Attributes
    ----------
    n_folds : int
        One means that there is one model, of all rows.
    borders : ndarray of uint64
        Of the hashes of successive folds.
    held_out : ndarray of uint64
        The hashes of the values that are held out, in sorted order.
    """

    n_folds: int
    borders: Words
    held_out: Words

    @classmethod
    def of(cls, mine: Words, theirs: Words, n_folds: int | None) -> ValueFolds:
        """Return folds for rows of sample and population with these hashes.

        There are fewer folds than asked for if the sample has fewer than two distinct values a
        fold, but for frequent ones.

        Examples
        --------
        >>> rows = np.arange(100, dtype=np.uint64)
        >>> folds = ValueFolds.of(rows[:50], rows, 5)
        >>> np.bincount(folds.number(rows[:50]))
        array([10, 10, 10, 10, 10])
        >>> folds.number(np.array([200], dtype=np.uint64))
        array([-1])
        """
        values, counts = np.unique(mine, return_counts=True)
        rare, frequent = values[counts < FREQUENT], values[counts >= FREQUENT]
        n_rare = len(rare)
        n_folds = n_folds or 1
        if n_rare < 2 * n_folds and not len(frequent):
            n_folds = max(1, n_rare // 2)
        if n_folds == 1:
            return cls(1, rare[:0], rare[:0])
        steps = np.arange(1, n_folds)
        even = np.array([2**64 // n_folds * step for step in range(1, n_folds)], dtype=np.uint64)
        borders = rare[steps * n_rare // n_folds] if n_rare >= 2 * n_folds else even
        known = np.union1d(rare, theirs)
        # kind: NumPy's table of values cannot hold 64 bits.
        return cls(n_folds, borders, known[~np.isin(known, frequent, kind="sort")])

    def number(self, hashes: Words) -> IntArray:
        """Return the fold of each row's values; ``AVERAGE`` where no model has held them out."""
        return np.where(self._is_held_out(hashes), self._fold(hashes), AVERAGE)

    def deal(self, hashes: Words) -> IntArray:
        """Return the fold that each row is in, in training: frequent values are dealt over all."""
        numbers = self.number(hashes)
        rest = np.flatnonzero(numbers == AVERAGE)
        order = np.argsort(hashes[rest], kind="stable")
        ordered = hashes[rest][order]
        turn = np.arange(len(rest)) - np.searchsorted(ordered, ordered)
        numbers[rest[order]] = turn % self.n_folds
        return numbers

    def _fold(self, hashes: Words) -> IntArray:
        return np.searchsorted(self.borders, hashes, side="right")

    def _is_held_out(self, hashes: Words) -> BoolArray:
        if not len(self.held_out):
            return np.zeros(len(hashes), dtype=bool)
        place = np.minimum(np.searchsorted(self.held_out, hashes), len(self.held_out) - 1)
        return np.asarray(self.held_out[place] == hashes)
