"""Exact kernel mean matching beside scikit-learn's two bare kernel matrices; n = 2m."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.kmm.__main__ import ours, shifted
from benchmarks.speed.jobs import Job


def jobs() -> Iterator[Job]:
    """Yield whole fits with default parameters, overlap included."""
    for d in (8, 32):
        for m in (2_000, 5_000, 10_000):
            sample, population = shifted(m, d)
            yield Job(
                f"exact kernel mean matching, m = {m:,}, d = {d}",
                lambda s=sample, u=population: ours(s, u),
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
