"""Draws in which the perfect weights are known."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.svm import SVC, LinearSVC, LinearSVR

from unskew import CalibrationWeights, ClassifierWeights, HistogramWeights, Reweighted, theory

DELTA = 0.05
TILT = np.array([0.6, -0.3])
BORDERS = [-0.8, 0.0, 0.8]
RATES = np.array([0.3, 0.6, 0.8, 0.5])
FLIPS = "share of the population whose prediction could flip"

LEARNERS: dict[str, Any] = {
    "Ridge": Ridge(),
    "LogisticRegression": LogisticRegression(tol=1e-8),
    "LinearSVC, squared hinge": LinearSVC(tol=1e-8, max_iter=20_000),
    "LinearSVC, hinge, C = 0.01": LinearSVC(loss="hinge", C=0.01, tol=1e-8, max_iter=50_000),
    "LinearSVR, C = 0.01": LinearSVR(C=0.01, tol=1e-8, max_iter=50_000),
    "SGDClassifier, log loss, alpha = 0.1": SGDClassifier(
        loss="log_loss", alpha=0.1, average=True, random_state=0
    ),
    "SVC, C = 0.05": SVC(C=0.05, gamma=0.5),
    "KernelRidge": KernelRidge(kernel="rbf", gamma=0.5),
}


class Draw(NamedTuple):
    """A population, a sample with labels, and what its weights should be up to a factor."""

    population: NDArray[np.float64]
    sample: NDArray[np.float64]
    labels: NDArray[np.float64]
    perfect: NDArray[np.float64]


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


def cells(name: str, seeds: range) -> dict[str, Any]:
    """Return how often certificates fail where selection is by cell."""
    return _validity(name, seeds, by_cell, histogram, same_total=False)


def calibration(name: str, seeds: range) -> dict[str, Any]:
    """Return how often certificates fail over the covariance of raking."""
    return _validity(name, seeds, by_ratio, raking, same_total=True)


def logistic_weights(name: str, seeds: range) -> dict[str, Any]:
    """Return how often certificates fail over the covariance of a logistic model."""
    return _validity(name, seeds, by_ratio, logistic, same_total=True)


def penalised_weights(name: str, seeds: range) -> dict[str, Any]:
    """Return the same for a logistic model with a penalty."""
    return _validity(name, seeds, by_ratio, penalised, same_total=True)


def bootstrap(name: str, seeds: range) -> dict[str, Any]:
    """Return how often certificates fail over bootstrap replicates of raking."""
    return _validity(
        name, seeds, by_ratio, raking, same_total=True, region="bootstrap", replicates=99
    )


def _validity(
    name: str,
    seeds: range,
    draw: Callable[[int], Draw],
    weighter: Callable[[], Any],
    *,
    same_total: bool,
    **options: Any,
) -> dict[str, Any]:
    rows = [
        _outcome(draw(seed), LEARNERS[name], weighter(), same_total, **options) for seed in seeds
    ]
    return _summary(np.array(rows))


def _outcome(
    one: Draw, learner: Any, weighter: Any, same_total: bool, **options: Any
) -> list[float]:
    classifies = hasattr(learner, "decision_function")
    labels = (one.labels > 0).astype(int) if classifies else one.labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = Reweighted(clone(learner), weighter).fit(
            one.sample, labels, population=one.population
        )
        weights = one.perfect * (
            model.weights_.sum() / one.perfect.sum() if same_total else model.weighter_.scale_
        )
        other = exact(learner, len(labels)).fit(one.sample, labels, sample_weight=weights)
    needs = classifies or same_total
    bound = theory.certificate(
        model,
        DELTA,
        X=one.sample,
        y=labels,
        population=one.population if needs else None,
        refits=1,
        **options,
    )
    score = "decision_function" if classifies else "predict"
    change = getattr(other, score)(one.sample) - getattr(model, score)(one.sample)
    moved = float(np.sqrt(np.average(change**2, weights=model.weights_)))
    flipped = certified = 0.0
    if classifies:
        flipped = float(np.mean(other.predict(one.population) != model.predict(one.population)))
        certified = float(bound.terms[FLIPS])
    spread = float(bound.terms["spread of the predictions"])
    return [moved, float(bound), flipped, certified, spread]


def exact(learner: Any, m: int) -> Any:
    """Return the exact solver of a learner's objective."""
    if isinstance(learner, SGDClassifier):
        return LogisticRegression(C=1 / (learner.alpha * m), tol=1e-8)
    return clone(learner)


