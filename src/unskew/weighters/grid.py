"""A partition by columns: each column has buckets or values, a cell is one of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from unskew.numerics.row_keys import DistinctRows
from unskew.numerics.typing import FloatArray, IntArray
from unskew.rows.groupings import lookup

FEW_BORDERS = 64
"""So many comparisons with whole columns take less time than a search for each value."""


class ColumnGrid(ABC):
    """Cuts one column; missing values are together in a piece of their own."""

    def __init__(self, borders: FloatArray) -> None:
        self.borders = borders

    def codes(self, column: FloatArray) -> IntArray:
        """Return each value's piece, or -1 where it is in none."""
        codes = self._present_codes(column)
        missing = np.isnan(column)
        if missing.any():
            codes[missing] = len(self.borders) + 1
        return codes

    @abstractmethod
    def _present_codes(self, column: FloatArray) -> IntArray: ...


class Values(ColumnGrid):
    """Each distinct value is a piece.

    Examples
    --------
    >>> Values(np.array([1.0, 3.0])).codes(np.array([3.0, 2.0, np.nan]))
    array([ 1, -1,  3])
    """

    @classmethod
    def of(cls, column: FloatArray) -> Values:
        """Return the distinct values of a column."""
        return cls(np.unique(column[~np.isnan(column)]))

    def _present_codes(self, column: FloatArray) -> IntArray:
        return lookup(self.borders, np.arange(len(self.borders)), column)


class Buckets(ColumnGrid):
    """Pieces between borders; a border belongs to the piece above it, the outer ones are open.

    Examples
    --------
    >>> Buckets(np.array([0.0, 10.0])).codes(np.array([-5.0, 0.0, 99.0]))
    array([0, 1, 2])
    """

    def _present_codes(self, column: FloatArray) -> IntArray:
        if len(self.borders) > FEW_BORDERS:
            return np.searchsorted(self.borders, column, side="right")
        reached = np.zeros(len(column), dtype=np.uint8)
        for border in self.borders:
            reached += column >= border
        return reached.astype(np.int64)


class GridPartition:
    """The cells that hold sample rows; any other row lies in none of them."""

    def __init__(self, columns: Sequence[ColumnGrid], values: FloatArray) -> None:
        self._columns = columns
        self._distinct = DistinctRows(self._codes(values))
        self.n_cells = self._distinct.size

    def cells(self, values: FloatArray) -> IntArray:
        """Return each row's cell, or -1 where no sample row shares it."""
        return self._distinct.find(self._codes(values))

    def _codes(self, values: FloatArray) -> IntArray:
        pairs = zip(self._columns, np.ascontiguousarray(values.T), strict=True)
        return np.array([grid.codes(column) for grid, column in pairs]).T
