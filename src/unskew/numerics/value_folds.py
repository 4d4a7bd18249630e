"""Folds by the values of a row, so that equal rows of sample and population share one.

Where the sample is part of the population, a row is on both sides. In different folds, one copy
would teach the model what the other is asked. So a row's fold is a function of its values: of their
key, compared with borders that give every fold as many distinct sample rows. But on a table of few
distinct values that would hold out whole cells. A value with many rows is *frequent*: its
rows are spread over all folds, so that every model has seen the value, and it is weighed by the
average of all models.

A key is a random number that the row's values and ``random_state`` decide: a hash of their ranks
(:func:`row_ranks`), which are the same however columns are ordered, scaled or shifted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.numerics.row_keys import Words, hash_rows
from unskew.numerics.typing import FloatArray, IntArray

FREQUENT = 20
"""Sample rows from which on a value is frequent."""
EXPECTED = 2.0
"""A value of the sample may also be frequent if an even sample would have that many rows of it. Of
a value that is a single row of the population, it would have m / n."""
AVERAGE = -1
"""In place of the number of a fold: the average of all models."""


class ValueFolds(NamedTuple):
    """Which model weighs a row: the one that has not seen its values, or the average of all.

    Attributes
    ----------
    n_folds : int
        One means that there is one model, of all rows.
    held_out : ndarray of uint64
        The hashes of the values that are held out, in sorted order.
    numbers : ndarray of int
        The fold of each of them.
    frequent : ndarray of uint64
        The hashes of frequent values, in sorted order.
    """

    n_folds: int
    held_out: Words
    numbers: IntArray
    frequent: Words

    @classmethod
    def from_rows(
        cls,
        hashes: Words,
        keys: Words,
        shares: FloatArray,
        n_sample: int,
        n_folds: int | None,
        expected: float = np.inf,
    ) -> ValueFolds:
        """Return folds for rows with these hashes, keys and shares, the sample's first.

        A value is frequent, too, of which an even sample would have ``expected`` rows.

        There are fewer folds than asked for if the sample has fewer than two distinct values a
        fold, but for frequent ones.

        Examples
        --------
        >>> rows = np.arange(150, dtype=np.uint64)
        >>> folds = ValueFolds.from_rows(rows, rows, np.repeat([0.02, 0.01], [50, 100]), 50, 5)
        >>> np.bincount(folds.number(rows[:50]))
        array([10, 10, 10, 10, 10])
        >>> folds.number(np.array([200], dtype=np.uint64))
        array([-1])
        """
        # 1) Frequent values: of many sample rows, or of which the population lets one expect many.
        values, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        counts = np.bincount(inverse[:n_sample], minlength=len(values))
        shared = np.bincount(inverse[n_sample:], shares[n_sample:], len(values))
        often = n_sample * shared >= expected * (1 - 1e-9)
        frequent = (counts >= FREQUENT) | ((counts > 0) & often)
        # 2) The other values that the sample has decide how many folds there can be.
        rare = np.sort(keys[first[(counts > 0) & ~frequent]])
        n_folds = n_folds or 1
        if len(rare) < 2 * n_folds and not frequent.any():
            n_folds = max(1, len(rare) // 2)
        if n_folds == 1:
            return cls.none()
        # 3) Borders between keys with as many rare values in every fold; keys are uniform, so that
        #    even borders serve where there are too few of these.
        steps = np.arange(1, n_folds)
        borders = np.array([2**64 // n_folds * step for step in steps.tolist()], dtype=np.uint64)
        if len(rare) >= 2 * n_folds:
            borders = rare[steps * len(rare) // n_folds]
        numbers = np.searchsorted(borders, keys[first], side="right")
        return cls(n_folds, values[~frequent], numbers[~frequent], values[frequent])

    @classmethod
    def none(cls) -> ValueFolds:
        """Return the folds of one model, of all rows."""
        nothing = np.empty(0, dtype=np.uint64)
        return cls(1, nothing, np.empty(0, dtype=np.int64), nothing)

    def number(self, hashes: Words) -> IntArray:
        """Return the fold of each row's values; ``AVERAGE`` where no model has held them out."""
        if not len(self.held_out):
            return np.full(len(hashes), AVERAGE)
        # A hash that is not among those held out belongs to a value that no model has left out.
        place = np.minimum(np.searchsorted(self.held_out, hashes), len(self.held_out) - 1)
        return np.where(self.held_out[place] == hashes, self.numbers[place], AVERAGE)

    def fold(self, hashes: Words, keys: Words, side: int) -> IntArray:
        """Return the fold that each row is in, in training: frequent values are in all of them.

        Each of their rows at random: as many in every fold would let the rest foretell a fold.
        """
        numbers = self.number(hashes)
        rest = np.flatnonzero(numbers == AVERAGE)
        order = np.argsort(keys[rest], kind="stable")
        ordered = keys[rest][order]
        turn = np.arange(len(rest)) - np.searchsorted(ordered, ordered)
        drawn = hash_rows([ordered, turn], seed=side) % np.uint64(self.n_folds)
        numbers[rest[order]] = drawn.astype(np.int64)
        return numbers


def row_ranks(values: FloatArray, shares: FloatArray, n_sample: int) -> tuple[IntArray, FloatArray]:
    """Return the order of the columns by their content, and the ranks of values in each.

    A column is turned such that its ranks are low on average, and columns are ordered by the mean
    ranks of either side: orders, scales, shifts and signs of columns change nothing.

    Examples
    --------
    >>> rows = np.array([[0.1, 5.0], [0.2, 5.0], [0.2, 7.0], [0.2, 5.0]])
    >>> order, ranks = row_ranks(rows, np.full(4, 0.5), 2)
    >>> other, same = row_ranks(3 - 2 * rows[:, ::-1], np.full(4, 0.5), 2)
    >>> bool((ranks[:, order] == same[:, other]).all())
    True
    """
    ranks = np.empty(values.shape)
    contents = []
    for place, column in enumerate(values.T):
        distinct, own = np.unique(column, return_inverse=True)
        rank = own.reshape(-1).astype(float)
        middle = (len(distinct) - 1) / 2
        if shares @ (rank - middle) > 1e-9 * len(distinct):
            rank = len(distinct) - 1 - rank
        ranks[:, place] = rank
        means = [shares[side] @ rank[side] for side in (slice(n_sample), slice(n_sample, None))]
        contents.append([round(float(mean) / len(distinct), 9) for mean in means])
    return np.array(sorted(range(len(contents)), key=contents.__getitem__)), ranks
