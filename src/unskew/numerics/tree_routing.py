"""The leaves of a decision tree by NumPy alone, as scikit-learn's trees find them.

scikit-learn's own ``apply`` is faster and is used wherever scikit-learn is. This is what travels to
machines that do not have it, and it must send every row to the same leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.numerics.typing import BoolArray, FloatArray, IntArray

__all__ = ["TreeRouting"]


@dataclass(frozen=True)
class TreeRouting:
    """The nodes of a tree; a node without children, whose ``left`` is -1, is a leaf.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> TreeRouting.of(tree.tree_).cells(np.array([[0.5], [0.6], [np.nan]], dtype=np.float32))
    array([1, 2, 2])
    """

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    missing_left: BoolArray

    @classmethod
    def of(cls, tree: Any) -> TreeRouting:
        """Return the routing of scikit-learn's low-level tree."""
        return cls(
            tree.feature.copy(),
            tree.threshold.copy(),
            tree.children_left.copy(),
            tree.children_right.copy(),
            tree.missing_go_to_left.astype(bool),
        )

    @property
    def n_cells(self) -> int:
        """The number of nodes."""
        return len(self.left)

    def cells(self, values: FloatArray) -> IntArray:
        """Return the number of each row's leaf; ``values`` are float32, as scikit-learn's are."""
        node = np.zeros(len(values), dtype=np.int64)
        under_way = np.arange(len(values)) if self.left[0] != -1 else np.arange(0)
        while len(under_way):
            at = node[under_way]
            value = values[under_way, self.feature[at]]
            # A float32 against a border in double precision: "<=" goes left, as in scikit-learn.
            goes_left = value <= self.threshold[at]
            missing = np.isnan(value)
            if missing.any():
                goes_left = np.where(missing, self.missing_left[at], goes_left)
            then = np.where(goes_left, self.left[at], self.right[at])
            node[under_way] = then
            under_way = under_way[self.left[then] != -1]
        return node
