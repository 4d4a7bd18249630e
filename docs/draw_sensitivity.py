"""The survey of docs/sensitivity.md, its figures and its curve: python -m docs.draw_sensitivity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from unskew import estimate
from unskew.results import Estimate, Sensitivity

IMAGE = Path(__file__).with_name("images") / "sensitivity.svg"


def survey() -> tuple[Estimate, float]:
    """Return the estimate of who would buy, and the share that only a simulation knows."""
    random = np.random.default_rng(0)
    n = 50_000
    people = pd.DataFrame(
        {"age": random.normal(45, 15, n), "region": random.choice(["north", "south"], n)}
    )
    likes = random.uniform(size=n) < 0.5  # the product: no column shows it
    odds = np.exp((people["age"] - 55) / 12 + 0.5 * (people["region"] == "north") - 2 + 0.8 * likes)
    buys = random.uniform(size=n) < 1 / (1 + np.exp(1.2 - (people["age"] - 45) / 20 - 1.5 * likes))
    answers = random.uniform(size=n) < odds / (1 + odds)
    found = estimate(people[answers], buys[answers], population=people)
    assert isinstance(found, Estimate)
    return found, float(buys.mean())


def main() -> None:
    """Print what the page shows, and write the curve."""
    found, truth = survey()
    print(found, f"\nTrue: {truth:.1%}")
    for threshold in (None, 0.4):
        print(hidden := found.sensitivity(threshold=threshold))
    assert isinstance(hidden, Sensitivity)
    print([(row.odds, row.sharp, row.plain, row.sharp_interval) for row in hidden.bounds])
    print(hidden.columns)
    IMAGE.write_text(hidden.to_svg() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
