"""Measure the defaults: ``OMP_NUM_THREADS=1 python -m benchmarks.defaults [PART ...]``.

Each part is stored in ``result.json`` beside this file as soon as it is done.

Protocol
--------
demonstration
    The 30 draws of ``unskew demo`` with seed 0. For each, the share of the population that the
    sample does not cover, the true test error of a straight line trained with each set of weights,
    and the verdict on the tree weights and on the automatic ones. A verdict is good if the weights
    leave no bias, at whatever cost; the sample reaches the population if at most 5 % of it is not
    covered. Nothing is left out.
caps
    The same draws and the same verdicts, of those whose sample reaches the population, with other
    caps of the automatic weights, and with a final calibration to the means.
no_harm
    100 draws of 2,000 patients, of whom 600 are selected uniformly at random. How often the
    automatic weights are exactly equal, and how often ``Reweighted`` then predicts to the last bit
    what the learner does without it: a straight line, and boosted trees.
columns
    500 draws of 4,000 rows with five independent columns: one related to selection and outcome, two
    to selection alone, two to the outcome alone. The error of the population's mean outcome by
    calibration to the means of some of the columns.
cost
    Wall and processor time: ``AutoWeights`` at m = 1,000 and n = 10,000 with 8 columns, and the
    whole process of ``unskew weigh`` on 10,000 sample and 100,000 population rows with 8 columns.
    The median of five.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from benchmarks.parts import run_parts
from unskew import (
    AutoWeights,
    CalibrationWeights,
    Reweighted,
    TreeWeights,
    Unweighted,
    diagnose,
    effective_sample_size,
)
from unskew.experiments.clinic import make_clinic
from unskew.experiments.demonstration import auto_weights, demonstrate

RESULT = Path(__file__).with_name("result.json")
DRAWS = 30
REACHED = 0.05


def demonstration() -> dict[str, Any]:
    """Return the errors and verdicts of each draw, and their summary."""
    draws = []
    for draw in demonstrate(DRAWS):
        fitted = {
            "tree": TreeWeights(overlap="ignore"),
            "auto": auto_weights(),
        }
        verdicts = {}
        for name, weighter in fitted.items():
            weighter.fit(draw.sample, draw.labels, population=draw.population)
            found = diagnose(draw.sample, draw.population, weighter, y=draw.labels)
            verdicts[name] = {"good": not found.bias_left, "headline": found.verdict.headline}
        errors = {name: round(error, 4) for name, error in draw.errors.items()}
        uncovered = round(1 - draw.covered, 4)
        draws.append({"uncovered": uncovered, "errors": errors, "verdicts": verdicts})
    reached = [one for one in draws if one["uncovered"] <= REACHED]
    return {
        "mean_error": {
            name: round(float(np.mean([one["errors"][name] for one in draws])), 4)
            for name in draws[0]["errors"]
        },
        "reached": len(reached),
        "good": {
            name: sum(one["verdicts"][name]["good"] for one in reached) for name in ("tree", "auto")
        },
        "draws": draws,
    }


def caps() -> dict[str, Any]:
    """Return error, effective share and good verdicts by cap and calibration."""
    others = {
        f"max_weight={cap}" + (", means" if to else ""): AutoWeights(
            max_weight=cap, calibrate_to=to, overlap="ignore"
        )
        for to in (None, "means")
        for cap in (10, 20, 50)
    }
    found: dict[str, list[Any]] = {name: [] for name in others}
    for draw in demonstrate(DRAWS, more=others):
        for name, weighter in others.items():
            share = effective_sample_size(draw.weights[name]) / len(draw.sample)
            better, good = draw.errors[name] < draw.errors["unweighted"], False
            if 1 - draw.covered <= REACHED:
                weighter.fit(draw.sample, population=draw.population)
                good = not diagnose(draw.sample, draw.population, weighter).bias_left
            found[name].append((draw.errors[name], share, better, good))
    return {
        name: {
            "mean_error": round(float(np.mean([one[0] for one in rows])), 4),
            "effective_share": round(float(np.mean([one[1] for one in rows])), 3),
            "better": sum(bool(one[2]) for one in rows),
            "good": sum(one[3] for one in rows),
        }
        for name, rows in found.items()
    }


def no_harm() -> dict[str, Any]:
    """Return how often nothing is changed where there is no bias."""
    learners = {
        "line": LinearRegression,
        "trees": lambda: HistGradientBoostingRegressor(max_iter=9),
    }
    equal, same = 0, dict.fromkeys(learners, 0)
    for seed in range(100):
        random = np.random.RandomState([1, seed])
        population, labels = make_clinic(2000, random_state=random)
        taken = random.permutation(2000)[:600]
        X, y = population[taken], labels[taken]
        weighter = AutoWeights(overlap="ignore").fit(X, population=population)
        is_equal = bool((weighter.weights_ == 1).all())
        equal += is_equal
        for name, make in learners.items() if is_equal else ():
            model = Reweighted(make(), AutoWeights(overlap="ignore"))
            predicted = model.fit(X, y, population=population).predict(population)
            same[name] += bool((predicted == make().fit(X, y).predict(population)).all())
    return {"draws": 100, "equal_weights": equal, "same_model": same}


def columns() -> dict[str, Any]:
    """Return bias, spread and effective sample size by the columns that are weighed by."""
    choices: dict[str, list[int] | None] = {
        "none": None,
        "both": [0],
        "both, selection alone": [0, 1, 2],
        "both, outcome alone": [0, 3, 4],
        "selection alone": [1, 2],
        "all": [0, 1, 2, 3, 4],
    }
    errors: dict[str, list[float]] = {name: [] for name in choices}
    shares: dict[str, list[float]] = {name: [] for name in choices}
    for seed in range(500):
        random = np.random.default_rng(seed)
        X = random.normal(size=(4000, 5))
        y = X[:, 0] + X[:, 3] + X[:, 4] + random.normal(size=4000)
        taken = random.uniform(size=4000) < 0.2 * np.minimum(1, np.exp(X[:, :3] @ [0.5, 1.0, 1.0]))
        for name, chosen in choices.items():
            weighter: Any = Unweighted(overlap="ignore")
            if chosen is not None:
                weighter = CalibrationWeights(features="means", columns=chosen, overlap="ignore")
            weights = weighter.fit(X[taken], population=X).weights_
            errors[name].append(float(np.average(y[taken], weights=weights) - y.mean()))
            shares[name].append(effective_sample_size(weights) / len(weights))
    return {
        name: {
            "bias": round(float(np.mean(found)), 4),
            "spread": round(float(np.std(found, ddof=1)), 4),
            "root_mean_square": round(float(np.sqrt(np.mean(np.square(found)))), 4),
            "effective_share": round(float(np.mean(shares[name])), 3),
        }
        for name, found in errors.items()
    }


def cost() -> dict[str, Any]:
    """Return the median time of five runs, and the processor's."""
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(1_000, 8)), random.normal(0.2, 1, size=(10_000, 8))
    found = {"AutoWeights": _median(lambda: AutoWeights().fit(sample, population=population))}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, size, shift in (("sample", 10_000, 0.0), ("population", 100_000, 0.2)):
            rows = random.normal(shift, 1, size=(size, 8))
            table = pa.table({f"x{number}": column for number, column in enumerate(rows.T)})
            pq.write_table(table, place / f"{name}.parquet")
        files = [str(place / f"{name}.parquet") for name in ("sample", "population", "weights")]
        command = [sys.executable, "-m", "unskew.cli", "weigh", *files[:2], "-o", files[2]]
        run = lambda: subprocess.run(command, check=True, capture_output=True)  # noqa: E731
        found["unskew weigh"] = _median(run)
    return found


def _median(work: Callable[[], Any]) -> dict[str, float]:
    times = []
    for _ in range(5):
        began = time.perf_counter(), _processor()
        work()
        times.append((time.perf_counter() - began[0], _processor() - began[1]))
    wall, processor = np.median(times, axis=0)
    return {"seconds": round(float(wall), 2), "processor_seconds": round(float(processor), 2)}


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    parts = (demonstration, caps, no_harm, columns, cost)
    run_parts({part.__name__: part for part in parts}, RESULT, __doc__)
