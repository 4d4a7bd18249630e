r"""Keys of rows: random ones by number, stable ones by values, an order, and distinct rows.

**By number.** A reservoir that keeps the rows with the smallest keys is the same however the rows
are split and on however many threads they are read, if a key depends on the row's number alone.

**By value.** Equal rows have equal hashes in every process, on every platform and in every version
of Python, so that the hash can decide what must be decided alike in many places: a row's fold, or
which rows of a population are rows of the sample. Each value becomes a 64-bit word, the bits of its
float64; the words of a row are mixed one after the other.

**Rows of two tables.** A given value occurs exactly once among r independent rows with probability
:math:`r p (1 - p)^{r - 1} \le (1 - 1/r)^{r - 1} \approx 1/e`, whatever its frequency p. So if far
more than 37 % of the distinct rows of the first table occur exactly once in the second, the tables
have rows in common. Where the second is a part of a larger table, fewer are found; then chance is
judged by how many of its rows have a twin in the second itself, and the first table may have those
``MAX_RATIO`` times as often.

**Distinct rows.** Where few rows are possible, each is a place in one table. Otherwise rows of
small whole numbers are folded column by column: the number of the distinct prefix seen so far and
the next column's code make a pair, and the pairs that occur are numbered in turn. Each step looks
pairs up in a table, or by binary search where the table would be large, so that finding n rows
among k takes O(n d log k) at most and no key ever overflows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.errors import InputError, InputTypeError
from unskew.numerics.typing import BoolArray, FloatArray, IntArray

# The constants of SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number
# generators", OOPSLA 2014, figure 14 (the finalising mix is Stafford's thirteenth variant).
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)

_LAST_SHIFT = np.uint64(31)
_BELOW_UPPER_BITS = np.uint64(2**33 - 1)
_HIGHEST_KEY = np.uint64(2**64 - 1)

_ROWS_AT_ONCE = 65_536
"""So many keys stay in the cache until they are mixed. Measured on 4 million rows: 1.9 ns a row;
with 16,384 or 262,144 2.2 to 2.5 ns, all at once 7.3 ns."""


_MISSING = np.uint64(0x7FF8000000000000)
"""The word of every missing value: the bits of the quiet NaN without a payload."""
_EXACT = 2**53
"""float64 holds every whole number up to here, and beyond it only some."""
# Beyond, whole numbers that float64 does not hold keep their own bits, mixed with one of these so
# that they are not taken for the bits of a float. Any two different constants would do: these are
# the first 64 bits of the fractional parts of the square roots of 2 and 3.
_POSITIVE = np.uint64(0x6A09E667F3BCC908)
_NEGATIVE = np.uint64(0xBB67AE8584CAA73B)
_BLOCK = 1 << 15
"""Rows hashed at a time, so that their words stay in the cache. Measured on a million rows of 8
float columns: 34 ms, against 48 ms in one block."""
MAX_RATIO = 10
"""How many times as frequent a repeated row may be in the first table."""
CHANCE = 1e-6
"""The probability of taking rows that are equal by chance for the same rows."""
_UNSEEN_TWINS = 10
"""Added to the count of twins: a count of none does not prove that there are none."""


def row_keys(seed: int, start: int, n_rows: int) -> NDArray[np.uint64]:
    """Return 64-bit keys of rows ``start`` to ``start + n_rows - 1``.

    Distinct rows have distinct keys: the mixing is a bijection of the row's number.

    Examples
    --------
    >>> whole = row_keys(7, 0, 10)
    >>> bool((row_keys(7, 4, 6) == whole[4:]).all())
    True
    """
    return lowest_keys(seed, start, n_rows, _HIGHEST_KEY)[1]


def lowest_keys(
    seed: int, start: int, n_rows: int, ceiling: np.uint64
) -> tuple[IntArray, NDArray[np.uint64]]:
    """Return which of the rows have a key up to ``ceiling``, and these keys.

    Examples
    --------
    >>> whole = row_keys(7, 0, 10)
    >>> rows, keys = lowest_keys(7, 0, 10, np.sort(whole)[2])
    >>> len(rows), bool((keys == whole[rows]).all())
    (3, True)
    """
    # The seed is mixed first, so that neighbouring seeds do not give shifted copies.
    offset = mix(np.array([seed % 2**64], dtype=np.uint64))
    # The last step of mixing leaves the upper bits alone, so few keys have to take it.
    at_most = ceiling | _BELOW_UPPER_BITS
    rows, keys = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint64)]
    with np.errstate(over="ignore"):  # arithmetic modulo 2**64 is intended
        steps = np.arange(min(n_rows, _ROWS_AT_ONCE), dtype=np.uint64) * GOLDEN_GAMMA
        bits, room = np.empty_like(steps), np.empty_like(steps)
        for first in range(0, n_rows, _ROWS_AT_ONCE):
            size = min(n_rows - first, _ROWS_AT_ONCE)
            begin = offset + np.uint64(start + first) * GOLDEN_GAMMA
            some = np.add(steps[:size], begin, out=bits[:size])
            _mix_but_last_step(some, room[:size])
            low = np.flatnonzero(some <= at_most)
            found = some[low]
            found ^= found >> _LAST_SHIFT
            keys.append(found)
            rows.append(low + first)
    all_rows, all_keys = np.concatenate(rows), np.concatenate(keys)
    if (lower := all_keys <= ceiling).all():
        return all_rows, all_keys
    return all_rows[lower], all_keys[lower]


def mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64-bit words in which each bit depends on every bit of the given word.

    A bijection: distinct words stay distinct.

    Examples
    --------
    >>> mix(np.array([0, 1], dtype=np.uint64)).tolist()
    [0, 6238072747940578789]
    """
    bits = bits.copy()
    _mix_but_last_step(bits, np.empty_like(bits))
    bits ^= bits >> _LAST_SHIFT
    return bits


