"""Bounds contain the truth where hidden selection is as strong as they allow, and are reached.

A person has two normal columns x and y = x₁ + x₂/2 + e. Selection depends on x and on a hidden
type: the odds of one type are Λ times those of people with the same x on average, of the other 1/Λ
times. The type is decided by a mixture of e, with correlation ρ, and noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import norm

from unskew import CalibrationWeights, estimate
from unskew.results import Estimate

KINDS = {"ratio": False, "nested": True}


class Drawn(NamedTuple):
    """A sample with labels, a population without; the population's mean of y is zero."""

    X: Any
    y: Any
    population: Any
    nested: bool


def drawn(random: np.random.Generator, odds: float, rho: float, m: int, *, nested: bool) -> Drawn:
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
    return Drawn(x[selected], y[selected], population, nested)


def estimated(draw: Drawn) -> Estimate:
    """Return the estimate of a draw."""
    distance = "propensity" if draw.nested else "raking"
    weighter = CalibrationWeights(distance=distance, features="means", overlap="ignore")
    found = estimate(draw.X, draw.y, population=draw.population, weighter=weighter)
    assert isinstance(found, Estimate)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_contain_the_truth(kind):
    for number in range(10):
        random = np.random.default_rng([number, 5])
        odds, rho = random.uniform(1.2, 3.0), random.uniform(-0.5, 0.5)
        draw = drawn(random, odds, rho, 1500, nested=KINDS[kind])
        found = estimated(draw).sensitivity(odds=odds, nested=draw.nested, benchmark=False)
        (row,) = found.bounds
        assert row.plain[0] <= row.sharp[0] <= 0 <= row.sharp[1] <= row.plain[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_hidden_selection_reaches_the_sharp_bound(kind):
    draw = drawn(np.random.default_rng(3), 3.0, 1.0, 20_000, nested=KINDS[kind])
    found = estimated(draw).sensitivity(odds=3.0, nested=draw.nested, benchmark=False)
    low = found.bounds[0].sharp[0]
    assert abs(low) < 0.05 * (found.value - low)
