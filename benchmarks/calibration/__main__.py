"""Calibration: which features, how fast.

    python -m benchmarks.calibration features DATA    "auto" against "means" and "margins"
    python -m benchmarks.calibration solve            the solver at m = 100,000 with 200 features
    python -m benchmarks.calibration rake             raking against balance and a plain IPF loop

Protocol, written down before the runs:

- features: on each of the nine sets of the paper in the folder DATA, 20 draws of its logistic
  selection at slope 2, and 10 each at slope 4 and of its quadratic and threshold selection, on
  standardised inputs. The population is all rows, or 4,000 that are drawn. For each kind of
  features: the error of the weights, mean |w − w*| for w* = 1/probability, both scaled to
  a mean of one; the error of the label's weighted mean in standard errors of an even sample of
  that size; the effective share; the share of draws in which no exact weights exist ("relaxed").
- solve: standard normal features, targets at 0.02 standard deviations of noise and one at 0.8; five
  runs, median; the time of one multiplication ΦᵀΦ beside it.
- rake: ten margins of 2 to 11 levels, 100,000 sample rows that a logistic selection drew; each tool
  in the same process, in turn, three times; the largest relative error of a margin beside it. Peers
  run only where they are installed (requirements.txt).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unskew import CalibrationWeights, Margins, effective_sample_size
from unskew.experiments import datasets, sampling

RESULTS = Path(__file__).with_name("features.json")


def features(arguments: argparse.Namespace) -> None:
    """Compare kinds of features on the nine sets."""
    rows = []
    for name in datasets.available_sets(arguments.data):
        data = datasets.load(name, arguments.data)
        rows += list(_draws(name, np.asarray(data.X), np.asarray(data.y), arguments.draws))
        print(name, flush=True)
    frame = pd.DataFrame(rows)
    mechanisms = frame.groupby(["mechanism", "features"], sort=False).mean(numeric_only=True)
    sets = frame.groupby(["set", "features"], sort=False)["weight_error"].mean().unstack()
    summary = {
        "draws": arguments.draws,
        "by_mechanism": json.loads(mechanisms.round(4).reset_index().to_json(orient="records")),
        "weight_error_by_set": json.loads(sets.round(4).to_json(orient="index")),
    }
    arguments.output.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    print(mechanisms.round(3))
    print(sets.round(3))


def _draws(name: str, X: Any, y: Any, draws: int) -> Any:
    kinds = {
        "logistic, slope 2": (partial(sampling.logistic_selection, slope=2.0), draws),
        "logistic, slope 4": (sampling.logistic_selection, draws // 2),
        "quadratic": (sampling.quadratic_selection, draws // 2),
        "threshold": (sampling.threshold_selection, draws // 2),
    }
    for mechanism, (select, count) in kinds.items():
        for seed in range(count):
            random = np.random.RandomState(seed)
            few = random.permutation(len(X))[:4000]
            inputs = (X[few] - X[few].mean(axis=0)) / np.maximum(X[few].std(axis=0), 1e-12)
            selection = select(inputs, random_state=random)
            chosen = selection.mask
            truth = 1 / selection.probabilities[chosen]
            for kind in ("means", "margins", "auto"):
                found = _one(inputs, y[few], chosen, truth, kind)
                yield {"set": name, "mechanism": mechanism, "seed": seed, "features": kind, **found}


def _one(X: Any, y: Any, chosen: Any, truth: Any, kind: str) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighter = CalibrationWeights(features=kind, overlap="ignore", on_infeasible="relax")
        w = weighter.fit(X[chosen], population=X).weights_
    truth = truth / truth.mean()
    error = y.std() / np.sqrt(len(w))
    return {
        "weight_error": float(np.abs(w - truth).mean()),
        "mean_error": float(abs(np.average(y[chosen], weights=w) - y.mean()) / error),
        "effective_share": effective_sample_size(w) / len(w),
        "n_features": len(weighter.features_),
        "relaxed": float(weighter.slack_ > 0),
    }


def solve(arguments: argparse.Namespace) -> None:
    """Measure the solver alone."""
    del arguments
    random = np.random.default_rng(0)
    X = random.normal(size=(100_000, 200))
    means = {f"x{j}": 0.8 if j == 0 else 0.02 * random.normal() for j in range(200)}
    frame = pd.DataFrame(X, columns=list(means))
    for distance, options in (
        ("raking", {}),
        ("linear", {"bounds": (0, None)}),
        ("logit", {"bounds": (0.01, 20)}),
    ):
        times, fits = [], []
        for _ in range(5):
            started = time.perf_counter()
            weighter = CalibrationWeights(distance=distance, **options)
            fits.append(weighter.fit(frame, population=Margins(means=means)))
            times.append(time.perf_counter() - started)
        started = time.perf_counter()
        X.T @ X
        gram = time.perf_counter() - started
        certificate = fits[0].certificate_
        print(
            f"{distance}: {statistics.median(times):.2f} s for the whole fit, "
            f"{statistics.median(times) / gram:.1f} times one ΦᵀΦ ({gram:.3f} s); "
            f"{certificate.steps} steps, imbalance {certificate.imbalance:.1e}"
        )


def rake(arguments: argparse.Namespace) -> None:
    """Compare raking to ten margins with other tools."""
    del arguments
    random = np.random.default_rng(0)
    levels = range(2, 12)
    population = pd.DataFrame({f"v{k}": random.integers(0, k, 300_000).astype(str) for k in levels})
    score = sum((population[name] == "0") for name in population) - 2.0
    sample = population[random.uniform(size=len(population)) < 1 / (1 + np.exp(-score))]
    sample = sample.iloc[:100_000].reset_index(drop=True)
    counts = {name: population[name].value_counts().to_dict() for name in population}
    tools: dict[str, Callable[[], Any]] = {
        "unskew": lambda: (
            CalibrationWeights(total="population").fit(sample, population=Margins(counts)).weights_
        ),
        "IPF loop": lambda: _ipf(sample, counts),
    }
    try:
        import balance  # noqa: F401

        tools["balance"] = lambda: _balance(sample, population)
    except ImportError:
        print("balance is not installed here, so it is left out.")
    times: dict[str, list[float]] = {name: [] for name in tools}
    errors = {}
    for _ in range(3):
        for name, run in tools.items():
            started = time.perf_counter()
            weights = np.asarray(run(), dtype=float)
            times[name].append(time.perf_counter() - started)
            errors[name] = _margin_error(sample, counts, weights)
    ours = statistics.median(times["unskew"])
    for name, taken in times.items():
        middle = statistics.median(taken)
        print(f"{name}: {middle:.3f} s, {middle / ours:.1f} times ours; error {errors[name]:.1e}")


def _ipf(sample: pd.DataFrame, counts: dict[str, dict[str, int]]) -> Any:
    """Scale to each margin in turn until all agree within 1e-6, with pandas, as scripts do."""
    weights = pd.Series(1.0, index=sample.index)
    for _ in range(500):
        largest = 0.0
        for name, margin in counts.items():
            sums = weights.groupby(sample[name]).sum()
            factors = pd.Series(margin) / sums
            largest = max(largest, float((factors - 1).abs().max()))
            weights = weights * sample[name].map(factors)
        if largest < 1e-6:
            break
    return weights


def _balance(sample: pd.DataFrame, population: pd.DataFrame) -> Any:
    import logging

    from balance import Sample

    logging.getLogger("balance").setLevel(logging.ERROR)
    given = [
        Sample.from_frame(rows.assign(id=np.arange(len(rows)).astype(str)), id_column="id")
        for rows in (sample, population)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adjusted = given[0].adjust(given[1], method="rake", transformations=None)
    return adjusted.weights().df.iloc[:, 0]


def _margin_error(sample: pd.DataFrame, counts: dict[str, dict[str, int]], weights: Any) -> float:
    weights = weights / weights.sum()
    errors = []
    for name, margin in counts.items():
        total = sum(margin.values())
        sums = pd.Series(weights).groupby(sample[name]).sum()
        errors += [abs(sums[level] * total / count - 1) for level, count in margin.items()]
    return max(errors)


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("features")
    one.add_argument("data", type=Path)
    one.add_argument("--draws", type=int, default=20)
    one.add_argument("--output", type=Path, default=RESULTS)
    one.set_defaults(run=features)
    for run in (solve, rake):
        parts.add_parser(run.__name__).set_defaults(run=run)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
