"""What certificates cost, against the fit of the model and its weights."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, LinearSVC

from unskew import CalibrationWeights, Reweighted, TreeWeights, theory

REPEATS = 3


_SMALL = {
    "Ridge": Ridge(),
    "LogisticRegression": LogisticRegression(),
    "LinearSVC": LinearSVC(),
    "SVC": SVC(gamma=1 / 8),
}
MEASURED: dict[str, tuple[Any, Any, int, int]] = {
    **{
        f"{name}, cells, m = 5,000": (learner, TreeWeights(min_samples_leaf=60), 5_000, 8)
        for name, learner in _SMALL.items()
    },
    **{
        f"{name}, calibration, m = 5,000": (
            learner,
            CalibrationWeights(features="means"),
            5_000,
            8,
        )
        for name, learner in _SMALL.items()
    },
    **{
        f"{name}, cells, m = 100,000, 50 features": (
            _SMALL[name],
            TreeWeights(min_samples_leaf=1000),
            100_000,
            50,
        )
        for name in ("Ridge", "LogisticRegression")
    },
}
"""What is measured: learner, weighter, rows and columns."""


def cost(name: str) -> dict[str, float]:
    """Return the seconds of fit and certificate, medians."""
    return _measure(*MEASURED[name])


def _measure(learner: Any, weighter: Any, rows: int, columns: int) -> dict[str, float]:
    random = np.random.default_rng(0)
    population = random.normal(size=(2 * rows, columns))
    order = population[:, 0] + random.logistic(size=2 * rows)
    sample = population[np.sort(np.argsort(order)[-rows:])]
    labels = np.sin(sample[:, 0]) + sample[:, 1] * sample[:, 2] + 0.3 * random.normal(size=rows)
    labels = labels if isinstance(learner, Ridge) else (labels > 0).astype(int)
    needs = not isinstance(learner, Ridge) or isinstance(weighter, CalibrationWeights)
    fits, checks = [], []
    for _ in range(REPEATS):
        started = time.perf_counter()
        model = Reweighted(learner, weighter).fit(sample, labels, population=population)
        between = time.perf_counter()
        theory.certificate(model, X=sample, y=labels, population=population if needs else None)
        fits.append(between - started)
        checks.append(time.perf_counter() - between)
    return {
        "fit": round(statistics.median(fits), 3),
        "certificate": round(statistics.median(checks), 3),
    }
