"""The nearest of a few centres, whoever computes it and in however many pieces.

One matrix product gives all distances up to rounding, which differs with the size of the blocks;
rows for which that could matter are compared once more, entry by entry in a fixed order.
"""

from __future__ import annotations

import numpy as np

from unskew.numerics.kernels import blocks
from unskew.numerics.typing import FloatArray, IntArray

__all__ = ["NearestCentre"]

_CLOSE = 1e-9


class NearestCentre:
    """The cells of k-means: a row's cell is its nearest centre, the first if there are several.

    Examples
    --------
    >>> NearestCentre(np.array([[0.0], [4.0]])).cells(np.array([[1.0], [2.0], [3.0]]))
    array([0, 0, 1])
    """

    def __init__(self, centres: FloatArray) -> None:
        self.centres = np.asarray(centres, dtype=np.float64)
        self.n_cells = len(centres)

    def cells(self, values: FloatArray) -> IntArray:
        """Return the number of each row's nearest centre."""
        nearest = np.empty(len(values), dtype=np.int64)
        halves = 0.5 * np.einsum("ij,ij->i", self.centres, self.centres)
        for part in blocks(len(values), self.n_cells):
            rows = values[part]
            # (‖x − c‖² − ‖x‖²) / 2
            distances = halves - rows @ self.centres.T
            found = distances.argmin(axis=1)
            least = distances[np.arange(len(rows)), found]
            error = _CLOSE * (np.abs(least) + halves.max() + np.einsum("ij,ij->i", rows, rows))
            tied = np.flatnonzero((distances <= (least + error)[:, None]).sum(axis=1) > 1)
            if len(tied):
                found[tied] = self._squares(rows[tied]).argmin(axis=1)
            nearest[part] = found
        return nearest

    def _squares(self, rows: FloatArray) -> FloatArray:
        squares = np.zeros((len(rows), self.n_cells))
        for mine, theirs in zip(rows.T, self.centres.T, strict=True):
            squares += (mine[:, None] - theirs) ** 2
        return squares
