"""How often a sample is falsely called not correctable, and whether what is excluded is found.

Protocol, written before the run. A draw counts as "not correctable" where the uncovered share
exceeds 5 %, the limit of the verdict; the share is that of ``Unweighted(overlap=1.0)``, which
searches as ``diagnose`` does (20,000 population rows at most).

1. *Unbiased designs* (``EVEN``): the sample is an even draw, or one with known unequal
   probabilities and their inverse as design weights. 500 draws of each, with the seeds 0 to 499.
   Goal: fewer than 1 % of the draws of every design are called not correctable. Also reported: how
   often anything at all is called uncovered.
2. *Excluded categories* (``EXCLUDED``): of 21 categories one has a share of 20 %, 5 % or 1 % of the
   population and never answers; the others are equal and answer evenly. 100 draws of each.
   Reported: how often a rule names it, and the mean of the uncovered share. No goal was set: a
   category of share p is too frequent to be absent by chance where m p is about 8 or more.

The result is in ``overlap.json`` beside this file.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from unskew import Population, Unweighted

DRAWS, POWER_DRAWS = 500, 100
LIMIT = 0.05
RESULT = Path(__file__).with_name("overlap.json")


class Draw(NamedTuple):
    """A sample and a population, with their design weights."""

    sample: Any
    population: Any
    sample_weight: Any = None
    population_weight: Any = None


Design = Callable[[np.random.Generator], Draw]


def equal(m: int, n: int, k: int, columns: int = 1) -> Design:
    """Return two independent draws of text columns with k equal categories."""

    def draw(random: np.random.Generator) -> Draw:
        return Draw(*(_text(random.integers(0, k, (rows, columns))) for rows in (m, n)))

    return draw


def zipf(m: int, n: int, k: int = 1000) -> Design:
    """Return two independent draws of a text column with shares as 1, 1/2, 1/3, 1/4."""
    shares = 1 / np.arange(1, k + 1)
    shares /= shares.sum()

    def draw(random: np.random.Generator) -> Draw:
        return Draw(*(_text(random.choice(k, (rows, 1), p=shares)) for rows in (m, n)))

    return draw


def part_of_it(m: int, n: int, k: int) -> Design:
    """Return a sample that is an even part of the population."""

    def draw(random: np.random.Generator) -> Draw:
        population = _text(random.integers(0, k, (n, 1)))
        return Draw(population.iloc[random.choice(n, m, replace=False)], population)

    return draw


def identifiers(m: int, n: int) -> Design:
    """Return rows with a value that no other row has."""

    def draw(random: np.random.Generator) -> Draw:
        rows = _text(random.permutation(m + n)[:, None])
        return Draw(rows[:m], rows[m:])

    return draw


def strata(m: int, n: int, k: int, ratio: float, share: float) -> Design:
    """Return a sample in which one stratum was drawn ``ratio`` times less often than the others.

    Each category belongs to one stratum; the design weights undo the design.
    """

    def draw(random: np.random.Generator) -> Draw:
        rare = np.arange(k) < share * k
        probability = np.where(rare, 1.0, ratio)
        sample = random.choice(k, (m, 1), p=probability / probability.sum())
        return Draw(
            _text(sample),
            _text(random.integers(0, k, (n, 1))),
            1 / probability[sample[:, 0]],
        )

    return draw


def weighted(m: int, n: int, k: int, spread: float = 1.0) -> Design:
    """Return lognormal design weights on both sides, which have nothing to do with the category."""

    def draw(random: np.random.Generator) -> Draw:
        sample, population = (_text(random.integers(0, k, (rows, 1))) for rows in (m, n))
        weights = (np.exp(spread * random.normal(size=rows)) for rows in (m, n))
        return Draw(sample, population, *weights)

    return draw


def grouped(m: int, k: int, excluded: float = 0.0) -> Design:
    """Return grouped counts as the population; one category may have a share and never answer."""

    def draw(random: np.random.Generator) -> Draw:
        shares = _with_excluded(random.dirichlet(np.ones(k)), excluded)
        counts = np.maximum(1, (1e6 * shares).astype(int))
        sample = random.choice(k, (m, 1), p=shares[:k] / shares[:k].sum())
        return Draw(
            _text(sample),
            _text(np.arange(len(shares))[:, None]),
            population_weight=counts,
        )

    return draw


def mixed(m: int, n: int) -> Design:
    """Return 30 numbers, some missing, and a text column with rare categories."""

    def draw(random: np.random.Generator) -> Draw:
        def rows(number: int) -> Any:
            values = random.normal(size=(number, 30))
            values[random.uniform(size=values.shape) < 0.01] = np.nan
            towns = np.minimum(random.zipf(1.5, number), 10_000).astype(str)
            return pd.DataFrame(values).rename(columns=str).assign(town=towns)

        return Draw(rows(m), rows(n))

    return draw


def excluded(share: float, m: int, n: int = 5000, spread: float = 0.0) -> Design:
    """Return twenty equal categories that answer evenly, and one that never does."""

    def draw(random: np.random.Generator) -> Draw:
        shares = _with_excluded(np.full(20, 1 / 20), share)
        sample = _text(random.integers(0, 20, (m, 1)))
        population = _text(random.choice(21, (n, 1), p=shares))
        weight = np.exp(spread * random.normal(size=m)) if spread else None
        return Draw(sample, population, weight)

    return draw


EVEN: dict[str, Design] = {
    "200 equal categories, m = 100, n = 5,000": equal(100, 5000, 200),
    "200 equal categories, m = 50, n = 5,000": equal(50, 5000, 200),
    "200 equal categories, m = 1,000, n = 5,000": equal(1000, 5000, 200),
    "200 equal categories, m = 1,000, n = 300": equal(1000, 300, 200),
    "10 columns of 50 categories, m = 200, n = 2,000": equal(200, 2000, 50, columns=10),
    "5 categories, m = 50, n = 1,000": equal(50, 1000, 5),
    "1,000 Zipf categories, m = 50, n = 5,000": zipf(50, 5000),
    "1,000 Zipf categories, m = 500, n = 5,000": zipf(500, 5000),
    "1,000 Zipf categories, m = 5,000, n = 5,000": zipf(5000, 5000),
    "200 categories, the sample 10 % of the population": part_of_it(300, 3000, 200),
    "200 categories, the sample 60 % of the population": part_of_it(600, 1000, 200),
    "identifiers, m = 200, n = 1,000": identifiers(200, 1000),
    "identifiers, m = 1,000, n = 200": identifiers(1000, 200),
    "500 categories, 20,000 of 50,000 rows examined": equal(500, 50_000, 500),
    "strata, half drawn 9 times less often, m = 500": strata(500, 5000, 200, 9, 0.5),
    "strata, half drawn 9 times less often, m = 2,000": strata(2000, 5000, 200, 9, 0.5),
    "strata, 20 % drawn 30 times less often, m = 2,000": strata(2000, 5000, 500, 30, 0.2),
    "lognormal weights on both sides, m = 300": weighted(300, 3000, 200),
    "lognormal weights on both sides, m = 2,000, n = 500": weighted(2000, 500, 200),
    "grouped counts, 300 categories, m = 200": grouped(200, 300),
    "30 numbers, missing values, rare towns, m = 50": mixed(50, 1000),
    "30 numbers, missing values, rare towns, m = 1,000": mixed(1000, 2000),
}

EXCLUDED: dict[str, Design] = {
    **{
        f"share {share:.0%}, m = {m:,}": excluded(share, m)
        for share in (0.2, 0.05, 0.01)
        for m in (50, 200, 1000, 5000)
    },
    "share 5 %, lognormal weights, m = 1,000": excluded(0.05, 1000, spread=0.5),
    "share 5 %, lognormal weights, m = 5,000": excluded(0.05, 5000, spread=0.5),
    "share 5 %, grouped counts, m = 1,000": grouped(1000, 20, excluded=0.05),
}


def overlap(draws: int = DRAWS, power_draws: int = POWER_DRAWS, *, write: bool = True) -> None:
    """Run the protocol, print its tables and write the result."""
    result: dict[str, Any] = {"draws": draws, "limit": LIMIT, "even": {}, "excluded": {}}
    print(f"\nUnbiased designs, {draws} draws: how often the verdict would be 'not correctable'")
    for name, design in EVEN.items():
        started = time.perf_counter()
        shares = np.array([_measure(design, seed).uncovered for seed in range(draws)])
        refused, any_share = int((shares > LIMIT).sum()), int((shares > 0).sum())
        result["even"][name] = {"not correctable": refused, "anything uncovered": any_share}
        high = binomtest(refused, draws).proportion_ci().high
        print(
            f"{name:54} {refused:3} (rate at most {high:.3f}); anything: {any_share:3}; "
            f"{time.perf_counter() - started:.0f} s",
            flush=True,
        )
    print(f"\nExcluded categories, {power_draws} draws: how often a rule names it")
    for name, design in EXCLUDED.items():
        found = [_measure(design, seed) for seed in range(power_draws)]
        named = sum(any("town = 20" in rule.text for rule in one.rules) for one in found)
        mean = float(np.mean([one.uncovered for one in found]))
        result["excluded"][name] = {
            "draws": power_draws,
            "found": named,
            "mean uncovered": round(mean, 4),
        }
        print(f"{name:54} {named:3}; uncovered on average {mean:.3f}", flush=True)
    if write:
        RESULT.write_text(json.dumps(result, indent=1) + "\n")


def _measure(design: Design, seed: int) -> Any:
    drawn = design(np.random.default_rng(seed))
    population = Population(drawn.population, weight=drawn.population_weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighter = Unweighted(overlap=1.0).fit(
            drawn.sample, population=population, sample_weight=drawn.sample_weight
        )
    return weighter.overlap_


def _text(codes: Any) -> Any:
    names = ["town", *(f"text{j}" for j in range(1, codes.shape[1]))]
    return pd.DataFrame(codes.astype(str), columns=names)


def _with_excluded(shares: Any, excluded: float) -> Any:
    return np.append(shares * (1 - excluded), excluded) if excluded else shares
