"""Draws from Heckman's model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Draw:
    """Rows, the outcome with NaN where it is not seen, and the truth.

    As classes, the outcome is one where it is positive.
    """

    X: Any
    y: Any
    outcome: list[int]
    intercept: float
    coef: Any

    @property
    def classes(self) -> Any:
        """Whether the outcome is positive, as 0 and 1, with NaN where it is not seen."""
        return np.where(np.isnan(self.y), np.nan, self.y > 0)


def random_design(number: int, *, of: int, least: int = 100, sigma: float | None = None) -> Draw:
    """Return one of several designs: ρ from −.95 to .95, up to 10,000 seen rows, any scale.

    There are at least so many rows that are seen; σ is from 0.001 to 1,000 unless it is given.
    """
    random = np.random.default_rng(number)
    rho = np.linspace(-0.95, 0.95, of)[number]
    n_seen = int(10 ** random.uniform(np.log10(least), 4))
    n_outcome, n_exclusions = random.integers(1, 6), random.integers(1, 3)
    share = random.uniform(0.2, 0.8)
    n = int(n_seen / share)
    X = random.normal(size=(n, n_outcome + n_exclusions))
    X[:, 0] = np.exp(X[:, 0] / 2)  # one of them is skew
    gamma = np.append(random.normal(size=n_outcome), random.uniform(0.5, 1, n_exclusions))
    beta = random.normal(size=n_outcome)
    error = random.normal(size=(n, 2))
    error[:, 1] = rho * error[:, 0] + np.sqrt(1 - rho**2) * error[:, 1]
    index = X @ gamma + error[:, 0]
    drawn = 10 ** random.uniform(-3, 3)
    sigma = drawn if sigma is None else sigma
    y = 1 + X[:, :n_outcome] @ beta + sigma * error[:, 1]
    y[index <= np.quantile(index, 1 - share)] = np.nan
    scale = 10 ** random.uniform(-6, 6, X.shape[1])
    offset = scale * random.uniform(-10, 10, X.shape[1])
    return Draw(X * scale + offset, y, list(range(n_outcome)), 1.0, beta)


def standard_design(seed: int, *, exclusion: bool = True, n: int = 1000, rho: float = 0.5) -> Draw:
    """Return a draw with two outcome columns, half of whose rows are seen."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    first, second = random.normal(size=(2, n))
    error = rho * first + np.sqrt(1 - rho**2) * second
    beta = np.array([1.0, -0.5])
    y = 1 + X[:, :2] @ beta + error
    y[X @ np.array([0.5, 0.5, 1.0 if exclusion else 0.0]) + first < 0] = np.nan
    return Draw(X if exclusion else X[:, :2], y, [0, 1], 1.0, beta)
