"""The nearest of some centres, the same on every machine and for every size of block.

A matrix product gives all distances up to rounding, which differs with the size of the blocks: in
single precision and, for rows where that could matter, in double. The centres that even this leaves
in question are compared once more, entry by entry in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unskew.numerics.kernels import blocks
from unskew.numerics.typing import FloatArray, IntArray

TIE = 1e-9
"""Centres are equally near if their distances differ by no more than this share."""

_FAR = 1e15
"""A row's squared length, in units of the centres' spread, beyond which no product decides: its
rounding error would be larger than any distance between centres."""

_TOO_FAR = 1e150
"""An entry of a row, in the same units, beyond which squares overflow."""


class _Form(NamedTuple):
    """The centres in one precision: what gives (‖x − c‖² − ‖x‖²) / 2 of a point (1, x)."""

    middle: FloatArray
    """What is taken off a row first."""
    scale: float
    """By what it is divided then."""
    factors: FloatArray


class _Found(NamedTuple):
    """The nearest centre of each row of a block, where rounding does not matter."""

    nearest: IntArray
    """-1 where a row is too far from all centres."""
    row: IntArray
    """The rows that are left open, once for each centre that may be their nearest, and these."""
    centre: IntArray


class NearestCentre:
    """The cells of k-means: a row's cell is its nearest centre, the first if there are several.

    Examples
    --------
    >>> nearest = NearestCentre(np.array([[0.0], [4.0]]))
    >>> nearest.cells(np.array([[1.0], [2.0], [3.0]]))
    array([0, 0, 1])
    >>> nearest.all_nearest(np.array([[1.0], [2.0], [3.0]]))
    (array([0, 1, 1, 2]), array([0, 0, 1, 1]))
    """

    def __init__(self, centres: FloatArray) -> None:
        self.centres = np.asarray(centres, dtype=np.float64)
        self.n_cells = len(centres)

    def cells(self, values: FloatArray) -> IntArray:
        """Return the number of each row's nearest centre.

        It is -1 for a row so far from all centres that squared distances would overflow.
        """
        cells = np.empty(len(values), dtype=np.int64)
        forms = self._forms
        for part in blocks(len(values), self.n_cells):
            nearest, row, centre = _search(values[part], forms)
            squares, least = self._compare(values[part], row, centre, forms[0].scale)
            first = np.flatnonzero(squares == least)[::-1]  # of equal ones the first is set last
            nearest[row[first]] = centre[first]
            cells[part] = nearest
        return cells

    def all_nearest(self, values: FloatArray) -> tuple[IntArray, IntArray]:
        """Return pairs of a row and one of its nearest centres, by row and then by centre.

        A row so far from all centres that squared distances would overflow has none.
        """
        rows, centres = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        forms = self._forms
        for part in blocks(len(values), self.n_cells):
            nearest, row, centre = _search(values[part], forms)
            squares, least = self._compare(values[part], row, centre, forms[0].scale)
            near = squares <= least * (1 + TIE) ** 2
            nearest[row] = -1
            decided = np.flatnonzero(nearest >= 0)
            row = np.concatenate([decided, row[near]])
            order = np.argsort(row, kind="stable")
            rows.append(row[order] + part.start)
            centres.append(np.concatenate([nearest[decided], centre[near]])[order])
        return np.concatenate(rows), np.concatenate(centres)

    @property
    def _forms(self) -> list[_Form]:
        """The centres in single and in double precision."""
        middle = self.centres.mean(axis=0)
        centres = self.centres - middle
        scale = float(np.abs(centres).max() or np.abs(middle).max() or 1.0)
        centres /= scale
        halves = np.einsum("ij,ij->i", centres, centres) / 2
        factors = np.vstack([halves, -centres.T])
        return [_Form(middle, scale, factors.astype(dtype)) for dtype in (np.float32, np.float64)]

    def _compare(
        self, rows: FloatArray, row: IntArray, centre: IntArray, scale: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squared distance of each pair, and the least of the same row's pairs."""
        squares = np.zeros(len(row))
        for mine, theirs in zip(rows.T, self.centres.T, strict=True):
            squares += ((mine[row] - theirs[centre]) / scale) ** 2
        if not len(row):
            return squares, squares
        first = np.flatnonzero(np.diff(row, prepend=-1))
        least = np.minimum.reduceat(squares, first)
        return squares, np.repeat(least, np.diff(first, append=len(row)))


def _search(rows: FloatArray, forms: Sequence[_Form]) -> _Found:
    """Find the nearest centres by the first of the forms, and by the others where it is open."""
    middle, scale, factors = forms[0]
    everyone = np.arange(len(rows))
    points = np.ones((len(rows), len(factors)), dtype=factors.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # such rows are left open
        # 1) All distances, relative to the middle of the centres.
        points[:, 1:] = (rows - middle) / scale
        distances = points @ factors
        lengths = np.einsum("ij,ij->i", points, points)
        # 2) The nearest centre, and how much farther the second is.
        nearest = distances.argmin(axis=1)
        least = distances[everyone, nearest]
        distances[everyone, nearest] = np.inf
        margin = distances.min(axis=1) - least
        distances[everyone, nearest] = least
        # 3) The rounding error of a difference of two sums of d + 1 products: their sizes add up to
        # at most (d + ‖(1, x)‖²) / 2, because no entry of a centre is above 1. Doubled, because the
        # entries are rounded too. Equally near centres are left open: their squared distances, at
        # most twice that size, differ by a share of 2 TIE.
        size = len(factors) + lengths
        error = (2 * len(factors) * np.finfo(factors.dtype).eps + 4 * TIE) * size
        error[~(lengths < _FAR)] = np.inf
        left: IntArray = np.flatnonzero(~(margin > error))
        if not len(left):
            return _Found(nearest, left, left)
        if len(forms) > 1:
            again = _search(rows[left], forms[1:])
            nearest[left] = again.nearest
            return _Found(nearest, left[again.row], again.centre)
        # 4) Rows of which no distance can be taken have no nearest centre.
        reach = np.abs(points[left]).max(axis=1)
        nearest[left[~(reach < _TOO_FAR)]] = -1
        left = left[reach < _TOO_FAR]
        place, centre = np.nonzero(~(distances[left] > (least + error)[left, None]))
    return _Found(nearest, left[place], centre)
