"""The fixed cost of a fit and of a diagnosis: 1,000 rows against 10,000, eight columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.speed.jobs import Job
from unskew import (
    CalibrationWeights,
    ClassifierWeights,
    KernelMeanMatching,
    TreeWeights,
    diagnose,
)

SIZE = "m = 1,000, n = 10,000, d = 8"


def shifted(m: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a sample, its labels, and a population shifted by a half in the first column."""
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(m, d)), random.normal(size=(n, d))
    population[:, 0] += 0.5
    return sample, sample[:, 0] + random.normal(size=m), population


def jobs() -> Iterator[Job]:
    """Yield a fit of each kind, overlap included, and a diagnosis."""
    sample, y, population = shifted(1_000, 10_000, 8)
    weighters: dict[str, tuple[Any, float]] = {
        "TreeWeights": (TreeWeights(), 0.020),
        "KernelMeanMatching, exact": (KernelMeanMatching(method="exact"), 0.050),
        "CalibrationWeights": (CalibrationWeights(), 0.025),
        "ClassifierWeights, logistic, penalty and rate given": (
            ClassifierWeights("logistic", penalty=0.01, rate=0.2),
            0.150,
        ),
        "ClassifierWeights, logistic, penalty and rate searched": (
            ClassifierWeights("logistic"),
            0.6,
        ),
    }
    for name, (weighter, limit) in weighters.items():
        yield Job(
            f"fit of {name}, {SIZE}",
            lambda w=weighter: w.fit(sample, y, population=population),
            limit,
            repeats=15,
        )
    yield Job(f"diagnose, {SIZE}", lambda: diagnose(sample, population), 0.4)
