"""One process: print the processor time of each case with the installed unskew, as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from unskew import TreeWeights, diagnose

SAMPLE_ROWS = 2_000
POPULATION_ROWS = 20_000
REPEATS = {"fit": 15, "diagnose": 3}
TOWNS = ("Aachen", "Bonn", "Kiel", "Trier", "Ulm")


def cases() -> dict[str, Callable[[], object]]:
    """Return a fit and a diagnosis of numeric and of mixed data."""
    random = np.random.default_rng(0)

    def numeric(n_rows: int, shift: float) -> np.ndarray:
        return random.normal(shift, size=(n_rows, 8))

    def mixed(n_rows: int, shift: float) -> pa.Table:
        numbers = {f"number{j}": random.normal(shift, size=n_rows) for j in range(4)}
        return pa.table({**numbers, **{f"town{j}": random.choice(TOWNS, n_rows) for j in range(4)}})

    found: dict[str, Callable[[], object]] = {}
    labels = random.normal(size=SAMPLE_ROWS)
    for name, draw in (("numeric", numeric), ("mixed", mixed)):
        sample, population = draw(SAMPLE_ROWS, 0.3), draw(POPULATION_ROWS, 0.0)
        first = sample[:, 0] if isinstance(sample, np.ndarray) else sample["number0"].to_numpy()
        y = first + labels
        found[f"fit, {name}"] = lambda S=sample, U=population, y=y: TreeWeights(
            overlap="ignore"
        ).fit(S, y, population=U)
        found[f"diagnose, {name}"] = lambda S=sample, U=population: diagnose(S, U)
    return found


def main() -> None:
    """Print the seconds of every repetition; a first one, which imports, does not count."""
    times: dict[str, list[float]] = {}
    for name, run in cases().items():
        run()
        times[name] = []
        for _ in range(REPEATS[name.split(",")[0]]):
            started = time.process_time()
            run()
            times[name].append(time.process_time() - started)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
