"""Time and memory of every weighter against m, n and d, with fitted exponents.

    python -m benchmarks.growth                 # print the table
    python -m benchmarks.growth --only Tree     # the weighters whose name has this text
    python -m benchmarks.growth --store         # keep it in benchmarks/growth/results.json

Protocol, written before the first run. Samples of m normal rows with d columns, populations of n
with the first column shifted by a half, both in memory; parameters at their defaults unless the
name says otherwise; one thread. From m = 2,000, n = 40,000, d = 8, one of the three is varied over
three sizes, each four times (columns: two times) the one before. Time is processor time, the least
of two fits; memory is the highest the process reached during a fit over what it held before. An
exponent is the slope of the logarithms between the last two sizes: a fixed cost makes it smaller, n
rows at c each make it at most 1.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import unskew

SIZES = {"m": (1_000, 4_000, 16_000), "n": (20_000, 80_000, 320_000), "d": (4, 8, 16)}
BASE = {"m": 2_000, "n": 40_000, "d": 8}
RESULTS = Path(__file__).parent / "results.json"

WEIGHTERS: dict[str, Callable[[], Any]] = {
    "Unweighted": unskew.Unweighted,
    "KnownProbability": lambda: unskew.KnownProbability(lambda rows: np.full(len(rows), 0.5)),
    "FrequencyWeights": unskew.FrequencyWeights,
    "HistogramWeights": lambda: unskew.HistogramWeights(buckets=2),
    "TreeWeights": unskew.TreeWeights,
    "ClusterWeights": unskew.ClusterWeights,
    "CalibrationWeights": unskew.CalibrationWeights,
    "KernelMeanMatching, exact": lambda: unskew.KernelMeanMatching(method="exact"),
    "KernelMeanMatching, low rank": lambda: unskew.KernelMeanMatching(method="low-rank"),
    "DensityRatioWeights": unskew.DensityRatioWeights,
    "ClassifierWeights": unskew.ClassifierWeights,
    "LabelShiftWeights": unskew.LabelShiftWeights,
    "AutoWeights": unskew.AutoWeights,
}
ROUNDED = ("FrequencyWeights",)
"""Weigh by exact values: their columns have three of them."""
CLASSES = ("LabelShiftWeights",)
"""Weigh by the label: theirs is one of two classes."""


def data(name: str, m: int, n: int, d: int) -> tuple[Any, Any, Any]:
    """Return a sample, its labels and a population."""
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(m, d)), random.normal(size=(n, d))
    population[:, 0] += 0.5
    labels = sample[:, 0] + random.normal(size=m)
    if name.startswith(ROUNDED):
        sample, population = (rows[:, :2].round().clip(-1, 1) for rows in (sample, population))
    return sample, (labels > 0).astype(int) if name.startswith(CLASSES) else labels, population


def memory(field: str) -> float:
    """Return what the process holds, or the most it has held, in MB."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(f"{field}:"))
    return float(line.split()[1]) / 1024


def measure(name: str, sizes: dict[str, int]) -> tuple[float, float]:
    """Return the seconds of processor time and the MB of a fit."""
    sample, labels, population = data(name, **sizes)
    seconds, most = math.inf, 0.0
    for _ in range(2):
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
        before, started = memory("VmRSS"), time.process_time()
        WEIGHTERS[name]().fit(sample, labels, population=population)
        seconds = min(seconds, time.process_time() - started)
        most = max(most, memory("VmHWM") - before)
    return seconds, most


def grow(name: str) -> list[dict[str, Any]]:
    """Measure a weighter along each of the three."""
    found = []
    for varied, values in SIZES.items():
        points = [measure(name, {**BASE, varied: value}) for value in values]
        step = math.log(values[-1] / values[-2])
        (seconds, megabytes), (more_seconds, more_megabytes) = points[-2:]
        found.append(
            {
                "weighter": name,
                "varied": varied,
                "sizes": list(values),
                "seconds": [float(f"{one:.3g}") for one, _ in points],
                "megabytes": [round(one) for _, one in points],
                "time_exponent": round(math.log(more_seconds / seconds) / step, 2),
                "memory_exponent": round(
                    math.log(max(more_megabytes, 1) / max(megabytes, 1)) / step, 2
                ),
            }
        )
    return found


def line(one: dict[str, Any]) -> str:
    """Return a line of the table."""
    sizes, seconds, megabytes = (
        ", ".join(f"{value:,}" for value in one[key]) for key in ("sizes", "seconds", "megabytes")
    )
    return (
        f"| {one['weighter']} | {one['varied']} = {sizes} | {seconds} | {one['time_exponent']} "
        f"| {megabytes} | {one['memory_exponent']} |"
    )


def main() -> None:
    """Print the table, and store it if asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--store", action="store_true")
    arguments = parser.parse_args()
    print("| weighter | varied | processor seconds | exponent | MB | exponent |")
    print("|---|---|---|---|---|---|")
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    warnings.simplefilter("ignore")
    for name in WEIGHTERS:
        if arguments.only not in name:
            continue
        with threadpool_limits(1):
            measure(name, {"m": 500, "n": 2_000, "d": 4})  # imports
            found = grow(name)
        print("\n".join(map(line, found)), flush=True)
        if arguments.store:
            stored = [one for one in stored if one["weighter"] != name] + found
            RESULTS.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
