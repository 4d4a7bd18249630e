"""Our weighters and the learners, each under the name that the page shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import hinge_loss, log_loss, mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC, SVR

from benchmarks.accuracy.draws import Draw
from benchmarks.accuracy.tables import Table
from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    DensityRatioWeights,
    KernelMeanMatching,
    KnownProbability,
    TreeWeights,
    Unweighted,
)

Maker = Callable[[Draw], Any]
QUIET = {"overlap": "ignore"}

EVERY_DRAW: dict[str, Maker] = {
    "Unweighted": lambda _: Unweighted(),
    "Ideal": lambda draw: KnownProbability(draw.chances),
    "AutoWeights": lambda _: AutoWeights(**QUIET),
    "TreeWeights(4)": lambda _: TreeWeights(min_samples_leaf=4, **QUIET),
    "TreeWeights(20)": lambda _: TreeWeights(min_samples_leaf=20, **QUIET),
    "KernelMeanMatching": lambda _: KernelMeanMatching(**QUIET),
}
SOME_DRAWS: dict[str, Maker] = {
    "AutoWeights, means": lambda _: AutoWeights(calibrate_to="means", **QUIET),
    "ClassifierWeights, boosted": lambda _: ClassifierWeights(**QUIET),
    "ClassifierWeights, logistic": lambda _: ClassifierWeights("logistic", **QUIET),
    "DensityRatioWeights, squared": lambda _: DensityRatioWeights(**QUIET),
    "DensityRatioWeights, kl": lambda _: DensityRatioWeights("kl", **QUIET),
    "CalibrationWeights": lambda _: CalibrationWeights(on_infeasible="relax", **QUIET),
    "ClusterWeights": lambda _: ClusterWeights(**QUIET),
}

_BOOSTING = {
    "n_estimators": 30,
    "learning_rate": 0.2,
    "subsample": 0.5,
    "max_features": 0.5,
    "random_state": 0,
}


class Found(KnownProbability):
    """Automatic weights that were found before: three learners then share one fit of them."""

    traits = replace(
        KnownProbability.traits,
        is_automatic=True,
    )

    @classmethod
    def of(cls, weights: np.ndarray) -> Found:
        """Return a weighter that gives these weights."""
        return cls(weights.min() / weights)


def learners(table: Table) -> dict[str, Any]:
    """Return the three learners, which see categories as columns of zeros and ones."""
    found: dict[str, Any] = {
        "linear": LogisticRegression(max_iter=1000) if table.is_class else Ridge(),
        "boosted": (
            GradientBoostingClassifier(**_BOOSTING)
            if table.is_class
            else GradientBoostingRegressor(**_BOOSTING)
        ),
        "kernel": SVC() if table.is_class else SVR(),
    }
    if not table.texts:
        return found
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), table.texts),
        remainder="passthrough",
    )
    return {name: make_pipeline(encoder, one) for name, one in found.items()}


def learner_error(model: Any, draw: Draw) -> float:
    """Return the squared error, log loss or hinge loss on the test rows."""
    if not hasattr(model, "classes_"):
        return float(mean_squared_error(draw.test_labels, model.predict(draw.test)))
    if hasattr(model, "predict_proba"):
        chances = model.predict_proba(draw.test)
        return float(log_loss(draw.test_labels, chances, labels=model.classes_))
    return float(hinge_loss(draw.test_labels, model.decision_function(draw.test)))