def _mix_but_last_step(bits: NDArray[np.uint64], room: NDArray[np.uint64]) -> None:
    with np.errstate(over="ignore"):
        for shift, factor in ((30, _MIX_1), (27, _MIX_2)):
            np.right_shift(bits, np.uint64(shift), out=room)
            bits ^= room
            bits *= factor


Words = NDArray[np.uint64]


def hash_rows(columns: Sequence[NDArray[Any]], *, seed: int = 0) -> Words:
    """Return a 64-bit hash of each row.

    Parameters
    ----------
    columns : sequence of ndarray
        Floats, integers or booleans, all of one length, in an order that both sides of a comparison
        agree on. The type does not matter, the value does: 1, 1.0 and True are equal, so are 0.0
        and -0.0, all NaN, and a float32 and the float64 that it widens to.
    seed : int
        Each seed gives a different hash.

    Returns
    -------
    ndarray of uint64 of shape (n_rows,)

    Examples
    --------
    >>> ages = np.array([31, 45])
    >>> bool((hash_rows([ages.astype(float)]) == hash_rows([ages])).all())
    True
    """
    if not columns:
        raise InputError("hash_rows needs at least one column.")
    lengths = sorted({len(column) for column in columns})
    if len(lengths) > 1:
        raise InputError(f"The columns of a row hash must have one length; got {lengths}.")
    hashes: Words = np.empty(lengths[0], dtype=np.uint64)
    first = mix(np.array([seed % 2**64], dtype=np.uint64) ^ GOLDEN_GAMMA)
    for begin in range(0, len(hashes), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        mixed = first
        for column in columns:
            # mix is a bijection, so two rows that differ in one column never collide.
            mixed = mix(mixed ^ _words_of(column, block)) + GOLDEN_GAMMA
        hashes[block] = mixed
    return hashes


def _words_of(column: NDArray[Any], block: slice) -> Words:
    kind, size = column.dtype.kind, column.dtype.itemsize
    if column.ndim != 1 or kind not in "fiub" or size > 8:
        raise InputTypeError(
            "A column of a row hash must be a one-dimensional array of floats, integers or "
            f"booleans; got {column.dtype} of shape {column.shape}."
        )
    values = column[block]
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        numbers = values.astype(np.float64)
        numbers += 0.0  # -0.0 becomes 0.0
    words = numbers.view(np.uint64)
    if kind == "f":
        words[np.isnan(numbers)] = _MISSING
    elif size == 8:
        _keep_wide(words, values)
    return words


def _keep_wide(words: Words, values: NDArray[np.integer]) -> None:
    """Replace the words of whole numbers that float64 had to round."""
    wide = np.flatnonzero((values > _EXACT) | (values < -_EXACT))
    if not len(wide):
        return
    some = values[wide]
    negative = some < 0
    bits = some.astype(np.uint64)
    with np.errstate(over="ignore"):
        magnitude: Words = np.where(negative, -bits, bits)
        odd_part = magnitude // (magnitude & -magnitude)
    rounded = odd_part > _EXACT
    tag: Words = np.where(negative, _NEGATIVE, _POSITIVE)
    words[wide[rounded]] = mix(magnitude ^ tag)[rounded]


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
    # Imported here: the keys travel to machines without SciPy.
    from scipy.stats import binom

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


def order_by(keys: Sequence[NDArray[Any]]) -> IntArray:
    """Return the permutation of ``numpy.lexsort``, in which the last key decides first.

    Keys are looked at only as long as they leave ties, which for numbers is mostly one.

    Examples
    --------
    >>> order_by([np.array([2.0, 1.0, 3.0]), np.array([1.0, 1.0, 0.0])])
    array([2, 1, 0])
    """
    order = np.arange(len(keys[-1]))
    group = np.zeros(len(order), dtype=np.int64)  # rows of one group are tied so far
    for key in reversed(keys):
        order = order[np.lexsort((key[order], group))]  # groups stay where they are
        key = key[order]
        equal = (key[1:] == key[:-1]) | ((key[1:] != key[1:]) & (key[:-1] != key[:-1]))  # or NaN
        rises = (group[1:] != group[:-1]) | ~equal
        group = np.cumsum(np.concatenate([[False], rises]))[: len(order)]
        if rises.all():
            break
    return order


def distinct_points(points: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows of a matrix in rising order, and which of them each row is.

    As ``numpy.unique`` of rows, which takes several times as long.

    Examples
    --------
    >>> distinct_points(np.array([[2.0, 1.0], [0.0, 3.0], [2.0, 1.0]]))
    (array([[0., 3.], [2., 1.]]), array([1, 0, 1]))
    """
    order = order_by(list(points.T[::-1]))
    ordered = points[order]
    rises = np.ones(len(order), dtype=bool)
    rises[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(rises) - 1
    return ordered[rises], place


def quantile_borders(values: FloatArray, most: int) -> FloatArray:
    """Return the distinct values that are present, or of many, about as many quantiles.

    Each is a share of 1 / ``most`` of the values after the one before.

    Examples
    --------
    >>> quantile_borders(np.array([3.0, 1.0, np.nan, 1.0]), 9), quantile_borders(np.arange(9.0), 3)
    (array([1., 3.]), array([3., 6.]))
    """
    ordered = np.sort(values[~np.isnan(values)])
    borders = np.unique(ordered)
    if len(borders) <= most:
        return borders
    return np.unique(ordered[np.arange(1, most) * len(ordered) // most])


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
