"""Whether sensitivity bounds hold, are reached, and what they cost; the protocol is in README.md.

python -m benchmarks.sensitivity {draws,adversary,cost} [--draws 500] [--seconds 400]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sensitivity.scenarios import drawn, estimated
from unskew import CalibrationWeights, Estimate, estimate

RESULTS = Path(__file__).with_name("results.json")
KINDS = {"ratio": False, "nested": True}
ROWS = 1500


def one(name: str, number: int) -> dict[str, bool]:
    """Return which bounds of a draw contain the truth: a kind of draws, "moderate" or "worst"."""
    kind, strength = name.split(", ")
    random = np.random.default_rng([zlib.crc32(name.encode()), number])
    odds, rho = random.uniform(1.2, 3.0), random.uniform(-0.5, 0.5)
    if strength == "worst":
        rho = float(np.sign(rho))
    draw = drawn(random, odds, rho, ROWS, nested=KINDS[kind])
    found = estimated(draw).sensitivity(odds=odds, nested=draw.nested, benchmark=False)
    (row,) = found.bounds
    names = ("plain", "sharp", "plain_interval", "sharp_interval")
    return {one: getattr(row, one)[0] <= 0.0 <= getattr(row, one)[1] for one in names}


def draws(results: dict[str, Any], options: argparse.Namespace) -> None:
    """Count how often bounds contain the truth."""
    end = time.monotonic() + options.seconds
    for name in (f"{kind}, {how}" for kind in KINDS for how in ("moderate", "worst")):
        sums = results["draws"].setdefault(name, {"draws": 0})
        wanted = options.draws if name.endswith("moderate") else options.draws // 2
        while sums["draws"] < wanted and time.monotonic() < end:
            for key, holds in one(name, sums["draws"]).items():
                sums[key] = sums.get(key, 0) + int(holds)
            sums["draws"] += 1
            if sums["draws"] % 50 == 0:
                options.results.write_text(json.dumps(results, indent=1) + "\n")


def adversary(results: dict[str, Any], options: argparse.Namespace) -> None:  # noqa: ARG001
    """Compare the ends of the bounds with the truth of the worst draws."""
    for kind, nested in KINDS.items():
        for odds in (1.5, 2.0, 3.0):
            for rho in (-1.0, 1.0):
                random = np.random.default_rng([7, int(10 * odds), int(rho) + 1])
                draw = drawn(random, odds, rho, 50_000, nested=nested)
                found = estimated(draw).sensitivity(odds=odds, nested=nested, benchmark=False)
                sharp, plain = found.bounds[0].sharp, found.bounds[0].plain
                assert sharp is not None
                side = 0 if found.value > 0 else 1
                results["adversary"][f"{kind}, odds {odds}, rho {rho:+.0f}"] = {
                    "estimate": found.value,
                    "sharp": sharp[side],
                    "plain": plain[side],
                    "missed": sharp[side] / (sharp[side] - found.value),
                }


def cost(results: dict[str, Any], options: argparse.Namespace) -> None:  # noqa: ARG001
    """Time 50 values of the odds on 100,000 rows."""
    random = np.random.default_rng(0)
    x = random.normal(size=(100_000, 5))
    y = x @ [1.0, 0.5, 0.0, -0.5, 0.2] + np.exp(0.3 * x[:, 1]) * random.normal(size=len(x))
    population = random.normal([0.3, 0.0, 0.2, 0.0, -0.1], size=(100_000, 5))
    odds = np.geomspace(1.02, 4.0, 50)
    for what, labels in (("numbers", y), ("shares", (y > 1).astype(float))):
        weighter = CalibrationWeights(features="means", overlap="ignore")
        found = estimate(x, labels, population=population, weighter=weighter)
        assert isinstance(found, Estimate)
        for sharp, benchmark in ((False, False), (True, False), (True, True)):
            wall, processor = time.perf_counter(), time.process_time()
            found.sensitivity(odds=odds, sharp=sharp, benchmark=benchmark)
            name = f"{what}, {'sharp' if sharp else 'plain'}{' with columns' * benchmark}"
            results["cost"][name] = {
                "seconds": time.perf_counter() - wall,
                "processor seconds": time.process_time() - processor,
            }


def main() -> None:
    """Run a part, and print its results."""
    parser = argparse.ArgumentParser()
    parts = {"draws": draws, "adversary": adversary, "cost": cost}
    parser.add_argument("part", choices=list(parts))
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    results = {part: results.get(part, {}) for part in parts}
    parts[options.part](results, options)
    options.results.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results[options.part], indent=1))


if __name__ == "__main__":
    main()
