"""How often headlines are qualified, where the assumptions hold and where they fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from benchmarks.theory.learners import designs
from benchmarks.theory.learners.designs import DELTA, Draw
from unskew import Reweighted, theory

DESIGNS: dict[str, tuple[Callable[[int], Draw], Callable[[], Any]]] = {
    "by cell": (designs.by_cell, designs.tested_histogram),
    **{
        f"within cells, {within:g}": (
            partial(designs.by_cell, within=within),
            designs.tested_histogram,
        )
        for within in (0.5, 1.0)
    },
}
for _name, _weighter in (("raking", designs.raking), ("logistic", designs.logistic)):
    DESIGNS[f"log-linear ratio, {_name}"] = designs.by_ratio, _weighter
    for _square in (0.1, 0.2):
        DESIGNS[f"ratio with a square {_square:g}, {_name}"] = (
            partial(designs.by_ratio, m=600, n=1200, square=_square),
            _weighter,
        )


def qualified(name: str, seeds: range) -> dict[str, int]:
    """Return how often the certificate of Ridge fails, and how often its headline is qualified."""
    draw, weighter = DESIGNS[name]
    parametric = "ratio" in name
    failed = found = 0
    for seed in seeds:
        one = draw(10_000 + seed)
        model = Reweighted(Ridge(), weighter()).fit(
            one.sample, one.labels, population=one.population
        )
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
        found += bound.statement.startswith("Only if")
    return {"draws": len(seeds), "failed": failed, "qualified": found}