def _summary(rows: NDArray[np.float64]) -> dict[str, Any]:
    moved, bound, flipped, certified, spread = rows.T
    failed = int(((moved > bound) | (flipped > certified)).sum())
    return {
        "draws": len(rows),
        "failed": failed,
        "bound over realised": round(float(np.median(bound / moved)), 2),
        "bound over spread": round(float(np.median(bound / spread)), 4),
        "flipped": round(float(flipped.mean()), 4),
        "certified flips": round(float(np.median(certified)), 4),
    }


def level(seeds: range) -> dict[str, Any]:
    """Return how often the headline is qualified where the assumptions hold."""
    return broken(seeds, only=("by cell", "log-linear ratio, raking", "log-linear ratio, logistic"))


def broken(seeds: range, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return how often the headline is qualified where the assumptions fail, and where not."""
    found: dict[str, Any] = {}
    for name, draw, weighter in _designs():
        if only and name not in only:
            continue
        failed = qualified = 0
        for seed in seeds:
            one = draw(10_000 + seed)
            model = Reweighted(Ridge(), weighter()).fit(
                one.sample, one.labels, population=one.population
            )
            parametric = "ratio" in name
            bound = theory.certificate(
                model,
                DELTA,
                X=one.sample,
                y=one.labels,
                population=one.population if parametric else None,
                refits=1,
            )
            weights = one.perfect * (
                model.weights_.sum() / one.perfect.sum() if parametric else model.weighter_.scale_
            )
            other = Ridge().fit(one.sample, one.labels, sample_weight=weights)
            change = other.predict(one.sample) - model.predict(one.sample)
            failed += bool(np.sqrt(np.average(change**2, weights=model.weights_)) > bound)
            qualified += bound.statement.startswith("Only if")
        found[name] = {"draws": len(seeds), "failed": failed, "qualified": qualified}
    return found


def _designs() -> Iterator[tuple[str, Callable[[int], Draw], Callable[[], Any]]]:
    yield "by cell", by_cell, tested_histogram
    for within in (0.5, 1.0):
        yield (
            f"within cells, {within:g}",
            lambda seed, w=within: by_cell(seed, within=w),
            tested_histogram,
        )
    for name, weighter in (("raking", raking), ("logistic", logistic)):
        yield f"log-linear ratio, {name}", by_ratio, weighter
        for square in (0.1, 0.2):
            yield (
                f"ratio with a square {square:g}, {name}",
                lambda seed, s=square: by_ratio(seed, 600, 1200, square=s),
                weighter,
            )


def hidden(seeds: range, odds: float = 1.2) -> dict[str, Any]:
    """Return whether hidden factors at the rows where they do most exceed the certificate."""
    found = {}
    for name in ("Ridge", "LogisticRegression", "LinearSVC, squared hinge"):
        learner, rows = LEARNERS[name], []
        for seed in seeds:
            one = by_cell(20_000 + seed)
            classifies = hasattr(learner, "decision_function")
            labels = (one.labels > 0).astype(int) if classifies else one.labels
            model = Reweighted(clone(learner), histogram()).fit(
                one.sample, labels, population=one.population
            )
            given: dict[str, Any] = {"X": one.sample, "y": labels}
            if classifies:
                given["population"] = one.population
            bound = theory.hidden_selection_certificate(model, odds, **given)
            score = "decision_function" if classifies else "predict"
            scores = getattr(model, score)(one.sample)
            slope = _slopes(name, scores, labels)
            moved = flipped = 0.0
            for angle in np.linspace(0, np.pi, 7)[:-1]:
                # The rows' part in one direction of the coefficients decides their factor.
                part = slope * (one.sample @ [np.cos(angle), np.sin(angle)])
                weights = model.weights_ * odds ** np.sign(part)
                other = clone(learner).fit(one.sample, labels, sample_weight=weights)
                change = getattr(other, score)(one.sample) - scores
                size = float(np.sqrt(np.average(change**2, weights=model.weights_)))
                if size > moved:
                    moved = size
                if classifies:
                    flip = np.mean(other.predict(one.population) != model.predict(one.population))
                    flipped = max(flipped, float(flip))
            certified = float(bound.terms[FLIPS]) if classifies else 0.0
            spread = float(bound.terms["spread of the predictions"])
            rows.append([moved, float(bound), flipped, certified, spread])
        found[name] = _summary(np.array(rows))
    return found


def _slopes(name: str, scores: NDArray[np.float64], labels: NDArray[Any]) -> NDArray[np.float64]:
    if name == "Ridge":
        return np.asarray(scores - labels)
    sign = np.where(labels == 1, 1.0, -1.0)
    if name == "LogisticRegression":
        return np.asarray(-sign / (1 + np.exp(sign * scores)))
    return np.asarray(-sign * np.maximum(0.0, 1 - sign * scores))
