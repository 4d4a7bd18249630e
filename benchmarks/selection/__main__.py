"""``python -m benchmarks.selection toy|cost``.

Protocol
--------
toy
    Sample N(0, 1), population N(1, 1), 600 and 400 rows; and N(0, 1) to N(0.5, 1) in five
    dimensions. 20 seeds. The correlation of the weights with the true ratio on 4,000 new rows, and
    their mean over that of the true ratio: medians and worst seed. Nothing is left out.
cost
    m = 10,000 and n = 100,000 rows in 20 columns, the first four shifted; m = 1,000 and n = 10,000
    in 8. Wall and processor time of ``fit`` with the search for overlap, the median of three, and
    the largest memory of a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings

import numpy as np

from unskew import AutoWeights, ClassifierWeights

WEIGHTERS = {
    "logistic": lambda: ClassifierWeights("logistic"),
    "boosted": lambda: ClassifierWeights(),
    "auto": lambda: AutoWeights(),
}


def toy() -> None:
    """Print how well the ratio of two normal distributions is found."""
    print("weights    columns  correlation (worst)  mean weight over true")
    for name, make in WEIGHTERS.items():
        for width, shift in ((1, 1.0), (5, 0.5)):
            found = []
            for seed in range(20):
                random = np.random.default_rng(seed)
                sample = random.normal(0, 1, (600, width))
                population = random.normal(shift, 1, (400, width))
                new = random.normal(0, 1, (4000, width))
                truth = np.exp(shift * new.sum(axis=1) - width * shift**2 / 2)
                weighter = make().set_params(overlap="ignore")
                weights = weighter.fit(sample, population=population).weigh(new)
                found.append((np.corrcoef(weights, truth)[0, 1], weights.mean() / truth.mean()))
            correlation, mean = np.median(found, axis=0)
            worst = min(one for one, _ in found)
            print(f"{name:10} {width:7}  {correlation:.3f} ({worst:.3f})        {mean:.3f}")


def cost() -> None:
    """Print the cost of each, in a process of its own."""
    print("weights    m        n         columns  wall s  processor s  memory MB")
    for m, n, width in ((1_000, 10_000, 8), (10_000, 100_000, 20)):
        for name in WEIGHTERS:
            command = [sys.executable, "-m", "benchmarks.selection", "one", name, m, n, width]
            done = subprocess.run(
                [str(part) for part in command], capture_output=True, text=True, check=True
            )
            print(f"{name:10} {m:<8,} {n:<9,} {width:<8} {done.stdout.strip()}", flush=True)


def one(name: str, m: int, n: int, width: int) -> None:
    """Print the cost of one fit."""
    import resource

    random = np.random.default_rng(0)
    shift = np.where(np.arange(width) < 4, 0.3, 0.0)
    sample, population = random.normal(0, 1, (m, width)), random.normal(shift, 1, (n, width))
    times = []
    for _ in range(3):
        began = time.perf_counter(), time.process_time()
        WEIGHTERS[name]().fit(sample, population=population)
        times.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    wall, processor = np.median(times, axis=0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{wall:6.2f}  {processor:11.2f}  {memory:9.0f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    match sys.argv[1:]:
        case ["toy"]:
            toy()
        case ["cost"]:
            cost()
        case ["one", name, m, n, width]:
            one(name, int(m), int(n), int(width))
        case _:
            sys.exit(__doc__)
