"""Exact kernel mean matching beside scikit-learn's two bare kernel matrices; n = 2m."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.speed.jobs import Job
from unskew import KernelMeanMatching


def shifted(m: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a standardised sample and a population shifted by one in the first column."""
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(m, d)), random.normal(size=(2 * m, d))
    population[:, 0] += 1
    mean, spread = sample.mean(axis=0), sample.std(axis=0)
    return (sample - mean) / spread, (population - mean) / spread


def jobs() -> Iterator[Job]:
    """Yield whole fits with default parameters, overlap included."""
    for d in (8, 32):
        for m in (2_000, 5_000, 10_000):
            sample, population = shifted(m, d)
            yield Job(
                f"exact kernel mean matching, m = {m:,}, d = {d}",
                lambda s=sample, u=population: KernelMeanMatching(scaling=None).fit(
                    s, population=u
                ),
                1.0,
                (
                    "scikit-learn's K(S, S) and K(S, U)",
                    lambda s=sample, u=population, g=1 / d: (
                        rbf_kernel(s, gamma=g),
                        rbf_kernel(s, u, gamma=g),
                    ),
                ),
                repeats=3,
            )
