"""What is drawn: populations, selections, and the truth that intervals should contain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Draw:
    """A sample with labels, a population without, and the number to find."""

    X: Any
    y: Any
    population: Any
    truth: float
    options: dict[str, Any] = field(default_factory=dict)


def _outcome(x: Any, random: np.random.Generator) -> Any:
    return 1 + x[:, 0] + 0.5 * x[:, 1] + 0.5 * x[:, 0] ** 2 + random.normal(size=len(x))


TRUTH = 1.5  # the mean of _outcome over normal x


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(1 - x[:, 0] - 0.5 * x[:, 1]))


def _threshold(x: Any) -> Any:
    return np.where(x[:, 0] > 0, 0.6, 0.15)


def _strong(x: Any) -> Any:
    return 1 / (1 + np.exp(2.5 - 2 * x[:, 0]))


def drawn(
    random: np.random.Generator,
    selection: Callable[[Any], Any],
    *,
    nested: bool,
    n_population: int,
    m: int,
    finite: bool = False,
    weighted: bool = False,
) -> Draw:
    """Draw a population and a sample of about m rows: from its rows, or from others.

    With ``weighted``, rows with a positive third column are drawn half as often, which their design
    weights tell.
    """
    population = random.normal(size=(n_population, 3))
    pool = population if nested else random.normal(size=(20 * m, 3))
    labels = _outcome(pool, random)
    chance = selection(pool)
    thinned = np.where(pool[:, 2] > 0, 0.5, 1.0) if weighted else np.ones(len(pool))
    chance = chance * thinned * min(1.0, m / (chance * thinned).sum())
    kept = random.uniform(size=len(pool)) < chance
    options: dict[str, Any] = {"finite_population": True} if finite else {}
    if weighted:
        options["sample_weight"] = 1 / thinned[kept]
    truth = float(labels.mean()) if finite else TRUTH
    return Draw(pool[kept], labels[kept], population, truth, options)


def kang_schafer(random: np.random.Generator, *, right: bool) -> Draw:
    """Draw from Kang and Schafer (2007): the mean of y is 210; half of 1,000 rows respond."""
    z = random.normal(size=(1000, 4))
    y = 210 + z @ [27.4, 13.7, 13.7, 13.7] + random.normal(size=1000)
    chance = 1 / (1 + np.exp(-(z @ [-1.0, 0.5, -0.25, -0.1])))
    kept = random.uniform(size=1000) < chance
    seen = np.column_stack(
        [
            np.exp(z[:, 0] / 2),
            z[:, 1] / (1 + np.exp(z[:, 0])) + 10,
            (z[:, 0] * z[:, 2] / 25 + 0.6) ** 3,
            (z[:, 1] + z[:, 3] + 20) ** 2,
        ]
    )
    x = z if right else seen
    return Draw(x[kept], y[kept], x, 210.0)


def scenarios() -> dict[str, Callable[[np.random.Generator], Draw]]:
    """Return what is drawn, by name."""
    found: dict[str, Callable[[np.random.Generator], Draw]] = {}
    for name, selection in (("logistic", _logistic), ("threshold", _threshold)):
        for nested in (True, False):
            for n_population in (500, 50_000):
                where = "inside" if nested else "disjoint"
                m = 150 if nested and n_population == 500 else 400

                def draw(
                    random: np.random.Generator,
                    selection: Any = selection,
                    nested: bool = nested,
                    n: int = n_population,
                    m: int = m,
                ) -> Draw:
                    return drawn(random, selection, nested=nested, n_population=n, m=m)

                found[f"{name}, {where}, U of {n_population}"] = draw
    found["logistic, inside, U of 500, finite"] = lambda random: drawn(
        random, _logistic, nested=True, n_population=500, m=150, finite=True
    )
    found["logistic, disjoint, design weights"] = lambda random: drawn(
        random, _logistic, nested=False, n_population=2000, m=400, weighted=True
    )
    found["few effective rows"] = lambda random: drawn(
        random, _strong, nested=False, n_population=2000, m=100
    )
    found["Kang-Schafer, right columns"] = lambda random: kang_schafer(random, right=True)
    found["Kang-Schafer, wrong columns"] = lambda random: kang_schafer(random, right=False)
    return found
