"""Which features predict an outcome beyond others: a regression on the sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unskew.numerics.calibration import pseudo_inverse
from unskew.numerics.row_features import weighted_spread
from unskew.numerics.typing import BoolArray, FloatArray, IntArray

RIDGE = 1e-3
"""For the trial regressions, so that they exist for any features."""


class OutcomeRegression:
    """Columns of an outcome, and features of the same rows.

    Parameters
    ----------
    outcome : ndarray of shape (n_rows, n_columns)
    features : ndarray of shape (n_rows, n_features)
        Standardised.
    shares : ndarray of shape (n_rows,)
        Of the rows; they sum to one.
    base : ndarray of bool of shape (n_features,)
        The features that are in the regression in any case.
    """

    def __init__(
        self, outcome: FloatArray, features: FloatArray, shares: FloatArray, base: BoolArray
    ) -> None:
        centred = outcome - shares @ outcome
        self._y = centred / weighted_spread(outcome, shares)
        self._features, self._shares = features, shares
        self._base = np.column_stack([np.ones(len(features)), features[:, base]])
        self._inverse = pseudo_inverse(self._base.T @ (self._base * shares[:, None]))
        left = self._beyond(self._y)
        spread = np.sqrt(shares @ left**2)
        known: BoolArray = spread > RIDGE  # the base explains the others, or they are constant
        self._left = left[:, known] / spread[known]

    def _beyond(self, columns: FloatArray) -> FloatArray:
        """Return what the base does not explain of columns."""
        fitted = self._inverse @ (self._base.T @ (columns * self._shares[:, None]))
        return np.asarray(columns - self._base @ fitted)

    def gain(self, own: BoolArray) -> float:
        """Return the score statistic of adding features, a column; near one where it adds none."""
        values = self._features[:, own]
        if not self._left.shape[1] or not np.isfinite(values).all():
            return 0.0
        beyond = self._beyond(values)
        weighted = beyond * self._shares[:, None]
        cross, covariance = weighted.T @ self._left, weighted.T @ beyond
        if (np.diag(covariance) <= RIDGE * (self._shares @ values**2)).all():  # of the base
            return 0.0
        explained = np.einsum("ij,ij->", cross, pseudo_inverse(covariance) @ cross)
        effective = 1.0 / float(self._shares @ self._shares)
        return effective * float(explained) / (values.shape[1] * self._left.shape[1])

    def held_out_errors(self, places: IntArray, counts: Sequence[int], n_folds: int) -> list[float]:
        """Return the squared error on held-out rows of the base and the first of other features.

        Parameters
        ----------
        places : ndarray of int
            The other features, in order.
        counts : sequence of int
            How many of them.
        n_folds : int
            Rows are in folds in turn.
        """
        rows = np.column_stack([self._base, self._features[:, places]])
        n_base = self._base.shape[1]
        folds = np.arange(len(rows)) % n_folds
        grams, crosses = [], []
        for fold in range(n_folds):
            mine = rows[folds == fold]
            weighted = (mine * self._shares[folds == fold, None]).T
            grams.append(weighted @ mine)
            crosses.append(weighted @ self._y[folds == fold])
        gram, cross = np.sum(grams, axis=0), np.sum(crosses, axis=0)
        errors = []
        for count in counts:
            kept = slice(n_base + count)
            price = np.diag(np.append(0.0, np.full(n_base + count - 1, RIDGE)))
            error = 0.0
            for own, of_own in zip(grams, crosses, strict=True):
                beta = np.linalg.solve((gram - own)[kept, kept] + price, (cross - of_own)[kept])
                error += float(np.sum(beta * (own[kept, kept] @ beta - 2 * of_own[kept])))
            errors.append(error)  # less the squares of y, which all have in common
        return errors
