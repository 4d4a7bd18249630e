"""What a model predicts at the sample's rows: once, for every score and every replicate."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import sklearn
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, StratifiedKFold

from unskew._compat import _safe_indexing
from unskew.errors import InputError, ParameterError
from unskew.learning.trainer import aligned, train
from unskew.numerics.typing import IntArray

RESPONSES = ("predict", "predict_proba", "decision_function")


@dataclass(frozen=True)
class Predictions:
    """The responses of a model, or of models that have not seen the row.

    Attributes
    ----------
    responses : dict from str to ndarray
        By the method that gives them.
    classes : ndarray or None
    note : str
        Of which model these are.
    models : list of fitted estimators
    folds : ndarray of int
        Which of them predicts at each row.
    """

    responses: dict[str, Any]
    classes: Any
    note: str
    models: list[Any]
    folds: IntArray

    @classmethod
    def of(
        cls, model: Any, X: Any, y: Any, population: Any, cv: Any, random_state: Any
    ) -> Predictions:
        """Predict at the rows of X."""
        if cv is None:
            note = "The model is taken not to have seen these rows."
            only = np.zeros(len(y), dtype=np.int64)
            try:
                if is_classifier(model) and not hasattr(model, "classes_"):
                    raise NotFittedError
                classes = np.asarray(model.classes_) if is_classifier(model) else None
                return cls(_responses(model, X, classes), classes, note, [model], only)
            except NotFittedError as error:
                raise ParameterError(
                    f"{type(model).__name__} is not fitted. Fit it on other rows, or use cv=5, "
                    "which fits clones of it."
                ) from error
        classes = np.unique(y) if is_classifier(model) else None
        if classes is not None and len(classes) < 2:
            raise InputError(f"y is {classes[0]} in every row, of which no classifier can learn.")
        parts: dict[str, Any] = {}
        models: list[Any] = []
        folds = np.zeros(len(y), dtype=np.int64)
        for seen, test in _splits(cv, X, y, classes is not None, random_state):
            folds[test] = len(models)
            fitted = train(model, _safe_indexing(X, seen), y[seen], population)
            for name, values in _responses(fitted, _safe_indexing(X, test), classes).items():
                whole = parts.setdefault(
                    name, np.zeros((len(y), *values.shape[1:]), dtype=values.dtype)
                )
                whole[test] = values
            models.append(fitted)
        note = f"The score is that of models of {len(models)} folds."
        return cls(parts, classes, note, models, folds)

    @property
    def predicted(self) -> Any:
        """The prediction at each row."""
        return self.responses["predict"]

    def probabilities(self) -> Any:
        """Return the probability of each class, or raise that there is none."""
        if "predict_proba" not in self.responses:
            raise ParameterError("This score needs a model with predict_proba.")
        return self.responses["predict_proba"]

    def as_model(self) -> Any:
        """Return a model that predicts at numbers of rows what is known there."""
        family: Any = _KnownRegressor if self.classes is None else _KnownClassifier
        return family(self)


class _Known:
    """Looks up predictions; a scorer takes it for the model."""

    def __init__(self, known: Predictions) -> None:
        self._known = known
        if known.classes is not None:
            self.classes_ = known.classes
        for name, values in known.responses.items():
            setattr(self, name, _look_up(name, values))

    def fit(self, X: Any, y: Any) -> _Known:  # scorers ask whether there is one
        raise NotImplementedError


def _look_up(name: str, values: Any) -> Any:
    def response(places: Any) -> Any:
        return values[places]

    response.__name__ = name  # by which scorers distinguish the responses
    return response


class _KnownClassifier(ClassifierMixin, _Known, sklearn.base.BaseEstimator):
    pass


class _KnownRegressor(RegressorMixin, _Known, sklearn.base.BaseEstimator):
    pass


def _splits(cv: Any, X: Any, y: Any, classify: bool, random_state: Any) -> Any:
    if isinstance(cv, Integral):
        if int(cv) < 2:
            raise ParameterError(f"cv must be 2 folds or more; got {cv!r}.")
        family = StratifiedKFold if classify else KFold
        cv = family(int(cv), shuffle=True, random_state=random_state)
    splits = list(cv.split(X, y) if hasattr(cv, "split") else cv)
    tested = np.concatenate([np.asarray(test) for _, test in splits])
    if len(tested) != len(y) or len(np.unique(tested)) != len(y):
        raise ParameterError("cv must put every row into exactly one test fold.")
    return splits


def _responses(model: Any, X: Any, classes: Any) -> dict[str, Any]:
    if not hasattr(model, "predict"):
        raise ParameterError(f"model must predict; got {type(model).__name__}.")
    found = {}
    for name in RESPONSES:
        if not hasattr(model, name):
            continue
        values = np.asarray(getattr(model, name)(X))
        if name == "predict_proba" and classes is not None and values.shape[1] < len(classes):
            values = aligned(values, model.classes_, classes)
        elif name == "decision_function" and len(model.classes_) < len(classes):
            raise InputError("A training fold lacks a class. Use fewer folds.")
        found[name] = values
    return found
