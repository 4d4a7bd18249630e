"""The nearest of a few centres, the same on every machine and for every size of block.

One matrix product in single precision gives all distances up to rounding, which differs with the
size of the blocks; rows for which that could matter are compared once more, in double precision,
entry by entry in a fixed order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unskew.numerics.kernels import blocks
from unskew.numerics.typing import FloatArray, IntArray

_FAR = 1e15
"""A row's squared length, in units of the centres' spread, beyond which rows are always compared in
double precision: the margin below would be larger than any distance between centres."""


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
        middle, scale, narrow = self._narrow_centres
        # The rounding error of a difference of two sums of d + 1 products: their sizes add up to at
        # most (d + ‖(1, x)‖²) / 2, because no entry of a centre is above 1. Doubled, because the
        # entries are rounded too.
        n_terms = len(narrow)
        precision = 2 * n_terms * np.finfo(np.float32).eps
        for part in blocks(len(values), self.n_cells):
            # 1) All distances in single precision, relative to the middle of the centres.
            rows = values[part]
            everyone = np.arange(len(rows))
            points = np.ones((len(rows), len(narrow)), dtype=np.float32)
            with np.errstate(
                over="ignore", invalid="ignore"
            ):  # such rows are compared in double precision
                points[:, 1:] = (rows - middle) / scale
                distances = points @ narrow
                lengths = np.einsum("ij,ij->i", points, points)
            # 2) The nearest centre, and how much farther the second is.
            found = distances.argmin(axis=1)
            least = distances[everyone, found]
            distances[everyone, found] = np.inf
            margin = distances.min(axis=1) - least
            # 3) Where rounding could have changed the order, compare in double precision.
            sure = (margin > precision * (n_terms + lengths)) & (lengths < _FAR)
            if not sure.all():
                found[~sure] = self._squares(rows[~sure]).argmin(axis=1)
            nearest[part] = found
        return nearest

    @property
    def _narrow_centres(self) -> tuple[FloatArray, float, NDArray[np.float32]]:
        """Return a shift, a scale, and what gives (‖x − c‖² − ‖x‖²) / 2 of a point (1, x)."""
        middle = self.centres.mean(axis=0)
        centres = self.centres - middle
        scale = float(np.abs(centres).max() or np.abs(middle).max() or 1.0)
        centres /= scale
        halves = np.einsum("ij,ij->i", centres, centres) / 2
        return middle, scale, np.vstack([halves, -centres.T]).astype(np.float32)

    def _squares(self, rows: FloatArray) -> FloatArray:
        squares = np.zeros((len(rows), self.n_cells))
        _, scale, _ = self._narrow_centres
        for mine, theirs in zip(rows.T, self.centres.T, strict=True):
            squares += ((mine[:, None] - theirs) / scale) ** 2
        return squares
