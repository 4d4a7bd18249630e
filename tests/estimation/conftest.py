"""A biased sample of a known population."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def data():
    """Return a sample, its labels, the population, and the population's labels."""
    random = np.random.default_rng(3)
    n = 3000
    population = pd.DataFrame(
        {
            "a": random.normal(size=n),
            "b": random.normal(size=n),
            "g": random.choice(["x", "y", "z"], size=n),
        }
    )
    labels = population.a + population.b**2 + (population.g == "x") + random.normal(size=n)
    kept = random.uniform(size=n) < 0.3 / (1 + np.exp(-population.a))
    return population[kept].reset_index(drop=True), labels[kept].to_numpy(), population, labels
