"""How often certificates fail in draws in which the perfect weights are known."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from benchmarks.theory.learners import designs
from benchmarks.theory.learners.designs import DELTA, LEARNERS, Draw, classifies, exact, scores
from unskew import Population, Reweighted, theory

Found = dict[str, dict[str, Any]]
"""What was found of each learner."""
FLIPS = "share of the population whose prediction could flip"


def cells(learners: Sequence[str], seeds: range) -> Found:
    """Return how often certificates fail where selection is by cell."""
    return _validity(learners, seeds, designs.by_cell, designs.histogram, same_total=False)


def calibration(learners: Sequence[str], seeds: range) -> Found:
    """Return how often certificates fail over the covariance of raking."""
    return _validity(learners, seeds, designs.by_ratio, designs.raking)


def logistic(learners: Sequence[str], seeds: range) -> Found:
    """Return how often certificates fail over the covariance of a logistic model."""
    return _validity(learners, seeds, designs.by_ratio, designs.logistic)


def penalised(learners: Sequence[str], seeds: range) -> Found:
    """Return the same for a logistic model with a penalty."""
    return _validity(learners, seeds, designs.by_ratio, designs.penalised)


def bootstrap(learners: Sequence[str], seeds: range) -> Found:
    """Return how often certificates fail over bootstrap replicates of raking."""
    return _validity(
        learners, seeds, designs.by_ratio, designs.raking, region="bootstrap", replicates=39
    )


def pooled(learners: Sequence[str], seeds: range) -> Found:
    """Return how often certificates fail over bootstrap replicates of pooled weights."""
    return _validity(
        learners, seeds, designs.by_ratio, designs.pooled, region="bootstrap", replicates=19
    )


def _validity(
    learners: Sequence[str],
    seeds: range,
    draw: Callable[[int], Draw],
    weighter: Callable[[], Any],
    *,
    same_total: bool = True,
    **options: Any,
) -> Found:
    rows: dict[str, list[list[float]]] = {name: [] for name in learners}
    for seed in seeds:
        weighed = _Weighed(draw(seed), weighter())
        for name in learners:
            rows[name].append(_outcome(weighed, LEARNERS[name], same_total, **options))
    return {name: _summary(found) for name, found in rows.items()}


class _Weighed:
    """A draw whose weights all learners share."""

    def __init__(self, one: Draw, weighter: Any) -> None:
        self.draw = one
        self.population = Population(one.population)
        self.fitted = Reweighted(Ridge(), weighter, power=1).fit(
            one.sample, one.labels, population=self.population
        )

    def model(self, learner: Any) -> Any:
        """Return the learner fitted with the weights, as Reweighted fits it."""
        model = copy.copy(self.fitted)
        model.estimator = learner
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.estimator_ = clone(learner).fit(
                self.draw.sample, self.draw.labels_for(learner), sample_weight=model.weights_
            )
        return model


def _outcome(weighed: _Weighed, learner: Any, same_total: bool, **options: Any) -> list[float]:
    one, model = weighed.draw, weighed.model(learner)
    weights = one.perfect * (
        model.weights_.sum() / one.perfect.sum() if same_total else model.weighter_.scale_
    )
    bound = theory.certificate(
        model,
        DELTA,
        X=one.sample,
        y=one.labels_for(learner),
        population=weighed.population if classifies(learner) or same_total else None,
        refits=1,
        **options,
    )
    return _compared(one, learner, model, bound, [weights])


def _compared(
    one: Draw, learner: Any, model: Any, bound: Any, candidates: list[NDArray[np.float64]]
) -> list[float]:
    """Return what the worst of some weights realise, what is certified, and the spread."""
    moved = flipped = certified = 0.0
    before = scores(model.estimator_, one.sample)
    classes = model.estimator_.predict(one.population) if classifies(learner) else None
    for weights in candidates:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            other = exact(learner, len(weights)).fit(
                one.sample, one.labels_for(learner), sample_weight=weights
            )
        change = scores(other, one.sample) - before
        moved = max(moved, float(np.sqrt(np.average(change**2, weights=model.weights_))))
        if classifies(learner):
            flipped = max(flipped, float((other.predict(one.population) != classes).mean()))
    if classifies(learner):
        certified = float(bound.terms[FLIPS])
    return [
        moved,
        float(bound),
        flipped,
        certified,
        float(bound.terms["spread of the predictions"]),
    ]


def _summary(rows: list[list[float]]) -> dict[str, Any]:
    moved, bound, flipped, certified, spread = np.array(rows).T
    return {
        "draws": len(rows),
        "failed": int(((moved > bound) | (flipped > certified)).sum()),
        "bound over realised": round(float(np.median(bound / moved)), 2),
        "bound over spread": round(float(np.median(bound / spread)), 4),
        "flipped": round(float(flipped.mean()), 4),
        "certified flips": round(float(np.median(certified)), 4),
    }
