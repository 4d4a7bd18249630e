"""Mean and variance of columns, in one pass."""

from __future__ import annotations

import numpy as np

from unskew.numerics.typing import FloatArray
from unskew.population.summaries import RowBlock, Summary


class Moments(Summary):
    """Weighted mean and variance of each column of a matrix; missing entries are left out.

    Merging uses the centred update of Chan, Golub and LeVeque, "Algorithms for computing the sample
    variance", The American Statistician 37 (1983), so that columns far from zero keep their digits.

    Examples
    --------
    >>> moments = Moments(1)
    >>> moments.update(RowBlock(np.array([[1.0], [2.0], [np.nan]]), np.ones(3)))
    >>> moments.mean, moments.variance, moments.mass
    (array([1.5]), array([0.25]), array([2.]))
    """

    def __init__(self, n_columns: int) -> None:
        self.mass: FloatArray = np.zeros(n_columns)
        self.mean: FloatArray = np.zeros(n_columns)
        self._squares: FloatArray = np.zeros(n_columns)

    @property
    def variance(self) -> FloatArray:
        """The population variance, that is with divisor ``mass``."""
        return self._squares / np.maximum(self.mass, np.finfo(float).tiny)

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a matrix."""
        values, weight = rows.batch, rows.weight
        present = ~np.isnan(values)
        part = Moments(values.shape[1])
        part.mass = weight @ present
        divisor = np.maximum(part.mass, np.finfo(float).tiny)
        part.mean = weight @ np.where(present, values, 0.0) / divisor
        part._squares = weight @ np.where(present, values - part.mean, 0.0) ** 2
        self.merge(part)

    def merge(self, other: Moments) -> None:
        """Combine with the moments of other rows."""
        mass = self.mass + other.mass
        share = other.mass / np.maximum(mass, np.finfo(float).tiny)
        shift = other.mean - self.mean
        self._squares += other._squares + shift**2 * self.mass * share
        self.mean = self.mean + shift * share
        self.mass = mass
