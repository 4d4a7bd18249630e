"""Selection by columns and a hidden type; the protocol is in README.md."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from unskew import CalibrationWeights, Estimate, estimate


class Draw(NamedTuple):
    """A sample with labels, a population without; the population's mean of y is zero."""

    X: Any
    y: Any
    population: Any
    nested: bool


def drawn(random: np.random.Generator, odds: float, rho: float, m: int, *, nested: bool) -> Draw:
    """Draw a sample of about m rows whose odds are off by the factor ``odds``.

    Parameters
    ----------
    random : Generator
    odds : float
    rho : float
        The correlation of the hidden type with the error of y.
    m : int
    nested : bool
        Whether the sample is the selected part of the population.
    """
    n = int(8 * m / 3) if nested else 12 * m
    x = random.normal(size=(n, 2))
    error = random.normal(size=n)
    y = x[:, 0] + 0.5 * x[:, 1] + error
    lean = rho * error + np.sqrt(1 - rho**2) * random.normal(size=n)
    chance = np.exp(0.5 * x[:, 0])
    if nested:
        chance = chance / 2 / (1 + chance / 2)
        of = chance / (1 - chance)
        rare, often = of / odds / (1 + of / odds), of * odds / (1 + of * odds)
    else:
        chance = np.minimum(chance * m / n / np.exp(0.125), 1 / odds)
        rare, often = chance / odds, chance * odds
    share = (often - chance) / (often - rare)  # of the type that is selected less often
    selected = random.uniform(size=n) < np.where(norm.cdf(lean) < share, rare, often)
    population = x if nested else random.normal(size=(max(4000, m), 2))
    return Draw(x[selected], y[selected], population, nested)


def estimated(draw: Draw) -> Estimate:
    """Return the estimate of a draw."""
    distance = "propensity" if draw.nested else "raking"
    weighter = CalibrationWeights(distance=distance, features="means", overlap="ignore")  # type: ignore[arg-type]
    found = estimate(draw.X, draw.y, population=draw.population, weighter=weighter)
    assert isinstance(found, Estimate)
    return found
