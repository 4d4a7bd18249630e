"""What the search for overlap adds to a fit: at most a quarter of it or 15 ms, the larger one.

The latter is the larger one for fits of less than 60 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.speed.fits import shifted
from benchmarks.speed.jobs import Job
from unskew import CalibrationWeights, ClassifierWeights, KernelMeanMatching, TreeWeights


def jobs() -> Iterator[Job]:
    """Yield fits with the search beside the same without it, and a large search by itself."""
    sample, y, population = shifted(1_000, 10_000, 8)
    short: dict[str, Callable[..., Any]] = {
        "TreeWeights": TreeWeights,
        "CalibrationWeights": CalibrationWeights,
        "KernelMeanMatching, exact": lambda **given: KernelMeanMatching(method="exact", **given),
    }
    long: dict[str, Callable[..., Any]] = {
        "ClassifierWeights, logistic": lambda **given: ClassifierWeights(
            "logistic", penalty=0.01, rate=0.2, **given
        ),
    }
    for makers, allowed in ((short, {"plus": 0.015}), (long, {"at_most": 1.25})):
        for name, make in makers.items():
            size = "m = 1,000, n = 10,000, d = 8"
            yield _pair(f"{name}, {size}", make, sample, y, population, **allowed)
    large = shifted(100_000, 200_000, 30)
    yield _pair(
        "TreeWeights, m = 100,000, n = 200,000, d = 30",
        TreeWeights,
        *large,
        plus=2.0,
        repeats=1,
    )


def _pair(
    name: str,
    make: Callable[..., Any],
    sample: Any,
    y: Any,
    population: Any,
    *,
    plus: float = 0.0,
    at_most: float = 1.0,
    repeats: int = 15,
) -> Job:
    def fit(overlap: str) -> None:
        make(overlap=overlap).fit(sample, y, population=population)

    return Job(
        f"overlap of {name}",
        lambda: fit("warn"),
        at_most,
        peer=("the fit without it", lambda: fit("ignore")),
        plus=plus,
        repeats=repeats,
        warm=repeats > 1,
    )
