r"""Which rows of one table are rows of another, by the hashes of their values.

Two tables that were drawn independently have equal rows by chance where values are few. A given
value occurs exactly once among r independent rows with probability
:math:`r p (1 - p)^{r - 1} \le (1 - 1/r)^{r - 1} \approx 1/e`, whatever its frequency p. So if far
more than 37 % of the distinct rows of the first table occur exactly once in the second, the tables
are not independent: they have rows in common. Where the second table is a part of a larger one,
fewer are found; then chance is judged by how many of its rows have a twin in the second table
itself, and the first table may have those ``MAX_RATIO`` times as often.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from unskew.numerics.row_hash import Words
from unskew.numerics.row_keys import mix
from unskew.numerics.typing import BoolArray, IntArray

MAX_RATIO = 10
"""How many times as frequent a repeated row may be in the first table."""
CHANCE = 1e-6
"""The probability of taking rows that are equal by chance for the same rows."""
_UNSEEN_TWINS = 10
"""Added to the count of twins: a count of none does not prove that there are none."""


def have_rows_in_common(first: Words, second: Words) -> bool:
    """Return whether two tables have too many equal rows to be independent.

    Parameters
    ----------
    first, second : ndarray of uint64
        The hashes of their rows.

    Examples
    --------
    >>> rows = np.arange(100, dtype=np.uint64)
    >>> have_rows_in_common(rows[:30], rows), have_rows_in_common(rows[:30], rows + np.uint64(200))
    (True, False)

    Rows of two values are equal by chance:

    >>> have_rows_in_common(rows[:30] % np.uint64(2), rows % np.uint64(2))
    False
    """
    if not len(first) or not len(second):
        return False
    contents, counts = np.unique(second, return_counts=True)
    distinct = np.unique(first)
    once = int(np.isin(distinct, contents[counts == 1]).sum())
    twins = int(counts[counts > 1].sum())
    by_chance = min(np.exp(-1), MAX_RATIO * (twins + _UNSEEN_TWINS) / len(second))
    return bool(binom.sf(once - 1, len(distinct), by_chance) < CHANCE)


def pair_rows(first: Words, second: Words, marked: BoolArray | None = None) -> IntArray:
    """Pair equal rows of two tables, each with at most one of the other.

    Parameters
    ----------
    first, second : ndarray of uint64
        The hashes of their rows.
    marked : ndarray of bool, optional
        Rows of the second table that are known to be rows of the first; others are not paired. A
        marked row without an equal one, whose values were rounded or changed, is paired with the
        next row of the first table that is left.

    Returns
    -------
    ndarray of int
        For each row of the second table its row of the first; -1 for none.

    Examples
    --------
    >>> first, second = np.array([7, 8, 7], np.uint64), np.array([9, 7, 7, 7], np.uint64)
    >>> pair_rows(first, second).tolist()
    [-1, 0, 2, -1]
    >>> pair_rows(first, second, np.array([True, False, False, True])).tolist()
    [1, -1, -1, 0]
    """
    among = np.arange(len(second)) if marked is None else np.flatnonzero(marked)
    pairs = np.full(len(second), -1, dtype=np.int64)
    # The first of equal rows is paired with the first, the second with the second.
    _, left, right = np.intersect1d(_numbered(first), _numbered(second[among]), return_indices=True)
    pairs[among[right]] = left
    if marked is not None:
        rest = among[pairs[among] < 0]
        free = np.delete(np.arange(len(first)), left)[: len(rest)]
        pairs[rest[: len(free)]] = free
    return pairs


def _numbered(hashes: Words) -> Words:
    """Return hashes in which equal rows differ by their number among the equal ones."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    number = np.empty(len(hashes), dtype=np.uint64)
    number[order] = np.arange(len(hashes)) - np.searchsorted(ordered, ordered)
    return mix(hashes ^ mix(number))
