"""The kernel expansion of a fitted model, as the certificate needs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, SVR
from sklearn.utils.validation import check_is_fitted

from unskew.errors import InputError, InputTypeError, ParameterError
from unskew.numerics.kernels import GaussianKernel, blocks, fill_matrix
from unskew.numerics.typing import FloatArray, IntArray
from unskew.theory.dual import RidgeCurvature
from unskew.theory.linear_models import check_finite, features_of, last_step
from unskew.theory.not_covered import not_covered
from unskew.theory.regions import KernelContributions

BOUNDED = {"rbf": 1.0, "laplacian": 1.0, "chi2": 1.0, "cosine": 1.0}
"""Kernels with a known bound κ on K(x, x)."""


@dataclass(frozen=True)
class KernelModel:
    r"""A fitted :math:`\hat h = \sum_i a_i K(x_i, \cdot) + b`.

    Attributes
    ----------
    name : str
    rows : ndarray of shape (r, d)
        The rows that the learner kept: all of the sample, or the support vectors.
    places : ndarray of int of shape (r,)
        Their places in the sample.
    coefficients : ndarray of shape (r,)
    weights : ndarray of shape (r,)
        With which they were trained.
    offset : float or None
        b; None for a learner that has none.
    kappa : float
        The largest K(x, x).
    penalty : float
        The multiple of the squared norm in an objective where row i has weight w_i: alpha for
        kernel ridge regression, 1/(2C) for support vector regression.
    gamma : float or None
        Of a Gaussian kernel; None for any other.
    kernel : callable
        Returns the kernel matrix of a set of rows.
    classes : ndarray or None
        Of a classifier.
    score : callable
        Of a classifier, returns its decision function of rows.
    scores : ndarray of shape (m,) or None
        Of a classifier, the decision function at all sample rows.
    """

    name: str
    rows: FloatArray
    places: IntArray
    coefficients: FloatArray
    weights: FloatArray
    offset: float | None
    kappa: float
    penalty: float
    gamma: float | None
    kernel: Callable[[FloatArray], FloatArray]
    classes: Any = None
    score: Any = None
    scores: FloatArray | None = None

    @property
    def what(self) -> str:
        """What it predicts, in words."""
        return "predictions" if self.classes is None else "decision function"

    @property
    def squared(self) -> bool:
        """Whether it was trained with the squared loss."""
        return self.offset is None

    @cached_property
    def contributions(self) -> KernelContributions:
        """What each row contributes, with an offset as in the kernel K + 1."""
        return KernelContributions(self.kernel(self.rows) + (not self.squared), self.coefficients)

    def curvature(self, least: FloatArray) -> RidgeCurvature:
        """Return the curvature of the squared loss where rows have at least these weights.

        It is factored once: the last one is kept.
        """
        known = self.__dict__.get("_curvature")
        if known is None or not np.array_equal(known[0], least):
            known = least, RidgeCurvature(self.contributions.K, least, self.penalty)
            self.__dict__["_curvature"] = known
        return known[1]

    @cached_property
    def predictions(self) -> FloatArray:
        """Its predictions at the rows that it kept."""
        K = self.contributions.K - (not self.squared)
        return np.asarray(K @ self.coefficients + (self.offset or 0.0))


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


def read_model(model: Any, X: Any = None) -> KernelModel:
    """Return the kernel expansion of a fitted Reweighted, or raise why it is not covered."""
    learner = last_step(model)
    if isinstance(learner, KernelRidge):
        return _kernel_ridge(learner, model.weights_)
    if isinstance(learner, SVR):
        return _support_vectors(learner, model.weights_)
    if isinstance(learner, SVC):
        return _svc(learner, model, X)
    return not_covered(
        f"{type(learner).__name__} does not minimise a weighted convex loss plus a squared norm "
        "that can be read from it. The certificate covers KernelRidge, SVR, SVC, Ridge, "
        "LogisticRegression, LinearSVC, LinearSVR, SGDClassifier and SGDRegressor, also as the "
        "last step of a pipeline."
    )


def _svc(learner: SVC, model: Any, X: Any) -> KernelModel:
    if len(learner.classes_) > 2:
        not_covered("there are more than two classes; fit one model to each.")
    if learner.class_weight is not None:
        not_covered(
            "class_weight changes the weights after they were estimated. Leave it out, or pass "
            "design weights to fit."
        )
    if X is None:
        raise ParameterError("SVC keeps its support vectors only: pass X, the sample.")
    found = _support_vectors(learner, model.weights_)
    expansion = _Expansion(found)

    def score(rows: Any) -> FloatArray:
        features = features_of(model.estimator_, rows)
        check_finite(features, "SVC")
        return expansion(features)

    scores = score(X)
    if len(scores) != len(model.weights_):
        raise InputError(
            f"X has {len(scores)} rows, and the model was fitted to {len(model.weights_)}: pass "
            "the X of fit."
        )
    return replace(found, classes=learner.classes_, score=score, scores=scores)


class _Expansion:
    """The decision function of a Gaussian kernel by matrix products, which libsvm does not use.

    Parameters
    ----------
    model : KernelModel
    """

    def __init__(self, model: KernelModel) -> None:
        assert model.gamma is not None
        self.kernel = GaussianKernel(float(1 / np.sqrt(2 * model.gamma)))
        self.centre = model.rows.mean(axis=0)
        self.kept = self.kernel.prepare(model.rows - self.centre)
        self.coefficients, self.offset = model.coefficients, model.offset or 0.0

    def __call__(self, rows: FloatArray) -> FloatArray:
        found = np.empty(len(rows))
        for part in blocks(len(rows), len(self.kept)):
            values = self.kernel.block(self.kernel.prepare(rows[part] - self.centre), self.kept)
            found[part] = values @ self.coefficients + self.offset
        return found


def _kernel_ridge(learner: KernelRidge, weights: FloatArray) -> KernelModel:
    coefficients = np.asarray(learner.dual_coef_, dtype=np.float64)
    if coefficients.ndim > 1 and coefficients.shape[1] > 1:
        not_covered(f"the labels have {coefficients.shape[1]} columns; fit one model to each.")
    alphas = np.unique(np.asarray(learner.alpha, dtype=np.float64))
    if len(alphas) > 1 or alphas[0] <= 0:
        not_covered(f"alpha={learner.alpha} is not a positive penalty, so the model is not stable.")
    rows = _dense(learner.X_fit_)
    kappa = _kappa(learner.kernel)
    gamma = learner.gamma
    if gamma is None and learner.kernel == "rbf":
        gamma = 1 / rows.shape[1]  # scikit-learn's default
    return KernelModel(
        name="KernelRidge",
        rows=rows,
        places=np.arange(len(coefficients)),
        coefficients=coefficients.reshape(-1),
        weights=weights,
        offset=None,
        kappa=kappa,
        penalty=float(alphas[0]),
        gamma=gamma if learner.kernel == "rbf" else None,
        kernel=_kernel(learner.kernel, gamma),
    )


def _support_vectors(learner: SVR | SVC, weights: FloatArray) -> KernelModel:
    places = np.asarray(learner.support_, dtype=np.int64)
    if not len(places):
        not_covered(
            f"{type(learner).__name__} has no support vectors: it predicts a constant that no "
            "weight has moved."
        )
    kappa, gamma = _kappa(learner.kernel), float(learner._gamma)
    return KernelModel(
        name=type(learner).__name__,
        rows=_dense(learner.support_vectors_),
        places=places,
        coefficients=np.asarray(_dense(learner.dual_coef_)).reshape(-1),
        weights=weights[places],
        offset=float(learner.intercept_[0]),
        kappa=kappa,
        penalty=1 / (2 * learner.C),
        gamma=gamma,
        kernel=_kernel(learner.kernel, gamma),
    )


def _dense(matrix: Any) -> FloatArray:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix, dtype=np.float64)


def _kappa(kernel: Any) -> float:
    if not isinstance(kernel, str) or kernel not in BOUNDED:
        named = f'kernel="{kernel}"' if isinstance(kernel, str) else "a custom kernel"
        listed = ", ".join(f'"{name}"' for name in BOUNDED)
        not_covered(
            f"{named} has no bound kappa on K(x, x) that holds for every x. These kernels have "
            f'one: {listed} (SVR and SVC have "rbf" of them).'
        )
    return BOUNDED[kernel]


def _kernel(name: str, gamma: float | None) -> Callable[[FloatArray], FloatArray]:
    def matrix(rows: FloatArray) -> FloatArray:
        if name != "rbf" or gamma is None:
            return np.asarray(pairwise_kernels(rows, metric=name, filter_params=True, gamma=gamma))
        gaussian = GaussianKernel(float(1 / np.sqrt(2 * gamma)))
        prepared = gaussian.prepare(rows - rows.mean(axis=0))
        return fill_matrix(gaussian, prepared, prepared, np.empty((len(rows), len(rows))))

    return matrix
