"""All the nearest of some points, ties included.

SciPy's k-d tree finds them. A machine without SciPy, to which this may have travelled, compares
with every point instead: slower, and the same answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.numerics.typing import FloatArray, IntArray

TIE = 1e-9
"""Points are equally near if their distances differ by no more than this share."""

_BLOCK_VALUES = 1 << 20


class NearestPoints:
    """Finds for any row the nearest of a set of points.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_columns)

    Examples
    --------
    >>> NearestPoints(np.array([[0.0], [2.0], [9.0]])).find(np.array([[1.0], [8.0]]))
    (array([0, 0, 1]), array([0, 1, 2]))
    """

    def __init__(self, points: FloatArray) -> None:
        self.points = points
        self._tree: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"points": self.points, "_tree": None}  # the tree is built again where it is used

    def find(self, rows: FloatArray) -> tuple[IntArray, IntArray]:
        """Return pairs of a row and one of its nearest points, by row and then by point."""
        try:
            from scipy.spatial import cKDTree
        except ImportError:
            return self._compare(rows)
        if self._tree is None:
            self._tree = cKDTree(self.points)
        distances, _ = self._tree.query(rows)
        near = self._tree.query_ball_point(rows, distances * (1 + TIE), return_sorted=True)
        counts = np.array([len(found) for found in near], dtype=np.int64)
        return np.repeat(np.arange(len(rows)), counts), np.concatenate(
            [np.empty(0, dtype=np.int64), *(np.asarray(found, dtype=np.int64) for found in near)]
        )

    def _compare(self, rows: FloatArray) -> tuple[IntArray, IntArray]:
        step = max(1, _BLOCK_VALUES // len(self.points))
        rows_found, points_found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            squares = np.zeros((len(block), len(self.points)))
            for mine, theirs in zip(block.T, self.points.T, strict=True):
                squares += (mine[:, None] - theirs) ** 2
            distances = np.sqrt(squares)
            near = distances <= distances.min(axis=1, keepdims=True) * (1 + TIE)
            row, point = np.nonzero(near)
            rows_found.append(row + start)
            points_found.append(point)
        return np.concatenate(rows_found), np.concatenate(points_found)
