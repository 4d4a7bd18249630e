"""What certificates cost, against the fit of the model and its weights."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, LinearSVC

from unskew import CalibrationWeights, Reweighted, TreeWeights, theory

REPEATS = 9
"""Of which the median counts; one with 100,000 rows."""


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
    """Return the processor and wall seconds of fit and certificate, medians, and their ratio."""
    return _measure(*MEASURED[name])


def _measure(learner: Any, weighter: Any, rows: int, columns: int) -> dict[str, float]:
    random = np.random.default_rng(0)
    population = random.normal(size=(2 * rows, columns))
    order = population[:, 0] + random.logistic(size=2 * rows)
    sample = population[np.sort(np.argsort(order)[-rows:])]
    labels = np.sin(sample[:, 0]) + sample[:, 1] * sample[:, 2] + 0.3 * random.normal(size=rows)
    labels = labels if isinstance(learner, Ridge) else (labels > 0).astype(int)
    needs = not isinstance(learner, Ridge) or isinstance(weighter, CalibrationWeights)
    rows_of: list[list[float]] = []
    for _ in range(REPEATS if rows < 100_000 else 1):
        started = time.process_time(), time.perf_counter()
        model = Reweighted(learner, weighter).fit(sample, labels, population=population)
        between = time.process_time(), time.perf_counter()
        theory.certificate(model, X=sample, y=labels, population=population if needs else None)
        ended = time.process_time(), time.perf_counter()
        rows_of.append(
            [
                later - earlier
                for pair in ((started, between), (between, ended))
                for earlier, later in zip(*pair, strict=True)
            ]
        )
    names = ("fit", "fit, wall", "certificate", "certificate, wall")
    medians = (statistics.median(column) for column in zip(*rows_of, strict=True))
    ratio = statistics.median(row[2] / row[0] for row in rows_of)
    found = {name: round(value, 3) for name, value in zip(names, medians, strict=True)}
    return {**found, "ratio": round(ratio, 2)}
