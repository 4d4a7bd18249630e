"""Raking to ten margins: unskew against balance and a loop as R's survey has it, in one run.

Protocol, written down before the runs:

- Ten margins of 2 to 11 levels, independent; 100,000 sample rows that a logistic selection drew
  from 300,000, as a pandas table of text, and of categories.
- unskew: the whole fit, from the table and a dict of counts to weights.
- loop: post-stratify to one margin after the other until no weight changes by more than 1e-6 in a
  round, in plain pandas, as `survey::rake` does and survey offices write it; and the same with the
  levels made categories beforehand, which is not counted.
- balance: `Sample.adjust(method="rake")` with its defaults, without the conversion of the rows, in
  an environment of its own, because its dependencies contradict ours. It is made at the first run
  (`python -m venv`), from requirements.txt. The time is taken inside that process.
- The tools run in turn, five rounds; the medians are compared. balance takes minutes: one round.
- Beside each: the largest relative error of a margin.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unskew import CalibrationWeights, Margins

HERE = Path(__file__).parent
Counts = dict[str, dict[str, int]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", type=Path, default=Path(".venv-balance"))
    parser.add_argument("--without-balance", action="store_true")


def rake(arguments: argparse.Namespace) -> None:
    """Compare raking to ten margins with other tools."""
    sample, population = make_data()
    counts = {name: population[name].value_counts().to_dict() for name in population}
    categories = sample.astype("category")
    tools: dict[str, Callable[[], Any]] = {
        "unskew, text": lambda: _unskew(sample, counts),
        "unskew, categories": lambda: _unskew(categories, counts),
        "loop, text": lambda: _loop(sample, counts),
        "loop, categories": lambda: _loop(categories, counts),
    }
    times: dict[str, list[float]] = {name: [] for name in tools}
    errors = {}
    for run in tools.values():  # imports and caches
        run()
    for _ in range(arguments.rounds):
        for name, run in tools.items():
            started = time.perf_counter()
            weights = np.asarray(run(), dtype=float)
            times[name].append(time.perf_counter() - started)
            errors[name] = margin_error(sample, counts, weights)
    if not arguments.without_balance:
        taken, weights = _balance(sample, population, arguments.peers)
        times["balance"], errors["balance"] = [taken], margin_error(sample, counts, weights)
    ours = statistics.median(times["unskew, text"])
    for name, all_times in times.items():
        middle = statistics.median(all_times)
        print(
            f"{name}: {middle:.3f} s ({min(all_times):.3f} to {max(all_times):.3f}), "
            f"{middle / ours:.1f} times ours; largest error of a margin {errors[name]:.0e}"
        )


def make_data() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the sample and the population."""
    random = np.random.default_rng(0)
    levels = range(2, 12)
    population = pd.DataFrame({f"v{k}": random.integers(0, k, 300_000).astype(str) for k in levels})
    score = sum((population[name] == "0") for name in population) - 2.0
    sample = population[random.uniform(size=len(population)) < 1 / (1 + np.exp(-score))]
    return sample.iloc[:100_000].reset_index(drop=True), population


def _unskew(sample: pd.DataFrame, counts: Counts) -> Any:
    weighter = CalibrationWeights(total="population")
    return weighter.fit(sample, population=Margins(counts)).weights_


def _loop(sample: pd.DataFrame, counts: Counts, tolerance: float = 1e-6) -> Any:
    """Post-stratify to each margin in turn until the weights stay as they are."""
    margins = {name: pd.Series(margin) for name, margin in counts.items()}
    weights = pd.Series(1.0, index=sample.index)
    for _ in range(500):
        before = weights
        for name, margin in margins.items():
            factors = margin / weights.groupby(sample[name], observed=True).sum()
            weights = weights * sample[name].map(factors).astype(float)
        if (weights / before - 1).abs().max() < tolerance:
            break
    return weights


def _balance(sample: pd.DataFrame, population: pd.DataFrame, peers: Path) -> tuple[float, Any]:
    """Return the seconds that balance took in its own environment, and its weights."""
    python = peers / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", peers], check=True)
        needed = ["-r", HERE / "requirements.txt"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *needed], check=True)
    with tempfile.TemporaryDirectory() as folder:
        sample.to_csv(Path(folder, "sample.csv"), index=False)
        population.to_csv(Path(folder, "population.csv"), index=False)
        subprocess.run([python.absolute(), HERE / "rake_with_balance.py", folder], check=True)
        found = json.loads(Path(folder, "balance.json").read_text())
    return found["seconds"], np.array(found["weights"])


def margin_error(sample: pd.DataFrame, counts: Counts, weights: Any) -> float:
    """Return the largest relative error of a level's share."""
    weights = weights / weights.sum()
    errors = []
    for name, margin in counts.items():
        total = sum(margin.values())
        sums = pd.Series(weights).groupby(sample[name]).sum()
        errors += [abs(sums[level] * total / count - 1) for level, count in margin.items()]
    return max(errors)
