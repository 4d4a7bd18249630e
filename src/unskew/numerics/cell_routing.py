"""The cell of a row: the leaf of a decision tree, or the nearest of some centres, by NumPy alone.

Both give the same cells on every machine and for every size of block, and travel to machines that
do not have scikit-learn.

:class:`TreeRouting` sends every row to the leaf to which scikit-learn's own ``apply`` sends it.

:class:`NearestCentre` takes all distances from one matrix product, whose rounding differs with the
size of the blocks. The centres that rounding leaves in question are compared once more, entry by
entry in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.numerics.kernels import blocks
from unskew.numerics.typing import BoolArray, FloatArray, IntArray

_LEVELS = 3
"""How many levels all rows go down before those that have arrived are taken out."""

TIE = 1e-9
"""Centres are equally near if their distances differ by no more than this share."""

_FAR = 1e15
"""A row's squared length, in units of the centres' spread, beyond which no product decides: its
rounding error would be larger than any distance between centres."""

_TOO_FAR = 1e150
"""An entry of a row, in the same units, beyond which squares overflow."""


@dataclass(frozen=True)
class TreeRouting:
    """The nodes of a tree.

    Attributes
    ----------
    feature : ndarray of shape (n_nodes,)
    border : ndarray of float32 of shape (n_nodes,)
        A value up to here goes left.
    children : ndarray of shape (2 * n_nodes,)
        Each node's right and left child; a leaf is its own.
    missing_left : ndarray of bool of shape (n_nodes,)
        Whether a missing value goes left.
    is_leaf : ndarray of bool of shape (n_nodes,)

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> rows = np.array([[0.5], [0.6], [np.nan]], dtype=np.float32)
    >>> TreeRouting.from_tree(tree.tree_).cells(rows)
    array([1, 2, 2])
    """

    feature: IntArray
    border: NDArray[np.float32]
    children: IntArray
    missing_left: BoolArray
    is_leaf: BoolArray

    @classmethod
    def from_tree(cls, tree: Any) -> TreeRouting:
        """Return the routing of scikit-learn's low-level tree."""
        is_leaf = tree.children_left == -1
        own = np.arange(tree.node_count)
        children = np.column_stack([tree.children_right, tree.children_left])
        # scikit-learn compares float32 values with borders in double precision. They are on the
        # same side of the largest float32 that is not above the border.
        border = tree.threshold.astype(np.float32)
        above = border.astype(np.float64) > tree.threshold
        return cls(
            np.where(is_leaf, 0, tree.feature).astype(np.int64),
            np.where(above, np.nextafter(border, np.float32(-np.inf)), border),
            np.where(is_leaf[:, None], own[:, None], children).astype(np.int64).reshape(-1),
            tree.missing_go_to_left.astype(bool),
            is_leaf,
        )

    @property
    def n_cells(self) -> int:
        """The number of nodes."""
        return len(self.feature)

    def cells(self, values: FloatArray) -> IntArray:
        """Return the number of each row's leaf; ``values`` are float32, as scikit-learn's are.

        Columns that are contiguous in memory are read as they are, others are copied.
        """
        columns = np.ascontiguousarray(values.T)
        n_rows = len(values)
        with np.errstate(over="ignore", invalid="ignore"):  # one sum shows whether any is missing
            missing = np.isnan(columns).reshape(-1) if np.isnan(values.sum()) else None
        first = self.feature * n_rows  # where the column of a node begins among all entries
        entries = columns.reshape(-1)
        leaves = np.zeros(n_rows, dtype=np.int64)
        rows = np.arange(0 if self.is_leaf[0] else n_rows)
        node = leaves.take(rows)
        while len(rows):
            for _ in range(_LEVELS):
                place = first.take(node, mode="clip")
                place += rows
                goes_left = entries.take(place, mode="clip") <= self.border.take(node, mode="clip")
                if missing is not None:
                    goes_left |= missing.take(place) & self.missing_left.take(node)
                node *= 2
                node += goes_left
                node = self.children.take(node, mode="clip")
            leaves[rows] = node
            on = np.flatnonzero(~self.is_leaf.take(node))
            rows, node = rows.take(on), node.take(on)
        return leaves


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
        for part in blocks(len(values), self.n_cells):
            nearest, row, centre = self._search(values[part])
            squares, least = self._compare(values[part], row, centre)
            first = np.flatnonzero(squares == least)[::-1]  # of equal ones the first is set last
            nearest[row[first]] = centre[first]
            cells[part] = nearest
        return cells

    def all_nearest(self, values: FloatArray) -> tuple[IntArray, IntArray]:
        """Return pairs of a row and one of its nearest centres, by row and then by centre.

        A row so far from all centres that squared distances would overflow has none.
        """
        rows, centres = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for part in blocks(len(values), self.n_cells):
            nearest, row, centre = self._search(values[part])
            squares, least = self._compare(values[part], row, centre)
            near = squares <= least * (1 + TIE) ** 2
            nearest[row] = -1
            decided = np.flatnonzero(nearest >= 0)
            row = np.concatenate([decided, row[near]])
            order = np.argsort(row, kind="stable")
            rows.append(row[order] + part.start)
            centres.append(np.concatenate([nearest[decided], centre[near]])[order])
        return np.concatenate(rows), np.concatenate(centres)

    def _scaled(self) -> tuple[FloatArray, float, FloatArray]:
        """Return the middle of the centres, their scale, and them in units of both."""
        middle = self.centres.mean(axis=0)
        centres = self.centres - middle
        scale = float(np.abs(centres).max() or np.abs(middle).max() or 1.0)
        return middle, scale, centres / scale

    def _search(self, rows: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the nearest centre of each row, and the pairs that rounding leaves open.

        The nearest is -1 where a row is too far from all centres. An open row comes once for each
        centre that may be its nearest.
        """
        middle, scale, centres = self._scaled()
        # 1) All distances, as (‖x − c‖² − ‖x‖²) / 2 = (‖c‖² / 2, −c)·(1, x).
        factors = np.vstack([np.einsum("ij,ij->i", centres, centres) / 2, -centres.T])
        everyone = np.arange(len(rows))
        points = np.ones((len(rows), len(factors)))
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are left open
            points[:, 1:] = (rows - middle) / scale
            distances = points @ factors
            lengths = np.einsum("ij,ij->i", points, points)
            # 2) The nearest centre, and how much farther the second is.
            nearest = distances.argmin(axis=1)
            least = distances[everyone, nearest]
            distances[everyone, nearest] = np.inf
            margin = distances.min(axis=1) - least
            distances[everyone, nearest] = least
            # 3) The rounding error of a difference of two sums of d + 1 products: their sizes add
            #    up to at most (d + ‖(1, x)‖²) / 2, because no entry of a centre is above 1.
            #    Doubled, because the entries are rounded too. Equally near centres are left open:
            #    their squared distances, at most twice that size, differ by a share of 2 TIE.
            size = len(factors) + lengths
            error = (2 * len(factors) * np.finfo(float).eps + 4 * TIE) * size
            error[~(lengths < _FAR)] = np.inf
            left: IntArray = np.flatnonzero(~(margin > error))
            # 4) Rows of which no distance can be taken have no nearest centre.
            reach = np.abs(points[left]).max(axis=1)
            nearest[left[~(reach < _TOO_FAR)]] = -1
            left = left[reach < _TOO_FAR]
            place, centre = np.nonzero(~(distances[left] > (least + error)[left, None]))
        return nearest, left[place], centre

    def _compare(
        self, rows: FloatArray, row: IntArray, centre: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squared distance of each pair, and the least of the same row's pairs."""
        squares, scale = np.zeros(len(row)), self._scaled()[1]
        for values, centres in zip(rows.T, self.centres.T, strict=True):  # in a fixed order
            squares += ((values[row] - centres[centre]) / scale) ** 2
        if not len(row):
            return squares, squares
        first = np.flatnonzero(np.diff(row, prepend=-1))
        least = np.minimum.reduceat(squares, first)
        return squares, np.repeat(least, np.diff(first, append=len(row)))
