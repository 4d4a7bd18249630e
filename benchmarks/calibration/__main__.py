"""Calibration: which features, how fast.

    python -m benchmarks.calibration features DATA    "auto" against "means" and "margins"
    python -m benchmarks.calibration solve            the solver at m = 100,000 with 200 features
    python -m benchmarks.calibration rake             raking against balance and a loop as in R

Protocol, written down before the runs:

- features: on each of the nine sets of the paper in the folder DATA, 20 draws of its logistic
  selection at slope 2, and 10 each at slope 4 and of its quadratic and threshold selection, on
  standardised inputs. The population is all rows, or 4,000 that are drawn. For each kind of
  features: the error of the weights, mean |w − w*| for w* = 1/probability, both scaled to
  a mean of one; the error of the label's weighted mean in standard errors of an even sample of
  that size; the effective share; the share of draws in which no exact weights exist ("relaxed").
- solve: standard normal features, targets at 0.02 standard deviations of noise and one at 0.8; five
  runs, median; the time of one multiplication ΦᵀΦ beside it.
- rake: see rake.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.calibration.rake import add_options, rake
from unskew import CalibrationWeights, Margins, effective_sample_size
from unskew.paper import datasets
from unskew.paper import selection as mechanisms

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
        "logistic, slope 2": (partial(mechanisms.logistic_selection, slope=2.0), draws),
        "logistic, slope 4": (mechanisms.logistic_selection, draws // 2),
        "quadratic": (mechanisms.quadratic_selection, draws // 2),
        "threshold": (mechanisms.threshold_selection, draws // 2),
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


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("features")
    one.add_argument("data", type=Path)
    one.add_argument("--draws", type=int, default=20)
    one.add_argument("--output", type=Path, default=RESULTS)
    one.set_defaults(run=features)
    parts.add_parser("solve").set_defaults(run=solve)
    one = parts.add_parser("rake")
    add_options(one)
    one.set_defaults(run=rake)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
