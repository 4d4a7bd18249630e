"""A learner's own loss, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from unskew.numerics.typing import FloatArray

RowLoss = Callable[[Any, Any, Any], FloatArray]
"""Takes a fitted learner, rows and labels, and returns one number for each row."""

_LEAST_CHANCE = 1e-6
"""A class that was thought impossible costs no more than 13.8 nats."""


def row_loss(learner: Any) -> tuple[str, RowLoss]:
    """Return the name and the function of the loss that a learner minimises.

    The log loss of a classifier with probabilities, the hinge loss of one with a decision function,
    otherwise errors; for regressors what they declare as ``loss``, the deviance of generalised
    linear models, otherwise squared errors.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
    >>> row_loss(LogisticRegression())[0], row_loss(Ridge())[0], row_loss(PoissonRegressor())[0]
    ('log loss', 'squared error', 'Poisson deviance')
    """
    if is_classifier(learner):
        if hasattr(learner, "predict_proba"):
            return "log loss", _log_loss
        if hasattr(learner, "decision_function"):
            return "hinge loss", _hinge_loss
        return "error rate", _zero_one
    last = learner.steps[-1][1] if hasattr(learner, "steps") else learner
    declared = str(getattr(last, "loss", ""))
    name = type(last).__name__
    if declared == "absolute_error":
        return "absolute error", _absolute
    if declared == "poisson" or name == "PoissonRegressor":
        return "Poisson deviance", _poisson
    if declared == "gamma" or name == "GammaRegressor":
        return "gamma deviance", _gamma
    return "squared error", _squared


def _log_loss(model: Any, X: Any, y: Any) -> FloatArray:
    chances = np.asarray(model.predict_proba(X), dtype=float)
    classes, labels = np.asarray(model.classes_), np.asarray(y)
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    # A class that the training rows lack has no chance.
    known = np.where(classes[place] == labels, chances[np.arange(len(labels)), place], 0.0)
    return -np.log(np.maximum(known, _LEAST_CHANCE))


def _hinge_loss(model: Any, X: Any, y: Any) -> FloatArray:
    scores = np.asarray(model.decision_function(X), dtype=float)
    if scores.ndim > 1:
        return _zero_one(model, X, y)
    sign = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    return np.maximum(1.0 - sign * scores, 0.0)


def _zero_one(model: Any, X: Any, y: Any) -> FloatArray:
    return (np.asarray(model.predict(X)) != np.asarray(y)).astype(float)


def _errors(model: Any, X: Any, y: Any) -> FloatArray:
    truth = np.asarray(y, dtype=float)
    found = np.asarray(model.predict(X), dtype=float).reshape(truth.shape)
    return (found - truth).reshape(len(truth), -1)


def _squared(model: Any, X: Any, y: Any) -> FloatArray:
    return np.square(_errors(model, X, y)).sum(axis=1)


def _absolute(model: Any, X: Any, y: Any) -> FloatArray:
    return np.abs(_errors(model, X, y)).sum(axis=1)


def _poisson(model: Any, X: Any, y: Any) -> FloatArray:
    truth = np.asarray(y, dtype=float)
    found = np.maximum(np.asarray(model.predict(X), dtype=float), 1e-12)
    ratio = np.where(truth > 0, truth / found, 1.0)
    return 2 * (truth * np.log(ratio) - truth + found)


def _gamma(model: Any, X: Any, y: Any) -> FloatArray:
    truth = np.maximum(np.asarray(y, dtype=float), 1e-12)
    found = np.maximum(np.asarray(model.predict(X), dtype=float), 1e-12)
    return 2 * (truth / found - 1 - np.log(truth / found))
