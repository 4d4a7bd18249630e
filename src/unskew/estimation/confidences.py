"""How sure a model is of a row: what predicts its score best, beside the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from unskew._compat import _safe_indexing
from unskew.numerics.row_hash import Words, hash_rows
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.encode import ColumnCodes
from unskew.population.rows import as_rows


class Confidence:
    """A column of numbers for any rows, by models that have not seen them.

    A row of the sample is one of the model's whose test fold it is in; any other row is one of a
    model that its values decide, so that the column has the same meaning on both sides. A mean
    over the models would not: it varies less than one of them.

    Parameters
    ----------
    models : sequence of fitted estimators
    folds : ndarray of int of shape (n_rows,)
        Which of them has not seen a row of the sample.
    X : object
        The sample.
    """

    def __init__(self, models: Sequence[Any], folds: IntArray, X: Any) -> None:
        self._models, self._codes = list(models), ColumnCodes()
        hashes = _hashed(self._codes.fit_transform(as_rows(X, name="X").batch))
        self._known, first = np.unique(hashes, return_index=True)
        self._folds = folds[first]

    @classmethod
    def of(cls, models: Sequence[Any], folds: IntArray, X: Any) -> Confidence | None:
        """Return it, or None for classifiers that give classes alone."""
        able = all(_response(model) is not None for model in models)
        return cls(models, folds, X) if able else None

    def __deepcopy__(self, memo: Any) -> Confidence:  # scikit-learn's clones share the models
        return self

    def __call__(self, X: Any) -> FloatArray:
        """Return one column."""
        batch = as_rows(X, name="X").batch
        hashes = _hashed(self._codes.transform(batch, side="new rows").values)
        place = np.minimum(np.searchsorted(self._known, hashes), len(self._known) - 1)
        folds = np.where(
            self._known[place] == hashes,
            self._folds[place],
            (hashes % np.uint64(len(self._models))).astype(np.int64),
        )
        column = np.zeros(len(hashes))
        for number, model in enumerate(self._models):
            own = np.flatnonzero(folds == number)
            if len(own):
                column[own] = _sureness(model, _safe_indexing(X, own))
        return column[:, None]


def _hashed(codes: FloatArray) -> Words:
    return hash_rows([np.ascontiguousarray(column) for column in codes.T])


def _response(model: Any) -> str | None:
    if not is_classifier(model):
        return "predict"
    return next(
        (name for name in ("predict_proba", "decision_function") if hasattr(model, name)), None
    )


def _sureness(model: Any, X: Any) -> FloatArray:
    """Return the largest probability or score of a class, or what a regressor predicts."""
    name = _response(model)
    assert name is not None
    values = np.asarray(getattr(model, name)(X), dtype=float)
    if name == "predict":
        return values.reshape(-1)
    return values.max(axis=1) if values.ndim == 2 else np.abs(values)
