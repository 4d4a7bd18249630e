"""Fitted learners that are linear in the features that their last step sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.validation import check_is_fitted

from unskew.errors import InputError, InputTypeError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.theory import losses
from unskew.theory.bound import not_covered
from unskew.theory.losses import Loss

MOST_FEATURES = 5_000
"""Features beyond which the curvature, a matrix of their pairs, is refused."""

LINEAR = (Ridge, LogisticRegression, LinearSVC, LinearSVR, SGDClassifier, SGDRegressor)


@dataclass(frozen=True)
class LinearModel:
    r"""A fitted :math:`\hat h(x) = \hat\theta^\top \varphi(x)`, and what it minimises.

    The objective is :math:`\sum_i W_i f_i(\theta^\top\varphi_i) + \frac12 \sum_j \rho_j
    \theta_j^2`, in the units of the learner's weights.

    Attributes
    ----------
    name : str
    features : ndarray of shape (m, d)
        Of the sample, as the last step sees them; with an intercept, a last column for it.
    labels : ndarray of shape (m,)
        For a classifier, -1 and 1.
    weights : ndarray of shape (m,)
    coefficients : ndarray of shape (d,)
    penalties : ndarray of shape (d,)
        ρ; zero for an intercept that is not penalised.
    loss : Loss
    classes : ndarray or None
        The two classes of a classifier, the second of which is 1.
    of_rows : callable
        Returns the features of other rows.
    """

    name: str
    features: FloatArray
    labels: FloatArray
    weights: FloatArray
    coefficients: FloatArray
    penalties: FloatArray
    loss: Loss
    classes: Any
    of_rows: Callable[[Any], FloatArray]

    @property
    def scores(self) -> FloatArray:
        """What it predicts for the sample: for a classifier, its decision function."""
        return self.features @ self.coefficients

    @property
    def free_intercept(self) -> bool:
        """Whether it has an intercept that is not penalised."""
        return bool(self.penalties[-1] == 0)


@dataclass(frozen=True)
class _Objective:
    """What a learner minimises: the loss, ρ, and the feature that stands for its intercept."""

    loss: Loss
    penalty: float
    intercept: float | None
    """The constant feature of a penalised intercept; None where it is not penalised."""


def check_reweighted(model: Any) -> None:
    """Raise an error unless this is a fitted Reweighted whose learner was given the weights."""
    if not (hasattr(model, "estimator") and hasattr(model, "weighter")):
        raise InputTypeError(f"certificate takes a fitted Reweighted; got {type(model).__name__}.")
    check_is_fitted(model, "weights_")
    if getattr(model, "resample", None) is not None:
        not_covered(
            f'the learner was trained on a resampled sample (resample="{model.resample}"), not '
            "with weights."
        )
    if getattr(model, "power_", 1.0) != 1:
        not_covered(
            f"the weights were raised to the power {model.power_:g}, and no longer estimate "
            "inverse probabilities. Use power=1."
        )


def last_step(model: Any) -> Any:
    """Return the learner at the end of a fitted pipeline, or the learner itself."""
    learner = model.estimator_
    while isinstance(learner, Pipeline):
        learner = learner.steps[-1][1]
    return learner


def read_linear_model(model: Any, X: Any, y: Any) -> LinearModel:
    """Return a fitted linear learner with its sample, or raise why it is not covered."""
    learner = last_step(model)
    name = type(learner).__name__
    objective = _objective(learner, len(model.weights_))
    if X is None or y is None:
        raise ParameterError(
            f"{name} does not keep the rows that it was fitted to: pass X and y, the sample."
        )
    labels = np.asarray(y)
    weights: FloatArray = np.asarray(model.weights_, dtype=np.float64)
    if len(labels) != len(weights) or labels.ndim != 1:
        raise InputError(
            f"y has the shape {labels.shape}, and the model was fitted to {len(weights)} rows: "
            "pass the X and y of fit."
        )
    classes = getattr(learner, "classes_", None)
    if classes is not None:
        labels = np.where(labels == classes[1], 1.0, -1.0)
    # An intercept is the coefficient of a constant feature. Where it is penalised, that constant
    # (scikit-learn's intercept_scaling) decides by how much.
    constant = 1.0 if objective.intercept is None else objective.intercept
    theta = np.asarray(learner.coef_, dtype=np.float64).reshape(-1)
    penalties = np.full(len(theta), objective.penalty)
    if learner.fit_intercept:
        theta = np.append(theta, np.ravel(learner.intercept_)[0] / constant)
        penalties = np.append(penalties, 0.0 if objective.intercept is None else objective.penalty)

    def of_rows(rows: Any) -> FloatArray:
        return _features(model.estimator_, rows, constant if learner.fit_intercept else None)

    features = of_rows(X)
    if len(features) != len(weights):
        raise InputError(
            f"X has {len(features)} rows, and the model was fitted to {len(weights)}: pass the X "
            "and y of fit."
        )
    return LinearModel(
        name=name,
        features=features,
        labels=labels.astype(np.float64),
        weights=weights,
        coefficients=theta,
        penalties=penalties,
        loss=objective.loss,
        classes=classes,
        of_rows=of_rows,
    )


def features_of(estimator: Any, rows: Any) -> FloatArray:
    """Return what the last step of a fitted pipeline sees of rows."""
    # A pipeline may end in another one.
    while isinstance(estimator, Pipeline):
        if len(estimator.steps) > 1:
            rows = estimator[:-1].transform(rows)
        estimator = estimator.steps[-1][1]
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows, dtype=np.float64)


def check_finite(features: FloatArray, name: str) -> None:
    """Raise an error if a learner predicts nothing for some rows."""
    missing = int((~np.isfinite(features)).any(axis=1).sum())
    if missing:
        raise InputError(
            f"{missing} rows of the population have missing or infinite features, for which "
            f"{name} predicts nothing. Impute them in the pipeline, or leave these rows out."
        )


def check_no_class_weight(learner: Any) -> None:
    """Raise an error if a learner changes the weights by class."""
    if getattr(learner, "class_weight", None) is not None:
        not_covered(
            "class_weight changes the weights after they were estimated. Leave it out, or pass "
            "design weights to fit."
        )


def check_label_columns(number: int) -> None:
    """Raise an error if there is more than one column of labels."""
    if number > 1:
        not_covered(f"the labels have {number} columns; fit one model to each.")


def check_penalty(alpha: Any) -> float:
    """Return the penalty of a ridge regression, or raise that there is none."""
    alphas = np.unique(np.asarray(alpha, dtype=np.float64))
    if len(alphas) > 1 or alphas[0] <= 0:
        not_covered(f"alpha={alpha} is not a positive penalty, so the model is not stable.")
    return float(alphas[0])


def _features(estimator: Any, rows: Any, constant: float | None) -> FloatArray:
    found = features_of(estimator, rows)
    if found.shape[1] > MOST_FEATURES:
        not_covered(
            f"the last step sees {found.shape[1]:,} features, more than {MOST_FEATURES:,}; the "
            "certificate needs a matrix of their pairs."
        )
    if constant is not None:
        found = np.column_stack([found, np.full(len(found), constant)])
    return found


def _objective(learner: Any, n_rows: int) -> _Objective:
    """Return what the learner minimises, per unit of weight, or raise why it is not covered."""
    if len(getattr(learner, "classes_", ())) > 2:
        not_covered("there are more than two classes; fit one model to each.")
    check_label_columns(np.atleast_2d(learner.coef_).shape[0])
    check_no_class_weight(learner)
    if getattr(learner, "positive", False):
        not_covered("positive=True constrains the coefficients, which moves them otherwise.")
    if isinstance(learner, Ridge):
        # Σ w (h − y)² + α ‖θ‖²: ρ is twice α, for the penalty here is ρ ‖θ‖² / 2.
        return _Objective(losses.squared(), 2 * check_penalty(learner.alpha), None)
    if isinstance(learner, LogisticRegression):
        return _logistic_regression(learner)
    if isinstance(learner, LinearSVC | LinearSVR):
        return _linear_svm(learner)
    return _sgd(learner, n_rows)


def _logistic_regression(learner: LogisticRegression) -> _Objective:
    ratio = getattr(learner, "l1_ratio", None)
    penalty = getattr(learner, "penalty", "l2")
    if not np.isfinite(learner.C) or penalty is None:
        not_covered("LogisticRegression without a penalty is not stable.")
    if penalty not in ("l2", "deprecated") or ratio not in (None, 0, 0.0):
        not_covered("an l1 penalty is not strongly convex; the certificate covers l2.")
    # Only liblinear penalises the intercept.
    constant = learner.intercept_scaling if learner.solver == "liblinear" else None
    return _Objective(losses.logistic(), 1 / float(learner.C), constant)


def _linear_svm(learner: LinearSVC | LinearSVR) -> _Objective:
    if getattr(learner, "penalty", "l2") != "l2":
        not_covered("an l1 penalty is not strongly convex; the certificate covers l2.")
    loss = losses.BY_NAME[learner.loss](float(getattr(learner, "epsilon", 0.0)))
    return _Objective(loss, 1 / float(learner.C), float(learner.intercept_scaling))


def _sgd(learner: SGDClassifier | SGDRegressor, n_rows: int) -> _Objective:
    if learner.penalty != "l2" or learner.alpha <= 0:
        not_covered(
            f"penalty={learner.penalty!r} with alpha={learner.alpha} is not strongly convex; the "
            'certificate covers penalty="l2".'
        )
    make = losses.BY_NAME.get(learner.loss)
    loss = None if make is None else make(float(learner.epsilon))
    if loss is None or (hasattr(learner, "classes_") and not loss.margin):
        not_covered(f'loss="{learner.loss}" of {type(learner).__name__} is not covered.')
    # Its objective is a mean over rows.
    return _Objective(loss, float(learner.alpha) * n_rows, None)
