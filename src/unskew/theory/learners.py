r"""Fitted learners of scikit-learn, read as models that are linear in features.

A learner minimises :math:`\sum_i W_i f(z_i) + \frac12 \theta^\top R\,\theta`: this file knows which
loss f and which penalty R, in the units of the learner's weights. The losses come with the least
average curvature on the way of a score to any other within a distance, which certificates need
(:class:`unskew.theory.models.Loss`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.utils.validation import check_is_fitted

from unskew.errors import InputError, InputTypeError, ParameterError
from unskew.numerics.kernels import blocks
from unskew.numerics.typing import FloatArray
from unskew.theory.bound import not_covered
from unskew.theory.models import FittedModel, KernelModel, LinearModel, Loss, check_finite

MOST_FEATURES = 5_000
"""Features beyond which the curvature, a matrix of their pairs, is refused."""

LINEAR = (Ridge, LogisticRegression, LinearSVC, LinearSVR, SGDClassifier, SGDRegressor)

BOUNDED = ("rbf", "laplacian", "chi2", "cosine")
"""Kernels with K(x, x) ≤ 1 for every x."""


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


def read_learner(model: Any, X: Any, y: Any) -> FittedModel:
    """Return the model of a fitted Reweighted, or raise why it is not covered."""
    learner = last_step(model)
    name = type(learner).__name__
    if not isinstance(learner, (*LINEAR, KernelRidge, SVR, SVC)):
        not_covered(
            f"{name} does not minimise a weighted convex loss plus a squared norm that can be read "
            "from it. The certificate covers KernelRidge, SVR, SVC, Ridge, LogisticRegression, "
            "LinearSVC, LinearSVR, SGDClassifier and SGDRegressor, also as the last step of a "
            "pipeline."
        )
    if len(getattr(learner, "classes_", ())) > 2:
        not_covered("there are more than two classes; fit one model to each.")
    if getattr(learner, "class_weight", None) is not None:
        not_covered(
            "class_weight changes the weights after they were estimated. Leave it out, or pass "
            "design weights to fit."
        )
    if isinstance(learner, KernelRidge | SVR):
        return _kernel_model(learner, model.weights_)
    if isinstance(learner, SVC):
        return _classifier(model, X)
    return _linear_model(model, X, y)


def _linear_model(model: Any, X: Any, y: Any) -> LinearModel:
    learner, weights = last_step(model), np.asarray(model.weights_, dtype=np.float64)
    name = type(learner).__name__
    loss, penalty, scaling = _objective(learner, len(weights))
    if X is None or y is None:
        raise ParameterError(
            f"{name} does not keep the rows that it was fitted to: pass X and y, the sample."
        )
    labels = np.asarray(y)
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
    constant = 1.0 if scaling is None else scaling
    theta = np.asarray(learner.coef_, dtype=np.float64).reshape(-1)
    penalties = np.full(len(theta), penalty)
    if learner.fit_intercept:
        theta = np.append(theta, np.ravel(learner.intercept_)[0] / constant)
        penalties = np.append(penalties, 0.0 if scaling is None else penalty)

    def of_rows(rows: Any) -> FloatArray:
        found = features_of(model.estimator_, rows)
        if found.shape[1] > MOST_FEATURES:
            not_covered(
                f"the last step sees {found.shape[1]:,} features, more than {MOST_FEATURES:,}; the "
                "certificate needs a matrix of their pairs."
            )
        if learner.fit_intercept:
            found = np.column_stack([found, np.full(len(found), constant)])
        return found

    return LinearModel(
        name=name,
        features=_check_rows(of_rows(X), weights),
        labels=labels.astype(np.float64),
        weights=weights,
        coefficients=theta,
        penalties=penalties,
        loss=loss,
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
    return _dense(rows)


def _dense(matrix: Any) -> FloatArray:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix, dtype=np.float64)


def _check_rows(found: FloatArray, weights: FloatArray) -> FloatArray:
    """Return what was computed of X, or raise that it has other rows than the sample."""
    if len(found) != len(weights):
        raise InputError(
            f"X has {len(found)} rows, and the model was fitted to {len(weights)}: pass the X "
            "and y of fit."
        )
    return found


def _check_label_columns(number: int) -> None:
    if number > 1:
        not_covered(f"the labels have {number} columns; fit one model to each.")


def _ridge_penalty(alpha: Any) -> float:
    """Return ρ of a ridge regression, or raise that it has no penalty."""
    alphas = np.unique(np.asarray(alpha, dtype=np.float64))
    if len(alphas) > 1 or alphas[0] <= 0:
        not_covered(f"alpha={alpha} is not a positive penalty, so the model is not stable.")
    # Σ w (h − y)² + α ‖θ‖²: twice α, for the penalty here is ρ ‖θ‖² / 2.
    return 2 * float(alphas[0])


def _objective(learner: Any, n_rows: int) -> tuple[Loss, float, float | None]:
    """Return the loss, ρ per unit of weight, and the constant feature of a penalised intercept."""
    _check_label_columns(np.atleast_2d(learner.coef_).shape[0])
    if getattr(learner, "positive", False):
        not_covered("positive=True constrains the coefficients, which moves them otherwise.")
    if isinstance(learner, Ridge):
        return LOSSES["squared"](0.0), _ridge_penalty(learner.alpha), None
    penalty = getattr(learner, "penalty", "l2")
    if isinstance(learner, SGDClassifier | SGDRegressor):
        if penalty != "l2" or learner.alpha <= 0:
            not_covered(
                f"penalty={penalty!r} with alpha={learner.alpha} is not strongly convex; the "
                'certificate covers penalty="l2".'
            )
        loss = LOSSES.get(learner.loss, lambda _: None)(float(learner.epsilon))
        if loss is None or (hasattr(learner, "classes_") and not loss.margin):
            not_covered(f'loss="{learner.loss}" of {type(learner).__name__} is not covered.')
        return loss, float(learner.alpha) * n_rows, None  # its objective is a mean over rows
    if not np.isfinite(learner.C) or penalty is None:
        not_covered(f"{type(learner).__name__} without a penalty is not stable.")
    if penalty not in ("l2", "deprecated") or getattr(learner, "l1_ratio", None) not in (None, 0):
        not_covered("an l1 penalty is not strongly convex; the certificate covers l2.")
    if isinstance(learner, LogisticRegression):
        # Only liblinear penalises the intercept.
        scaling = learner.intercept_scaling if learner.solver == "liblinear" else None
        return LOSSES["log_loss"](0.0), 1 / float(learner.C), scaling
    loss = LOSSES[learner.loss](float(getattr(learner, "epsilon", 0.0)))
    return loss, 1 / float(learner.C), float(learner.intercept_scaling)


def _kernel_model(learner: KernelRidge | SVR | SVC, weights: FloatArray) -> KernelModel:
    """Return the kernel expansion of a fitted learner, or raise why it is not covered."""
    if not isinstance(learner.kernel, str) or learner.kernel not in BOUNDED:
        named = (
            f'kernel="{learner.kernel}"' if isinstance(learner.kernel, str) else "a custom kernel"
        )
        listed = ", ".join(f'"{name}"' for name in BOUNDED)
        not_covered(
            f"{named} has no bound kappa on K(x, x) that holds for every x. These kernels have "
            f'one: {listed} (SVR and SVC have "rbf" of them).'
        )
    if isinstance(learner, KernelRidge):
        coefficients = np.asarray(learner.dual_coef_, dtype=np.float64)
        _check_label_columns(coefficients.shape[1] if coefficients.ndim > 1 else 1)
        gamma = learner.gamma
        if gamma is None and learner.kernel == "rbf":
            gamma = 1 / learner.X_fit_.shape[1]  # scikit-learn's default
        places = np.flatnonzero(weights > 0)  # rows without weight have no coefficient
        return KernelModel(
            name="KernelRidge",
            loss=LOSSES["squared"](0.0),
            kernel=learner.kernel,
            gamma=gamma,
            rows=_dense(learner.X_fit_)[places],
            places=places,
            coefficients=coefficients.reshape(-1)[places],
            weights=weights[places],
            penalty=_ridge_penalty(learner.alpha),
        )
    places = np.asarray(learner.support_, dtype=np.int64)
    if not len(places):
        not_covered(
            f"{type(learner).__name__} has no support vectors: it predicts a constant that no "
            "weight has moved."
        )
    loss = "hinge" if isinstance(learner, SVC) else "epsilon_insensitive"
    return KernelModel(
        name=type(learner).__name__,
        loss=LOSSES[loss](float(learner.epsilon)),
        kernel=learner.kernel,
        gamma=float(learner._gamma),
        rows=_dense(learner.support_vectors_),
        places=places,
        coefficients=np.asarray(_dense(learner.dual_coef_)).reshape(-1),
        weights=weights[places],
        offset=float(learner.intercept_[0]),
        penalty=1 / learner.C,
    )


def _classifier(model: Any, X: Any) -> KernelModel:
    if X is None:
        raise ParameterError("SVC keeps its support vectors only: pass X, the sample.")
    found = _kernel_model(last_step(model), model.weights_)
    # The expansion by matrix products, which libsvm does not use.
    kernel, centre = found.gaussian, found.rows.mean(axis=0)
    assert kernel is not None
    kept = kernel.prepare(found.rows - centre)

    def score(rows: Any) -> FloatArray:
        features = features_of(model.estimator_, rows)
        check_finite(features, "SVC")
        scores = np.full(len(features), found.offset)
        for part in blocks(len(features), len(kept)):
            values = kernel.block(kernel.prepare(features[part] - centre), kept)
            scores[part] += values @ found.coefficients
        return scores

    decisions = _check_rows(score(X), model.weights_), model.weights_
    return replace(found, classes=last_step(model).classes_, score=score, decisions=decisions)


def _share(inside: FloatArray, r: FloatArray) -> FloatArray:
    """Return the share of a way of length r that lies within the first ``inside`` of it."""
    share = (inside > 0).astype(np.float64)
    return np.divide(inside, r, out=share, where=(inside > 0) & (inside < r))


def _entered(outside: FloatArray, r: FloatArray, length: float = np.inf) -> FloatArray:
    """Return the largest share of a way of at most r within an interval that begins ``outside``."""
    # The way that enters most ends with the interval, if it gets so far.
    way = np.minimum(r, np.maximum(outside, 0.0) + length)
    share = 1 - np.maximum(outside, 0.0) / np.maximum(way, 1e-300)
    return np.where(outside < 0, 1.0, np.where(r > 0, np.maximum(share, 0.0), 0.0))


def _curved(low: float, high: float, bend: float, *, zero: float, margin: bool) -> Loss:
    """Return a parabola between two points, and its tangents beyond them.

    Its slope is ``bend`` times (z, kept within ``low`` and ``high``, less ``zero``).
    """

    def slope(z: FloatArray) -> FloatArray:
        found = np.clip(z, low, high)
        found -= zero
        found *= bend
        return found

    steepest = bend * max(abs(low - zero), abs(high - zero))
    return Loss(
        margin=margin,
        slope=slope,
        # The least average curvature is on the way to the nearer end; the largest on the way in.
        curvature=lambda z, r: bend * _share(np.minimum(high - z, z - low), r),
        most=lambda z, r: bend * _entered(np.maximum(z - high, low - z), r, high - low),
        lipschitz=steepest if np.isfinite(steepest) else None,
        bend=bend,
    )


def _broken(kinks: tuple[tuple[float, float, float], ...], *, margin: bool) -> Loss:
    """Return straight lines that meet in kinks: each one's place, and the slopes before and after.

    There is no second derivative, and no curvature to count on.
    """
    places = np.array([place for place, _, _ in kinks])
    slopes = np.array([kinks[0][1], *(after for _, _, after in kinks)])

    def flat(z: FloatArray, r: FloatArray) -> FloatArray:  # noqa: ARG001
        return np.zeros(len(z))

    return Loss(
        margin=margin,
        slope=lambda z: slopes[np.searchsorted(places, z)],
        curvature=flat,
        most=flat,
        kinks=kinks,
        lipschitz=float(np.abs(slopes).max()),
    )


def _logistic() -> Loss:
    """Return log(1 + e^(−z))."""

    def curvature(z: FloatArray, r: FloatArray) -> FloatArray:
        # It falls with the distance from zero, so the least average is on the way outwards.
        here = np.abs(z)
        average = (expit(-here) - expit(-here - r)) / np.maximum(r, 1e-300)
        return np.where(r > 1e-6, average, expit(here) * expit(-here - r))

    def most(z: FloatArray, r: FloatArray) -> FloatArray:
        # Towards zero it grows by a factor of at most e per unit, by at most 1/(6 √3) per unit,
        # and to no more than at the point that is nearest to zero.
        here, nearest = np.abs(z), np.maximum(np.abs(z) - r, 0.0)
        k = expit(here) * expit(-here)
        some = np.minimum(np.maximum(r, 1e-12), 50.0)
        slow = np.minimum(k * np.expm1(some) / some, k + r / (12 * np.sqrt(3)))
        return np.minimum(slow, expit(nearest) * expit(-nearest))

    def slope(z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # infinity is the right limit
            power = np.exp(z)
        power += 1
        return np.asarray(np.divide(-1.0, power, out=power))

    return Loss(
        margin=True,
        slope=slope,
        curvature=curvature,
        most=most,
        lipschitz=1.0,
        bend=0.25,
    )


def _squared_epsilon_insensitive(epsilon: float) -> Loss:
    """Return max(0, |z| − ε)²."""
    return Loss(
        margin=False,
        slope=lambda z: 2 * np.sign(z) * np.maximum(0.0, np.abs(z) - epsilon),
        # Beyond the flat part the other arm begins, which makes longer ways curved again.
        curvature=lambda z, r: (
            _share(np.abs(z) - epsilon, np.minimum(r, np.abs(z) + epsilon)) * 2.0
        ),
        most=lambda z, r: _entered(epsilon - np.abs(z), r) * 2.0,
        bend=2.0,
    )


def _epsilon_insensitive(epsilon: float) -> Loss:
    """Return max(0, |z| − ε)."""
    if not epsilon:
        return _broken(((0.0, -1.0, 1.0),), margin=False)
    return _broken(((-epsilon, -1.0, 0.0), (epsilon, 0.0, 1.0)), margin=False)


LOSSES: dict[str, Callable[[float], Loss]] = {
    "squared": lambda _: _curved(-np.inf, np.inf, 2.0, zero=0.0, margin=False),  # z²
    "squared_error": lambda _: _curved(-np.inf, np.inf, 1.0, zero=0.0, margin=False),  # z²/2
    "huber": lambda epsilon: _curved(-epsilon, epsilon, 1.0, zero=0.0, margin=False),
    "epsilon_insensitive": _epsilon_insensitive,
    "squared_epsilon_insensitive": _squared_epsilon_insensitive,
    "hinge": lambda _: _broken(((1.0, -1.0, 0.0),), margin=True),  # max(0, 1 − z)
    "squared_hinge": lambda _: _curved(-np.inf, 1.0, 2.0, zero=1.0, margin=True),
    # The squared hinge from z = −1 on, and its tangent before.
    "modified_huber": lambda _: _curved(-1.0, 1.0, 2.0, zero=1.0, margin=True),
    "log_loss": lambda _: _logistic(),
}
"""The losses by the names that scikit-learn gives them, as functions of its ``epsilon``."""
