"""Outcome models by name: they take any table, with text, categories and missing values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from unskew.errors import ParameterError
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.population.encode import ColumnCodes
from unskew.population.feature_space import FeatureSpace
from unskew.population.kinds import Kind
from unskew.population.rows import as_rows

NAMES = ("boosted", "linear")
Columns = Callable[[Any], FloatArray]
MOST_CATEGORIES = 255


def learner_by_name(
    name: str, *, classify: bool, random_state: Any, beside: Columns | None = None
) -> Any:
    """Return an outcome model.

    Parameters
    ----------
    name : {"boosted", "linear"}
        Boosted trees on codes, or a linear or logistic model on standardised columns.
    classify : bool
        Whether it predicts probabilities of classes.
    random_state : int, RandomState instance or None
    beside : callable, optional
        Takes rows, and returns further columns of numbers to predict from.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LinearRegression, LogisticRegression

    if name not in NAMES:
        raise ParameterError(
            f"outcome must be a learner or one of {', '.join(NAMES)}; got {name!r}."
        )
    if name == "linear":
        inner = LogisticRegression(max_iter=1000) if classify else LinearRegression()
    else:
        family = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
        # Small leaves and many trees learn the rows by heart; these are for samples of hundreds,
        # and for scores, which columns hardly predict (fewer err less than 100 there).
        inner = family(max_iter=30, learning_rate=0.1, max_leaf_nodes=8, random_state=random_state)
    return (OnTableClassifier if classify else OnTableRegressor)(inner, beside)


class _OnTable(BaseEstimator):
    """A learner of numbers that is given tables."""

    def __init__(self, learner: Any, beside: Columns | None = None) -> None:
        self.learner = learner
        self.beside = beside

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Encode the table and fit the learner."""
        from sklearn.base import clone

        batch = as_rows(X, name="X").batch
        self.codes_ = ColumnCodes()
        values = self.codes_.fit_transform(batch)
        learner = clone(self.learner)
        if "categorical_features" in learner.get_params():
            categories = self._categories(values)
            width = 0 if self.beside is None else self.beside(X).shape[1]
            learner.set_params(categorical_features=np.append(categories, np.zeros(width, bool)))
            self.space_: FeatureSpace | None = None
        else:
            self.space_ = FeatureSpace(scaling="standard").fit_codes(self.codes_, values)
        self.learner_ = learner.fit(self._numbers(values, X), y, sample_weight=sample_weight)
        return self

    def _categories(self, values: FloatArray) -> BoolArray:
        few = [
            self.codes_.n_categories(place) <= MOST_CATEGORIES for place in range(values.shape[1])
        ]
        return np.array([kind == Kind.CATEGORY for kind in self.codes_.kinds]) & np.array(few)

    def _numbers(self, values: FloatArray, X: Any) -> FloatArray:
        if self.space_ is not None:
            numbers = self.space_.of_codes(values)
        else:
            categories = [kind == Kind.CATEGORY for kind in self.codes_.kinds]
            numbers = np.where((values < 0) & np.array(categories), np.nan, values)  # unseen ones
        return numbers if self.beside is None else np.column_stack([numbers, self.beside(X)])

    def _points(self, X: Any) -> FloatArray:
        batch = as_rows(X, name="X").batch
        return self._numbers(self.codes_.transform(batch, side="new rows").values, X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the learner's predictions."""
        return np.asarray(self.learner_.predict(self._points(X)))


class OnTableRegressor(RegressorMixin, _OnTable):
    """A regressor of numbers that is given tables."""


class OnTableClassifier(ClassifierMixin, _OnTable):
    """A classifier of numbers that is given tables."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes."""
        return np.asarray(self.learner_.classes_)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the learner's probabilities."""
        return np.asarray(self.learner_.predict_proba(self._points(X)))
