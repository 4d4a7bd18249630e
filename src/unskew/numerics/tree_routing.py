"""The leaves of a decision tree by NumPy alone, as scikit-learn's trees find them.

scikit-learn's own ``apply`` is used wherever scikit-learn is. This is what travels to machines that
do not have it; it sends every row to the same leaf, at about the same speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.numerics.typing import BoolArray, FloatArray, IntArray

_LEVELS = 2
"""How many levels all rows go down before those that have arrived are taken out."""


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
    >>> TreeRouting.of(tree.tree_).cells(np.array([[0.5], [0.6], [np.nan]], dtype=np.float32))
    array([1, 2, 2])
    """

    feature: IntArray
    border: NDArray[np.float32]
    children: IntArray
    missing_left: BoolArray
    is_leaf: BoolArray

    @classmethod
    def of(cls, tree: Any) -> TreeRouting:
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
        """Return the number of each row's leaf; ``values`` are float32, as scikit-learn's are."""
        entries = values.reshape(-1)
        has_missing = bool(np.isnan(values).any())
        leaves = np.zeros(len(values), dtype=np.int64)
        rows = np.arange(len(values) if len(self.feature) > 1 else 0)
        first, node = rows * values.shape[1], np.zeros(len(rows), dtype=np.int64)
        while len(rows):
            for _ in range(_LEVELS):
                value = entries.take(first + self.feature.take(node))
                goes_left = value <= self.border.take(node)
                if has_missing:
                    goes_left |= np.isnan(value) & self.missing_left.take(node)
                node = self.children.take(2 * node + goes_left)
            arrived = self.is_leaf.take(node)
            leaves[rows[arrived]] = node[arrived]
            on = np.flatnonzero(~arrived)
            rows, first, node = rows.take(on), first.take(on), node.take(on)
        return leaves
