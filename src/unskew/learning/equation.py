"""The columns of a regression equation: a constant, numbers, and categories as zeros and ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from unskew.errors import warn_caller
from unskew.numerics.typing import FloatArray, IntArray
from unskew.overlap import warn_of_unseen
from unskew.population.encode import ColumnCodes
from unskew.population.feature_space import FeatureSpace

CONSTANT = "(constant)"


class Equation:
    """Rows to regressors, learned from rows.

    Numbers stay as they are; of each column of categories, all but the first become a column of
    zeros and ones; a missing number becomes the mean, and a further column says so.

    Parameters
    ----------
    batches : sequence of pyarrow.RecordBatch
        The rows to learn from, with the same columns.

    Examples
    --------
    >>> rows = pa.record_batch({"age": [30, 40], "town": ["Ulm", "Bonn"]})
    >>> equation = Equation([rows])
    >>> equation.names, equation.matrix(rows)
    (['(constant)', 'age', 'town = Ulm'], array([[ 1., 30.,  1.], [ 1., 40.,  0.]]))
    """

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        codes = ColumnCodes().fit(batches[0])
        for batch in batches[1:]:
            codes = codes.joined(batch)
        self.columns: list[str] = codes.names
        values = np.vstack([codes.transform(batch, side="rows").values for batch in batches])
        self._space = FeatureSpace(scaling=None).fit_codes(codes, values)
        self._used = np.setdiff1d(np.arange(self._space.n_features), self._space.first_categories())
        self._labels = [CONSTANT, *np.array(self._space.labels(), dtype=object)[self._used]]

    @property
    def names(self) -> list[str]:
        """What each regressor is."""
        return list(self._labels)

    def keep(self, kept: IntArray) -> list[str]:
        """Leave out the other regressors from now on, and return what they are."""
        left_out = [name for place, name in enumerate(self._labels) if place not in kept]
        self._labels = [self._labels[place] for place in kept]
        self._used = self._used[kept[kept > 0] - 1]  # the constant always stays: it is the first
        return left_out

    def matrix(self, batch: pa.RecordBatch) -> FloatArray:
        """Return the regressors of rows with these columns."""
        points = self._space.transform(batch, side="rows").values
        return np.column_stack([np.ones(len(points)), points[:, self._used]])

    def warn_of_unseen(self, batch: pa.RecordBatch, predictions: FloatArray) -> None:
        """Warn of new rows with values that no row had from which the equation was learned."""
        how = "the first category, or the mean, stands for the value"
        warning = warn_of_unseen(self._space.codes, batch, predictions, how, what="prediction")
        if warning is not None:
            warn_caller(warning)
