"""Samples and populations that differ by a shift."""

from __future__ import annotations

import numpy as np


def shifted(d=3, m=300, n=500, seed=0, by=1.0):
    """Return normal rows, and normal rows whose first column is shifted."""
    random = np.random.default_rng(seed)
    sample, population = random.normal(size=(m, d)), random.normal(size=(n, d))
    population[:, 0] += by
    return sample, population
