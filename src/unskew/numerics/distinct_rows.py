"""Find rows of small whole numbers among a known set of distinct rows.

Where there are few possible rows, each is a place in one table. Otherwise the rows are folded
column by column: the number of the distinct prefix seen so far and the next column's code make a
pair, and the pairs that occur are numbered in turn. Each step looks pairs up in a table, or by
binary search where the table would be large, so that finding n rows among k takes O(n d log k) at
most and no key ever overflows.
"""

from __future__ import annotations

import math

import numpy as np

from unskew.numerics.typing import IntArray

LARGEST_TABLE = 1 << 18
"""Entries up to which a table is kept, so that it stays in the cache."""


class DistinctRows:
    """The distinct rows of a matrix of codes, numbered from zero.

    Parameters
    ----------
    codes : ndarray of int64 of shape (n_rows, n_columns)
        Non-negative.
    largest_table : int
        Entries up to which a table is kept.

    Examples
    --------
    >>> distinct = DistinctRows(np.array([[0, 1], [2, 0], [0, 1]]))
    >>> distinct.size
    2
    >>> distinct.find(np.array([[2, 0], [0, 1], [0, 0]]))
    array([ 1,  0, -1])
    """

    _whole: IntArray | None = None
    """The number of every possible row, if these are few."""

    def __init__(self, codes: IntArray, *, largest_table: int = LARGEST_TABLE) -> None:
        self._bases = codes.max(axis=0) + 1
        self._levels: list[IntArray] = []
        self._tables: list[IntArray | None] = []
        # The pair (prefix, code) is the number prefix · base + code. As prefixes that occur are
        # numbered anew after every column, it stays below rows · base and cannot overflow.
        prefix, n_prefixes = np.zeros(len(codes), dtype=np.int64), 1
        for base, column in zip(self._bases, codes.T, strict=True):
            pairs, prefix = np.unique(prefix * base + column, return_inverse=True)
            self._levels.append(pairs)
            possible = n_prefixes * int(base)
            self._tables.append(_table(pairs, possible) if possible <= largest_table else None)
            n_prefixes = len(pairs)
        self.size = n_prefixes
        possible = math.prod(int(base) + 2 for base in self._bases)
        if possible <= largest_table:
            self._whole = np.full(possible, -1, dtype=np.int64)
            self._whole[self._places(codes)] = prefix

    def find(self, codes: IntArray) -> IntArray:
        """Return each row's number, or -1 where it is not among the distinct rows."""
        if self._whole is not None:
            return self._whole.take(self._places(codes))
        prefix = np.zeros(len(codes), dtype=np.int64)
        known = np.ones(len(codes), dtype=bool)
        for base, pairs, table, column in zip(
            self._bases, self._levels, self._tables, codes.T, strict=True
        ):
            known &= (column >= 0) & (column < base)
            # A code beyond the base would be another prefix's pair: such rows look up pair 0.
            pair = np.where(known, prefix * base + column, 0)
            if table is not None:
                prefix = table[pair]
                known &= prefix >= 0
            else:
                prefix = np.minimum(np.searchsorted(pairs, pair), len(pairs) - 1)
                known &= pairs[prefix] == pair
        return np.where(known, prefix, -1)

    def _places(self, codes: IntArray) -> IntArray:
        """Return where rows are among all possible ones; each code has room below and above."""
        places = np.zeros(len(codes), dtype=np.int64)
        for base, column in zip(self._bases, codes.T, strict=True):
            places *= base + 2
            places += np.clip(column, -1, base)
            places += 1
        return places


def _table(pairs: IntArray, n_possible: int) -> IntArray:
    table = np.full(n_possible, -1, dtype=np.int64)
    table[pairs] = np.arange(len(pairs), dtype=np.int64)
    return table
