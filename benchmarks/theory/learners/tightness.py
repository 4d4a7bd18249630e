"""How tight certificates are on the nine data sets; labels of classifiers split at the median."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC

from benchmarks.theory.data import Draw, draws
from unskew import CalibrationWeights, ClusterWeights, Reweighted, TreeWeights, theory

DATASETS = Path(__file__).resolve().parents[4] / "shared" / "datasets"
DRAWS = 3
FLIPS = "share of the population whose prediction could flip"


def tightness(path: Path) -> dict[str, float]:
    """Return medians over draws of one set."""
    rows = [_of_draw(one) for one in draws(path, DRAWS, by_cell=True)]
    return {name: round(float(np.median([row[name] for row in rows])), 4) for name in rows[0]}


def _of_draw(one: Draw) -> dict[str, float]:
    found: dict[str, float] = {}
    X, population = one.rows[one.selected], one.rows
    classes = (one.labels > np.median(one.labels)).astype(int)[one.selected]
    labels = one.labels[one.selected]
    for name, learner, y in (
        ("Ridge", Ridge(), labels),
        ("LogisticRegression", LogisticRegression(tol=1e-8, max_iter=2000), classes),
        ("SVC", SVC(gamma=1 / X.shape[1]), classes),
    ):
        found[f"{name}, dual over realised"] = _known(one, learner, X, y)
    learner = LogisticRegression(tol=1e-6, max_iter=2000)
    for name, weighter in (
        ("cells", ClusterWeights(one.partition, scaling=None)),
        ("calibration", CalibrationWeights(features="means")),
    ):
        model = _fit(learner, weighter, X, classes, population)
        bound = theory.certificate(model, X=X, y=classes, population=population, refits=1)
        found[f"LogisticRegression, {name}, flips"] = float(bound.terms[FLIPS])
        found[f"LogisticRegression, {name}, over spread"] = float(
            bound / bound.terms["spread of the predictions"]
        )
        found[f"LogisticRegression, {name}, qualified"] = float(
            bound.statement.startswith("Only if")
        )
        perfect = 1 / one.probabilities[one.selected]
        perfect *= model.weights_.sum() / perfect.sum()
        other = clone(learner).fit(X, classes, sample_weight=perfect)
        found[f"LogisticRegression, {name}, flipped"] = float(
            np.mean(other.predict(population) != model.predict(population))
        )
    return found


def _fit(learner: Any, weighter: Any, X: Any, y: Any, population: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Reweighted(clone(learner), weighter).fit(X, y, population=population)


def _known(one: Draw, learner: Any, X: Any, y: Any) -> float:
    """Return the certificate with the true weights given over the realised change."""
    model = _fit(learner, TreeWeights(), X, y, one.rows)
    perfect = model.weighter_.scale_ / one.probabilities[one.selected]
    bound = theory.certificate(model, X=X, y=y, other_weights=perfect, refits=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = clone(learner).fit(X, y, sample_weight=perfect)
    score = "decision_function" if hasattr(learner, "decision_function") else "predict"
    if isinstance(learner, SVC):
        return float(bound.terms["dual certificate, in the kernel's norm"]) / _distance(
            model.estimator_, other, X
        )
    change = getattr(other, score)(X) - getattr(model.estimator_, score)(X)
    return float(bound) / float(np.sqrt(np.average(change**2, weights=model.weights_)))


def _distance(one: SVC, other: SVC, X: Any) -> float:
    """Return the distance in the kernel's norm, with the offset's as in the kernel K + 1."""
    from sklearn.metrics.pairwise import rbf_kernel

    moved = np.zeros(len(X))
    moved[one.support_] -= one.dual_coef_[0]
    moved[other.support_] += other.dual_coef_[0]
    held = np.flatnonzero(moved)
    K = rbf_kernel(X[held], gamma=1 / X.shape[1])
    square = moved[held] @ K @ moved[held] + (one.intercept_[0] - other.intercept_[0]) ** 2
    return float(np.sqrt(square))
