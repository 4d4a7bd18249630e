"""Count the columns in which two rows of categories agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.numerics.typing import IntArray

_AT_ONCE = 255
"""Columns that one byte can count."""


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
        for mine, theirs in pairs:
            equal = (mine[first, None] == theirs[second]).view(np.uint8)
            count = equal if count is None else np.add(count, equal, out=count)
        total = total + count.astype(np.float32)
    return np.asarray(total, dtype=np.float32)
