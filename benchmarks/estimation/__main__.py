"""How often 95 % intervals of ``estimate`` contain the truth; the protocol is in README.md.

python -m benchmarks.estimation [--draws 1000] [--only TEXT] [--seconds 400]
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

from benchmarks.estimation.scenarios import scenarios
from unskew import CalibrationWeights, estimate
from unskew.errors import UnskewError

RESULTS = Path(__file__).with_name("results.json")
CALIBRATION = CalibrationWeights(overlap="ignore")
METHODS: dict[str, dict[str, Any]] = {
    "weights": {"weighter": CALIBRATION},
    "outcome": {"weighter": CALIBRATION, "outcome": "linear"},
}


def one(name: str, number: int) -> dict[str, tuple[float, float, float, float] | None]:
    """Return estimate, standard error, whether it covers, and error of each method in a draw."""
    random = np.random.default_rng([zlib.crc32(name.encode()), number])
    draw = scenarios()[name](random)
    found: dict[str, Any] = {}
    for method, options in METHODS.items():
        try:
            made = estimate(
                draw.X,
                draw.y,
                population=draw.population,
                random_state=number,
                **draw.options,
                **options,
            )
        except UnskewError:
            found[method] = None
            continue
        low, high = made.interval
        error = made.value - draw.truth
        size = made.effective_sample_size
        found[method] = (error, made.standard_error, float(low <= draw.truth <= high), size)
    return found


def add(totals: dict[str, Any], found: dict[str, Any]) -> None:
    """Add a draw to the sums of a scenario."""
    totals["draws"] = totals.get("draws", 0) + 1
    for method, numbers in found.items():
        sums = totals.setdefault(method, {"made": 0, "covered": 0})
        if numbers is None:
            continue
        error, standard_error, covered, size = numbers
        sums["made"] += 1
        sums["covered"] += int(covered)
        for key, value in (
            ("error", error),
            ("squares", error**2),
            ("se", standard_error),
            ("effective", size),
        ):
            sums[key] = sums.get(key, 0.0) + value


def table(results: dict[str, Any]) -> str:
    """Return the results as a table in Markdown."""
    lines = [
        "| draws | method | n | covered | bias | RMSE | mean SE / SD | effective rows |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, totals in results.items():
        for method, sums in totals.items():
            if method == "draws" or not sums["made"]:
                continue
            n = sums["made"]
            bias, square = sums["error"] / n, sums["squares"] / n
            spread = max(square - bias**2, 1e-300) ** 0.5
            lines.append(
                f"| {name} | {method} | {n} | {sums['covered'] / n:.1%} | {bias:+.3f} | "
                f"{square**0.5:.3f} | {sums['se'] / n / spread:.2f} | {sums['effective'] / n:.0f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    path = options.results
    warnings.simplefilter("ignore")
    results = json.loads(path.read_text()) if path.exists() else {}
    end = time.monotonic() + options.seconds
    for name in scenarios():
        if options.only not in name:
            continue
        totals = results.setdefault(name, {"draws": 0})
        while totals["draws"] < options.draws and time.monotonic() < end:
            add(totals, one(name, totals["draws"]))
            if totals["draws"] % 20 == 0 or totals["draws"] == options.draws:
                path.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
