"""Coverage on the paper's nine regression sets under the paper's selection.

Each draw shuffles a set, takes the paper's number of rows as the population and of test rows, and
selects the sample from the population along a random direction, Pr[s = 1 | x] = e^v / (1 + e^v)
with v four times the standardised projection. Boosted trees are calibrated for 90 %, without
weights and with ``AutoWeights``; the coverage is that of the test rows. For sets of classes the
target is whether y is above its median. Regressor and classifier split the sample alike, so that
the weights of one serve the other. Draws are stored one by one: a run that is stopped goes on where
it was. housing has some 150 sample rows, half of which are too few for 90 % under these weights;
there "cv+" is measured too.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.preprocessing import StandardScaler

from unskew import (
    AutoWeights,
    ConformalClassifier,
    ConformalRegressor,
    KnownProbability,
    Population,
    Unweighted,
)
from unskew.paper.datasets import KNOWN, DataSet, load
from unskew.paper.selection import logistic_selection

SIZES = {"max_iter": 60, "random_state": 0}


class InverseWeight:
    """The probability of selection that fitted weights stand for.

    Only ratios of weights matter, so it is taken so small that it never exceeds one.
    """

    def __init__(self, weighter: Any) -> None:
        self.weighter = weighter

    def __call__(self, X: Any) -> Any:
        """Return it at rows."""
        return 1e-9 / np.maximum(self.weighter.weigh(X), 1e-9)


def one_draw(data: DataSet, seed: int) -> dict[str, Any]:
    """Return coverage, share of infinite intervals and sizes of sets in one draw."""
    X = StandardScaler().fit_transform(data.X)
    y = StandardScaler().fit_transform(data.y.reshape(-1, 1)).ravel()
    random = np.random.RandomState(seed)
    rows = random.permutation(len(y))
    drawn, test = rows[: data.n], rows[data.n : data.n + data.n_test]
    mine = drawn[logistic_selection(X[drawn], random_state=random).mask]
    population = Population(X[drawn])
    above = y > np.median(y)
    result: dict[str, Any] = {"seed": seed, "sample": len(mine)}

    def regress(name: str, weighter: Any, method: str = "split") -> ConformalRegressor:
        model = ConformalRegressor(
            HistGradientBoostingRegressor(**SIZES), weighter, method=method, random_state=seed
        ).fit(X[mine], y[mine], population=population)
        low, high = model.predict_interval(X[test]).T
        inside = (low <= y[test]) & (y[test] <= high)
        result[name] = {
            "coverage": round(float(inside.mean()), 4),
            "infinite": round(model.infinite_share_, 4),
            "width": round(float(np.median(high - low)), 4),
            "effective": round(model.effective_sample_size_, 1),
        }
        return model

    def classify(name: str, weighter: Any) -> None:
        model = ConformalClassifier(
            HistGradientBoostingClassifier(**SIZES), weighter, random_state=seed
        ).fit(X[mine], above[mine], population=population)
        sets = model.predict_set(X[test])
        held = sets[np.arange(len(test)), above[test].astype(int)]
        result[f"{name}, classes"] = {
            "coverage": round(float(held.mean()), 4),
            "infinite": round(model.infinite_share_, 4),
            "size": round(float(sets.sum(axis=1).mean()), 4),
        }

    begin = process_time()
    regress("unweighted", Unweighted())
    classify("unweighted", Unweighted())
    automatic = AutoWeights(overlap="ignore")
    fitted = regress("weighted", automatic).weighters_[0]
    classify("weighted", KnownProbability(InverseWeight(fitted)))
    if data.name == "housing":
        regress("unweighted, cv+", Unweighted(), "cv+")
        regress("weighted, cv+", automatic, "cv+")
    result["seconds"] = round(process_time() - begin, 1)
    return result


def simulate(folder: Path, stored: Path, draws: int) -> None:
    """Make the draws that are missing, each number of draw for all sets before the next."""
    found = json.loads(stored.read_text()) if stored.exists() else {}
    for seed in range(draws):
        for name in KNOWN:
            kept = found.setdefault(name, [])
            if seed in [one["seed"] for one in kept]:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kept.append(one_draw(load(name, folder), seed))
            stored.write_text(json.dumps(found, indent=0) + "\n")
            print(name, json.dumps(kept[-1]), flush=True)


def means(stored: Path) -> dict[str, Any]:
    """Return the means over draws, for each set and kind."""
    found = json.loads(stored.read_text())
    result: dict[str, Any] = {}
    for name, draws in found.items():
        result[name] = {"draws": len(draws)}
        for kind in [kind for kind in draws[0] if isinstance(draws[0][kind], dict)]:
            coverage = np.array([one[kind]["coverage"] for one in draws])
            result[name][kind] = {
                "coverage": round(float(coverage.mean()), 4),
                "standard_error": round(float(coverage.std() / len(draws) ** 0.5), 4),
                "infinite": round(float(np.mean([one[kind]["infinite"] for one in draws])), 4),
            }
    return result
