"""Learners, and draws in which the perfect weights are known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from unskew import AutoWeights, CalibrationWeights, ClassifierWeights, HistogramWeights

DELTA = 0.05
TILT = np.array([0.6, -0.3])
BORDERS = [-0.8, 0.0, 0.8]
RATES = np.array([0.3, 0.6, 0.8, 0.5])

LEARNERS: dict[str, Any] = {
    "Ridge": Ridge(),
    "LogisticRegression": LogisticRegression(tol=1e-8),
    "LinearSVC, squared hinge": LinearSVC(tol=1e-8, max_iter=20_000),
    "LinearSVC, hinge, C = 0.01": LinearSVC(loss="hinge", C=0.01, tol=1e-8, max_iter=50_000),
    "LinearSVR, C = 0.01": LinearSVR(C=0.01, tol=1e-8, max_iter=50_000),
    "SGDClassifier, log loss, alpha = 0.1": SGDClassifier(
        loss="log_loss", alpha=0.1, average=True, random_state=0
    ),
    "SGDRegressor, squared error, alpha = 0.1": SGDRegressor(
        alpha=0.1, average=True, random_state=0
    ),
    "SVC, C = 0.05": SVC(C=0.05, gamma=0.5),
    "SVR, C = 0.05": SVR(C=0.05, gamma=0.5),
    "KernelRidge": KernelRidge(kernel="rbf", gamma=0.5),
}


class Draw(NamedTuple):
    """A population, a sample with labels, and what its weights should be up to a factor."""

    population: NDArray[np.float64]
    sample: NDArray[np.float64]
    labels: NDArray[np.float64]
    perfect: NDArray[np.float64]

    def labels_for(self, learner: Any) -> NDArray[Any]:
        """Return numbers, or for a classifier whether they are positive."""
        return (self.labels > 0).astype(int) if classifies(learner) else self.labels


def classifies(learner: Any) -> bool:
    """Return whether a learner predicts classes."""
    return hasattr(learner, "decision_function")


def scores(model: Any, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the predictions of numbers, or a classifier's decision function."""
    return np.asarray((model.decision_function if classifies(model) else model.predict)(rows))


def exact(learner: Any, m: int) -> Any:
    """Return the exact solver of a learner's objective."""
    if isinstance(learner, SGDClassifier):
        return LogisticRegression(C=1 / (learner.alpha * m), tol=1e-8)
    if isinstance(learner, SGDRegressor):
        return Ridge(alpha=learner.alpha * m)
    return clone(learner)


def by_cell(seed: int, n: int = 600, within: float = 0.0) -> Draw:
    """Select by cell; ``within`` lets selection depend on the other column, too."""
    random = np.random.default_rng(seed)
    population = random.normal(size=(n, 2))
    rate = RATES[np.searchsorted(BORDERS, population[:, 0])]
    odds = rate / (1 - rate) * np.exp(within * population[:, 1])
    rate = odds / (1 + odds)
    selected = random.uniform(size=n) < rate
    return Draw(
        population, population[selected], _labels(population[selected], random), 1 / rate[selected]
    )


def by_ratio(seed: int, m: int = 300, n: int = 600, square: float = 0.0) -> Draw:
    """Draw from densities with a ratio that is log-linear, or has a square."""
    random = np.random.default_rng(seed)
    spread = np.array([1 / np.sqrt(1 - 2 * square), 1.0])
    sample = random.normal(size=(m, 2)) * spread - TILT * spread**2
    ratio = np.exp(sample @ TILT - square * sample[:, 0] ** 2)
    population = random.normal(size=(n, 2))
    return Draw(population, sample, _labels(sample, random), ratio)


def _labels(rows: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    return rows.sum(axis=1) + 0.5 * np.sin(3 * rows[:, 0]) + 0.7 * random.normal(size=len(rows))


def histogram() -> HistogramWeights:
    """Return the cells by which rows are selected."""
    return HistogramWeights(buckets={0: BORDERS, 1: 1}, overlap="ignore")


def tested_histogram() -> HistogramWeights:
    """Return the same, with the rows that the test of even selection needs."""
    return HistogramWeights(buckets={0: BORDERS, 1: 1})


def raking() -> CalibrationWeights:
    """Return weights of the form of the true ratio."""
    return CalibrationWeights(features="means", overlap="ignore")


def logistic() -> ClassifierWeights:
    """Return weights of the form of the true ratio."""
    return ClassifierWeights(
        "logistic",
        cv=None,
        calibration=None,
        penalty=0.0,
        rate="odds",
        hinges=False,
        overlap="ignore",
    )


def penalised() -> ClassifierWeights:
    """Return the default logistic weights: a penalty, folds and hinges."""
    return ClassifierWeights("logistic", calibration=None, overlap="ignore")


def pooled() -> AutoWeights:
    """Return weights that are pooled of several kinds."""
    return AutoWeights(overlap="ignore", random_state=0)
