from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

DATASETS = Path(__file__).resolve().parents[2] / "shared" / "datasets"


class Shift(NamedTuple):
    """A population, a sample selected from it, and the truth about the selection."""

    population: np.ndarray
    sample: np.ndarray
    labels: np.ndarray
    probabilities: np.ndarray


@pytest.fixture(scope="session")
def shift() -> Shift:
    random = np.random.default_rng(0)
    population = random.normal(size=(3000, 3))
    probabilities = 1 / (1 + np.exp(-1.5 * population[:, 0]))
    selected = random.uniform(size=3000) < probabilities
    sample = population[selected]
    labels = sample[:, 0] ** 2 + sample[:, 1] + 0.1 * random.normal(size=len(sample))
    return Shift(population, sample, labels, probabilities[selected])


@pytest.fixture(scope="session")
def mixed() -> pd.DataFrame:
    """A table of every kind of column, with gaps."""
    random = np.random.default_rng(1)
    n_rows = 70_000
    moments = pd.Timestamp("2021-03-01") + pd.to_timedelta(random.integers(0, 9000, n_rows), "h")
    town = random.choice(np.array(["Ulm", "Bonn", "Kiel", None], dtype=object), n_rows)
    return pd.DataFrame(
        {
            "income": np.where(
                random.uniform(size=n_rows) < 0.1, np.nan, random.normal(size=n_rows)
            ),
            "rooms": random.integers(1, 6, n_rows),
            "town": town,
            "grade": pd.Categorical(random.choice(["a", "b", "c"], n_rows)),
            "owner": random.uniform(size=n_rows) < 0.5,
            "moved": moments,
        }
    )
