"""Find rows of small whole numbers among a known set of distinct rows.

The rows are folded column by column: the number of the distinct prefix seen so far and the next
column's code make a pair, and the pairs that occur are numbered in turn. Each step is one binary
search, so that finding n rows among k takes O(n d log k) and no key ever overflows.
"""

from __future__ import annotations

import numpy as np

from unskew.numerics.typing import IntArray

__all__ = ["DistinctRows"]


class DistinctRows:
    """The distinct rows of a matrix of codes, numbered from zero.

    Parameters
    ----------
    codes : ndarray of int64 of shape (n_rows, n_columns)
        Non-negative.

    Examples
    --------
    >>> distinct = DistinctRows(np.array([[0, 1], [2, 0], [0, 1]]))
    >>> distinct.size
    2
    >>> distinct.find(np.array([[2, 0], [0, 1], [0, 0]]))
    array([ 1,  0, -1])
    """

    def __init__(self, codes: IntArray) -> None:
        self._bases = codes.max(axis=0) + 1
        self._levels: list[IntArray] = []
        prefix = np.zeros(len(codes), dtype=np.int64)
        for base, column in zip(self._bases, codes.T, strict=True):
            pairs, prefix = np.unique(prefix * base + column, return_inverse=True)
            self._levels.append(pairs)
        self.size = len(self._levels[-1])

    def find(self, codes: IntArray) -> IntArray:
        """Return each row's number, or -1 where it is not among the distinct rows."""
        prefix = np.zeros(len(codes), dtype=np.int64)
        known = np.ones(len(codes), dtype=bool)
        for base, pairs, column in zip(self._bases, self._levels, codes.T, strict=True):
            known &= (column >= 0) & (column < base)
            pair = np.where(known, prefix * base + column, 0)
            prefix = np.minimum(np.searchsorted(pairs, pair), len(pairs) - 1)
            known &= pairs[prefix] == pair
        return np.where(known, prefix, -1)
