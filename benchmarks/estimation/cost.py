"""What intervals cost, beside the weights alone.

python -m benchmarks.estimation.cost bootstrap [--replicates 1000]
python -m benchmarks.estimation.cost rows [--rows 20000000]

*bootstrap*: replicates of calibration to the means of 40 columns, of 10,000 sample rows, with
100,000 population rows. *rows*: `estimate` with calibration of 100,000 sample rows to a population
that is read once, in chunks of a million rows with eight numbers and two categories, against the
fit of the same weights. Seconds on the clock, and of processors, which others disturb less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from unskew import CalibrationWeights, Population, estimate

CHUNK = 1_000_000


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds on the clock, and those of all processors."""
    clock, processors = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - clock, time.process_time() - processors


def bootstrap(replicates: int) -> None:
    """Print what replicates take."""
    random = np.random.default_rng(0)
    population = random.normal(size=(100_000, 40))
    X = random.normal(0.1, 1.0, size=(10_000, 40))
    y = X[:, 0] + random.normal(size=len(X))
    weighter = CalibrationWeights(features="means", overlap="ignore")
    common: dict[str, Any] = {"population": population, "weighter": weighter}
    for name, options in (
        ("linearised", {}),
        ("bootstrap", {"variance": "bootstrap", "replicates": replicates}),
    ):
        clock, processors = timed(lambda options=options: estimate(X, y, **common, **options))
        print(f"{name}: {clock:.1f} s, {processors:.1f} s of processors")


def table(n_rows: int, shift: float, seed: int) -> pd.DataFrame:
    """Return eight numbers and two categories."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"x{place}": random.normal(shift, 1.0, n_rows) for place in range(8)}
    columns["region"] = pd.Categorical.from_codes(
        random.integers(0, 10, n_rows), [f"r{place}" for place in range(10)]
    )
    columns["sex"] = pd.Categorical.from_codes(random.integers(0, 2, n_rows), ["f", "m"])
    return pd.DataFrame(columns)


def rows(n_rows: int) -> None:
    """Print what an estimate takes, and the weights alone."""
    chunk = table(min(CHUNK, n_rows), 0.0, 0)
    X = table(100_000, 0.1, 1)
    y = X["x0"].to_numpy() + np.random.default_rng(2).normal(size=len(X))

    def chunks() -> Iterator[pd.DataFrame]:
        for begin in range(0, n_rows, len(chunk)):
            yield chunk.iloc[: n_rows - begin]

    def weighter() -> CalibrationWeights:
        return CalibrationWeights(features="means", overlap="ignore")

    def alone() -> None:
        weighter().fit(X, population=Population(chunks()))

    def whole() -> None:
        estimate(X, y, population=Population(chunks()), weighter=weighter())

    alone()  # libraries are loaded
    weights, estimated = timed(alone), timed(whole)
    print(f"weights alone: {weights[0]:.1f} s, {weights[1]:.1f} s of processors")
    print(f"estimate: {estimated[0]:.1f} s, {estimated[1]:.1f} s of processors")
    ratios = [own / other for own, other in zip(estimated, weights, strict=True)]
    print(f"ratio: {ratios[0]:.2f}; of processors {ratios[1]:.2f}")


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["bootstrap", "rows"])
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=20_000_000)
    options = parser.parse_args()
    if options.what == "bootstrap":
        bootstrap(options.replicates)
    else:
        rows(options.rows)


if __name__ == "__main__":
    main()
