"""How often the two-sample tests of a diagnosis find bias, with and without bias.

Protocol, written before the run
--------------------------------
1. A draw makes a sample and a population of one of ``SCENARIOS`` from the generator
   ``numpy.random.default_rng(seed)``, and diagnoses them by ``diagnose(..., random_state=seed)``
   with seeds 0, 1, 2, … Nothing is repeated or left out.
2. Counted are the draws in which the smaller p-value of the two tests is below 2.5 % (what a
   verdict of bias rests on), and in which the p-value of each test alone is below 5 %.
3. *Even* scenarios have no bias: each sample row is a uniform draw, or carries the weight that
   makes up for its probability of selection. 500 draws of the first three, 200 of the others.
   The rate of each test alone should have 5 % in its binomial interval, of the level 99.9 %: of
   some 40 rates, one misses by chance in one run of 25. The rate of the verdict should not exceed
   5 % by more than that, and may be lower, for the tests are not independent.
4. *Biased* scenarios have selection whose strength is stated. 100 draws, 40 of the largest. The
   rates are the power;
   nothing is promised, but a sample that is part of the population (S ⊂ U) should have about that
   of a disjoint one.
5. *Weights* scenarios count how often weights are called overfitted: inverses of the true
   probabilities, which should not be, and kernel mean matching without a ridge on even samples,
   whose weights have nothing to correct. 50 draws.

``python -m benchmarks.diagnosis`` writes ``results.json`` beside this file.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unskew import KernelMeanMatching, Population, diagnose

RESULT = Path(__file__).with_name("results.json")

Random = np.random.Generator
Drawn = tuple[Any, Any, dict[str, Any]]
"""Sample, population, and what else diagnose is given."""


def _logistic(values: Any, slope: float) -> Any:
    return 1 / (1 + np.exp(-slope * values))


def normal(m: int, n: int, d: int, slope: float = 0.0) -> Callable[[Random], Drawn]:
    """Return disjoint draws of normal columns; selection is logistic in the first."""

    def draw(random: Random) -> Drawn:
        rows = random.normal(size=(4 * m, d))
        chosen = random.uniform(size=4 * m) < _logistic(rows[:, 0], slope)
        return rows[chosen][:m], random.normal(size=(n, d)), {}

    return draw


def part(m: int, n: int, d: int, slope: float = 0.0, marked: bool = False) -> Any:
    """Return a sample that is part of the population (S ⊂ U), perhaps marked as such."""

    def draw(random: Random) -> Drawn:
        rows = random.normal(size=(n, d))
        chance = _logistic(rows[:, 0], slope)
        chosen = random.choice(n, m, replace=False, p=chance / chance.sum())
        marks = np.isin(np.arange(n), chosen)
        return rows[chosen], Population(rows, selected=marks) if marked else rows, {}

    return draw


def text(m: int, n: int, n_categories: int, ratio: float = 1.0) -> Callable[[Random], Drawn]:
    """Return texts of equal frequency; half of them ``ratio`` times as often in the sample."""

    def draw(random: Random) -> Drawn:
        names = np.array([f"c{k:05}" for k in range(n_categories)])
        chance = np.where(np.arange(n_categories) % 2, ratio, 1.0)
        mine = random.choice(n_categories, m, p=chance / chance.sum())
        theirs = random.integers(0, n_categories, n)
        return pd.DataFrame({"text": names[mine]}), pd.DataFrame({"text": names[theirs]}), {}

    return draw


def unseen(m: int, n: int) -> Callable[[Random], Drawn]:
    """Return a long tail of texts, most of which one side lacks, and missing values."""

    def side(random: Random, n_rows: int) -> Any:
        ranks = np.minimum(random.zipf(1.3, n_rows), 100_000)
        return pd.DataFrame(
            {
                "text": [f"t{rank}" for rank in ranks],
                "few": random.choice(["a", "b", "c"], n_rows),
                "number": np.where(
                    random.uniform(size=n_rows) < 0.1, np.nan, random.normal(size=n_rows)
                ),
            }
        )

    return lambda random: (side(random, m), side(random, n), {})


def few_values(m: int, n: int) -> Callable[[Random], Drawn]:
    """Return disjoint draws of 36 distinct rows: equal ones are no sign of a common row."""

    def side(random: Random, n_rows: int) -> Any:
        return random.integers(0, [2, 3, 6], size=(n_rows, 3)).astype(float)

    return lambda random: (side(random, m), side(random, n), {})


def design(n: int, inside: bool, on_population: bool = False) -> Callable[[Random], Drawn]:
    """Return a sample of unequal probabilities with its design weights."""

    def draw(random: Random) -> Drawn:
        rows = random.normal(size=(n, 4))
        chance = 0.1 + 0.3 * _logistic(rows[:, 0], 2.0)
        chosen = random.uniform(size=n) < chance
        others = rows if inside else random.normal(size=(n, 4))
        options: dict[str, Any] = {"sample_weight": 1 / chance[chosen]}
        if on_population:  # which stands for what its rows count
            counts = 1 + random.poisson(1.0, n)
            return rows[chosen], Population(others, weight=counts), options
        return rows[chosen], others, options

    return draw


SCENARIOS: dict[str, tuple[str, int, Callable[[Random], Drawn]]] = {
    "4 numbers, m = 50": ("even", 500, normal(50, 200, 4)),
    "4 numbers, m = 400": ("even", 500, normal(400, 1600, 4)),
    "4 numbers, m = 1,000": ("even", 500, normal(1000, 4000, 4)),
    "4 numbers, m = 5,000": ("even", 200, normal(5000, 20_000, 4)),
    "30 numbers, m = 50": ("even", 200, normal(50, 200, 30)),
    "30 numbers, m = 400": ("even", 200, normal(400, 1600, 30)),
    "200 texts, m = 50": ("even", 200, text(50, 200, 200)),
    "200 texts, m = 400": ("even", 200, text(400, 1600, 200)),
    "5,000 texts, m = 400": ("even", 200, text(400, 1600, 5000)),
    "long tail of texts, missing values, m = 400": ("even", 200, unseen(400, 1600)),
    "36 distinct rows, m = 400": ("even", 200, few_values(400, 1600)),
    "S in U, m = 50 of 200": ("even", 200, part(50, 200, 4)),
    "S in U, m = 400 of 2,000": ("even", 200, part(400, 2000, 4)),
    "S in U, m = 400 of 2,000, marked": ("even", 200, part(400, 2000, 4, marked=True)),
    "S in U, m = 1,000 of 2,000": ("even", 200, part(1000, 2000, 4)),
    "S in U, m = 400 of 2,000, 30 numbers": ("even", 200, part(400, 2000, 30)),
    "design weights, disjoint": ("even", 200, design(1600, inside=False)),
    "design weights, S in U": ("even", 200, design(1600, inside=True)),
    "design weights on both sides": ("even", 200, design(1600, False, on_population=True)),
    "slope 0.3, disjoint": ("biased", 100, normal(400, 1600, 4, slope=0.3)),
    "slope 0.3, S in U": ("biased", 100, part(400, 2000, 4, slope=0.3)),
    "slope 0.3, S in U, marked": ("biased", 100, part(400, 2000, 4, slope=0.3, marked=True)),
    "slope 0.5, disjoint": ("biased", 100, normal(400, 1600, 4, slope=0.5)),
    "slope 0.5, S in U": ("biased", 100, part(400, 2000, 4, slope=0.5)),
    "slope 0.5, disjoint, 30 numbers": ("biased", 100, normal(400, 1600, 30, slope=0.5)),
    "slope 0.5, S in U, 30 numbers": ("biased", 100, part(400, 2000, 30, slope=0.5)),
    "slope 1, m = 50": ("biased", 100, normal(50, 200, 4, slope=1.0)),
    "slope 0.2, m = 5,000": ("biased", 40, normal(5000, 20_000, 4, slope=0.2)),
    "200 texts, half of them 1.5 times": ("biased", 100, text(400, 1600, 200, ratio=1.5)),
    "200 texts, half of them 3 times": ("biased", 100, text(400, 1600, 200, ratio=3.0)),
    "5,000 texts, half of them 3 times": ("biased", 100, text(400, 1600, 5000, ratio=3.0)),
}


def known_weights(random: Random) -> tuple[Any, Any, Any]:
    """Return a sample with the inverses of its probabilities of selection, part of it costly."""
    rows = random.normal(size=(1600, 4))
    chance = _logistic(rows[:, 0], 2.0)
    chosen = random.uniform(size=1600) < chance
    return rows[chosen], random.normal(size=(1600, 4)), 1 / chance[chosen]


def matched_weights(ridge: float) -> Callable[[Random], tuple[Any, Any, Any]]:
    """Return an even sample and the weights that kernel mean matching gives it."""

    def draw(random: Random) -> tuple[Any, Any, Any]:
        sample, population = random.normal(size=(300, 5)), random.normal(size=(1500, 5))
        matching = KernelMeanMatching(ridge=ridge, overlap="ignore")
        return sample, population, matching.fit(sample, population=population)

    return draw


WEIGHTS: dict[str, tuple[int, Callable[[Random], tuple[Any, Any, Any]]]] = {
    "inverses of the true probabilities": (50, known_weights),
    "kernel mean matching, ridge 0, even sample": (50, matched_weights(0.0)),
    "kernel mean matching, ridge 3, even sample": (50, matched_weights(3.0)),
}


def main() -> None:
    """Run every scenario, print the rates and write them to ``RESULT``."""
    found: dict[str, Any] = {"even": {}, "biased": {}, "weights": {}}
    print(
        f"{'scenario':46} {'draws':>5} {'verdict':>8} {'MMD':>6} {'classifier':>10}  seconds a draw"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (kind, draws, draw) in SCENARIOS.items():
            found[kind][name] = rates(draws, draw)
            _show(name, found[kind][name])
        for name, (draws, drawn) in WEIGHTS.items():
            found["weights"][name] = overfitted(draws, drawn)
            print(name, found["weights"][name], flush=True)
    RESULT.write_text(as_lines(found))


def rates(draws: int, draw: Callable[[Random], Drawn]) -> dict[str, Any]:
    counts = dict.fromkeys(("verdict", "mmd", "classifier"), 0)
    started = time.process_time()
    for seed in range(draws):
        sample, population, options = draw(np.random.default_rng(seed))
        bias = diagnose(sample, population, random_state=seed, **options).bias
        mmd, classifier = bias.mmd.before.p_value, bias.classifier.before.p_value
        counts["verdict"] += min(mmd, classifier) < 0.025
        counts["mmd"] += mmd < 0.05
        counts["classifier"] += classifier < 0.05
    seconds = (time.process_time() - started) / draws
    return {"draws": draws, **counts, "seconds": round(seconds, 3)}


def overfitted(draws: int, draw: Callable[[Random], tuple[Any, Any, Any]]) -> dict[str, Any]:
    named, aucs = 0, []
    for seed in range(draws):
        sample, population, weights = draw(np.random.default_rng(seed))
        found = diagnose(sample, population, weights, random_state=seed)
        named += "overfitted" in found.verdict.headline
        after = found.bias.classifier.after
        aucs.append(float("nan") if after is None else after.statistic)
    return {"draws": draws, "overfitted": named, "median AUC": round(float(np.median(aucs)), 3)}


def as_lines(found: dict[str, Any]) -> str:
    """Return JSON with one scenario a line."""
    text = json.dumps(found, ensure_ascii=False)
    return text.replace('": {"draws"', '":\n {"draws"') + "\n"


def _show(name: str, counted: dict[str, Any]) -> None:
    verdict, mmd, classifier = (
        counted[key] / counted["draws"] for key in ("verdict", "mmd", "classifier")
    )
    print(
        f"{name:46} {counted['draws']:5} {verdict:8.3f} {mmd:6.3f} {classifier:10.3f} "
        f"{counted['seconds']:15.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
