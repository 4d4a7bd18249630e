"""One cell of the benchmark, a draw of a table under a mechanism: its weights and its learners."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.accuracy.draws import Draw, make_draw
from benchmarks.accuracy.methods import (
    EVERY_DRAW,
    SOME_DRAWS,
    Found,
    learner_error,
    learners,
)
from benchmarks.accuracy.tables import Table
from unskew import Reweighted, effective_sample_size
from unskew.errors import UnskewError

Record = dict[str, Any]
Weigh = Callable[[Draw], dict[str, Any]]
"""From a draw to each method's pair of weights and processor seconds, or a text: why not."""


def run_cell(
    table: Table, mechanism: str, number: int, seed: int, turn: int, weigh: Weigh
) -> Record:
    """Measure the weights of some methods, and a learner with them, on one draw."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draw = make_draw(table, mechanism, number, seed)
        record: Record = {"table": table.name, "mechanism": mechanism, "draw": number}
        record |= {"m": len(draw.sample), "n": len(draw.population), "methods": {}, "failed": {}}
        trained = Trained(table, draw, turn)
        record |= {"learner": trained.name, "unweighted": _rounded(trained.unweighted)}
        for name, found in weigh(draw).items():
            if isinstance(found, str):
                record["failed"][name] = found
                continue
            weights, seconds = found
            record["methods"][name] = {
                **measure(weights, draw),
                "seconds": round(seconds, 3),
                "change": trained.change(weights),
            }
            if name == "AutoWeights":
                record["flat"] = bool(np.ptp(weights) == 0)
                record["reweighted"] = trained.reweighted(weights)
        return record


def ours(makers: Mapping[str, Callable[[Draw], Any]]) -> Weigh:
    """Return what fits weighters of this package."""

    def weigh(draw: Draw) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, make in makers.items():
            begun = time.process_time()
            try:
                weighter = make(draw).fit(draw.sample, draw.labels, population=draw.population)
            except UnskewError as error:
                found[name] = f"{type(error).__name__}: {error}"[:200]
                continue
            found[name] = weighter.weights_, time.process_time() - begun
        if "AutoWeights" in found:
            weights, seconds = found["AutoWeights"]
            found["AutoWeights, power ½"] = np.sqrt(weights), seconds
        return found

    return weigh


PARTS: dict[str, Weigh] = {"every draw": ours(EVERY_DRAW), "some draws": ours(SOME_DRAWS)}


def measure(weights: np.ndarray, draw: Draw) -> dict[str, float]:
    """Return the errors of weights and of weighted means, and the effective share."""
    weights = weights / weights.mean()
    truth = 1.0 / draw.chances
    share = weights / len(weights)

    def apart(sample: np.ndarray, population: np.ndarray) -> float:
        """Return the error of means in standard errors of an even sample of this size."""
        spread = population.std(axis=0) / np.sqrt(len(sample))
        off = np.abs(share @ sample - population.mean(axis=0))
        return float(np.mean((off / np.where(spread > 0, spread, np.nan))[spread > 0]))

    return {
        "weight": _rounded(np.abs(weights - truth / truth.mean()).mean()),
        "effective": _rounded(effective_sample_size(weights) / len(weights)),
        "label mean": _rounded(
            apart(draw.labels[:, None].astype(float), draw.population_labels[:, None].astype(float))
        ),
        "column means": _rounded(apart(draw.sample_matrix, draw.matrix)),
    }


class Trained:
    """The learner whose turn it is, and its errors relative to not weighting."""

    def __init__(self, table: Table, draw: Draw, turn: int) -> None:
        self.draw = draw
        self.name, self.learner = list(learners(table).items())[turn % 3]
        self.unweighted = learner_error(self._fitted(None), draw)

    def change(self, weights: np.ndarray) -> float:
        """Return (error with weights) / (error without) - 1."""
        if np.ptp(weights) == 0:
            return 0.0
        return self._change(self._fitted(weights / weights.mean()))

    def reweighted(self, weights: np.ndarray) -> dict[str, Any]:
        """Return the change by ``Reweighted(learner)``, and what it chose."""
        begun = time.process_time()
        model = Reweighted(self.learner, Found.of(weights))
        model.fit(self.draw.sample, self.draw.labels, population=self.draw.population)
        return {
            "chosen": model.chosen_.replace("Found", "AutoWeights"),
            "change": self._change(model.estimator_),
            "seconds": round(time.process_time() - begun, 3),
        }

    def _fitted(self, weights: np.ndarray | None) -> Any:
        model = clone(self.learner)
        key = f"{model.steps[-1][0]}__sample_weight" if hasattr(model, "steps") else "sample_weight"
        given = {} if weights is None else {key: weights}
        return model.fit(self.draw.sample, self.draw.labels, **given)

    def _change(self, model: Any) -> float:
        return _rounded(learner_error(model, self.draw) / self.unweighted - 1.0)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
