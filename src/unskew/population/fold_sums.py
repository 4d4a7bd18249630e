"""Sums of a kernel over the folds of a population: what a cross-validated density ratio asks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from unskew.numerics.point_folds import EVERY, N_FOLDS, PointFolds, Sums
from unskew.numerics.typing import FloatArray
from unskew.population.kernel_sums import KernelSums


class FoldSums(KernelSums):
    """Kernel sums, in double precision, by the fold that a row's values are in.

    Parameters
    ----------
    folds : PointFolds
    squares : bool
        Whether to gather the sums of products of two kernel values as well.
    <all others> : as of :class:`KernelSums`

    Attributes
    ----------
    first : ndarray of shape (n_folds + 1, m)
        The last are the sums over rows that are divided over all folds.
    second : ndarray of shape (n_folds + 1, m, m), or of size zero
    masses : ndarray of shape (n_folds + 1,)
    """

    shared = KernelSums.shared | {"folds", "squares"}
    added: ClassVar[tuple[str, ...]] = (*KernelSums.added, "first", "second", "masses")

    def __init__(
        self, *given: Any, folds: PointFolds, squares: bool, frequencies: FloatArray | None
    ) -> None:
        super().__init__(*given, frequencies=frequencies, dtype=np.float64)
        self.folds = folds
        self.squares = squares
        size = len(self.sums)
        self.first: FloatArray = np.zeros((N_FOLDS + 1, size))
        self.second: FloatArray = np.zeros((N_FOLDS + 1, size, size) if squares else 0)
        self.masses: FloatArray = np.zeros(N_FOLDS + 1)

    def _add(self, values: FloatArray, weight: FloatArray, block: FloatArray) -> None:
        super()._add(values, weight, block)
        fold = self.folds.of_hashes(self.folds.hash(values))
        for place in np.unique(fold):
            rows = np.flatnonzero(fold == place)
            part = Sums.of(block[rows], weight[rows], squares=self.squares)
            self.masses[place] += part.mass
            self.first[place] += part.first
            if part.second is not None:
                self.second[place] += part.second

    def total(self) -> Sums:
        """Return the sums over all rows, for a mass of one."""
        return self._scaled(self.masses.sum(), *(part.sum(axis=0) for part in self._sums()))

    def held_out(self, fold: int) -> Sums:
        """Return the sums over a fold, for a mass of one of all rows."""
        mass = self.masses[fold] + self.masses[EVERY] / N_FOLDS
        parts = [part[fold] + part[EVERY] / N_FOLDS for part in self._sums()]
        return self._scaled(mass, *parts)

    def _sums(self) -> list[FloatArray]:
        return [self.first, self.second] if self.squares else [self.first]

    def _scaled(self, mass: float, *parts: FloatArray) -> Sums:
        whole = self.masses.sum()
        return Sums(float(mass / whole), *(part / whole for part in parts))
