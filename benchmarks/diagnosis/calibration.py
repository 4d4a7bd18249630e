"""How often the verdict errs, and how right the uncovered share is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binomtest

from unskew import TreeWeights, diagnose

DRAWS = 500
ROWS, POPULATION = 400, 1600


def even_normal(random: np.random.Generator) -> tuple[Any, Any]:
    """Return two draws from one normal distribution in four dimensions."""
    return random.normal(size=(ROWS, 4)), random.normal(size=(POPULATION, 4))


def even_skewed(random: np.random.Generator) -> tuple[Any, Any]:
    """Return two draws of skewed, rounded and correlated columns."""

    def draw(n_rows: int) -> Any:
        base = random.normal(size=(n_rows, 4))
        return np.column_stack(
            [np.exp(base[:, 0]), np.round(base[:, 1]), base[:, 2] + base[:, 0], base[:, 3] > 1]
        ).astype(float)

    return draw(ROWS), draw(POPULATION)


def selected(slope: float) -> Callable[[np.random.Generator], tuple[Any, Any]]:
    """Return the paper's selection: logistic along a random direction; its slope is 4."""

    def draw(random: np.random.Generator) -> tuple[Any, Any]:
        rows = random.normal(size=(8 * ROWS, 4))
        direction = random.normal(size=4)
        along = rows @ direction / np.linalg.norm(direction)
        chosen = random.uniform(size=len(rows)) < 1 / (1 + np.exp(-slope * along))
        return rows[chosen][:ROWS], random.normal(size=(POPULATION, 4))

    return draw


HOLES: dict[str, Callable[[Any], Any]] = {
    "x0 > 1": lambda x: x[:, 0] > 1,
    "x0 > 0.8 and x1 > 0": lambda x: (x[:, 0] > 0.8) & (x[:, 1] > 0),
    "|x2| < 0.3": lambda x: np.abs(x[:, 2]) < 0.3,
    "x0 > 1.5 or x1 < -1.5": lambda x: (x[:, 0] > 1.5) | (x[:, 1] < -1.5),
    "none": lambda x: np.zeros(len(x), dtype=bool),
}


def rates(draws: int = DRAWS) -> None:
    """Print how often bias is found."""
    print(f"\n{draws} draws of {ROWS} sample and {POPULATION} population rows, 4 columns")
    print(f"{'case':36} {'bias found':>10}  95 % interval    MMD alone  classifier alone (at 5 %)")
    cases: dict[str, tuple[Any, int]] = {
        "one distribution, normal": (even_normal, draws),
        "one distribution, skewed": (even_skewed, draws),
        "logistic selection, slope 0.5": (selected(0.5), max(1, draws // 5)),
        "logistic selection, slope 1": (selected(1.0), max(1, draws // 5)),
        "the paper's selection, slope 4": (selected(4.0), max(1, draws // 5)),
    }
    for name, (draw, times) in cases.items():
        found = mmd = classifier = 0
        for seed in range(times):
            sample, population = draw(np.random.default_rng(seed))
            result = diagnose(sample, population, random_state=seed)
            found += result.verdict.status != "no bias found"
            mmd += result.bias.mmd.before.p_value < 0.05
            classifier += result.bias.classifier.before.p_value < 0.05
        interval = binomtest(found, times).proportion_ci()
        print(
            f"{name:36} {found / times:10.3f}  {interval.low:.3f} to {interval.high:.3f}"
            f"   {mmd / times:9.3f}  {classifier / times:9.3f}",
            flush=True,
        )


def holes(draws: int = 20) -> None:
    """Print how far the uncovered share is from the truth, which is constructed."""
    print(f"\nUncovered share, {draws} draws, 10,000 population rows, 5 columns")
    print(f"{'hole':24} {'sample rows':>11} {'true share':>10} {'mean error':>10} {'worst':>7}")
    for name, hole in HOLES.items():
        for rows in (1000, 5000):
            errors, truths = [], []
            for seed in range(draws):
                random = np.random.default_rng(seed)
                population = random.normal(size=(10_000, 5))
                sample = random.normal(size=(3 * rows, 5))
                sample = sample[~hole(sample)][:rows]
                weighter = TreeWeights(min_samples_leaf=20, overlap=1.0)
                overlap = weighter.fit(sample, sample[:, 0], population=population).overlap_
                truths.append(hole(population).mean())
                errors.append(overlap.uncovered - truths[-1])
            worst = max(errors, key=abs)
            print(
                f"{name:24} {rows:11,} {np.mean(truths):10.3f} {np.mean(errors):+10.4f} "
                f"{worst:+7.4f}",
                flush=True,
            )


def disjoint(draws: int = 100) -> None:
    """Print how often samples that do not overlap the population are refused."""
    random = np.random.default_rng(0)

    def shells(n_rows: int, radius: float, d: int) -> Any:
        rows = random.normal(size=(n_rows, d))
        return radius * rows / np.linalg.norm(rows, axis=1)[:, None]

    makers: dict[str, Callable[[int], tuple[Any, Any]]] = {
        "two sides of a line": lambda m: (
            -np.abs(random.normal(size=(m, 2))),
            np.abs(random.normal(size=(2000, 2))),
        ),
        "two sides of a diagonal": lambda m: _by_diagonal(random, m),
        "shells within shells, d = 8": lambda m: (shells(m, 1.0, 8), shells(2000, 2.5, 8)),
        "far apart, d = 30": lambda m: (
            random.normal(size=(m, 30)),
            random.normal(size=(2000, 30)) + 3,
        ),
    }
    print(f"\nDisjoint supports, {draws} draws: how often the verdict is 'not correctable'")
    for name, make in makers.items():
        for rows in (50, 200, 1000):
            times = max(1, draws // (1 + rows // 100))
            refused = 0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for _ in range(times):
                    sample, population = make(rows)
                    refused += diagnose(sample, population).verdict.status == "not correctable"
            print(f"{name:30} {rows:6,} rows: {refused} of {times}", flush=True)


def _by_diagonal(random: np.random.Generator, m: int) -> tuple[Any, Any]:
    rows = random.normal(size=(3 * m + 6000, 3))
    below = rows[:, 0] + rows[:, 1] < 0
    return rows[below][:m], rows[~below][:2000]
