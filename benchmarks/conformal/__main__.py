"""Measure conformal intervals: ``OMP_NUM_THREADS=1 python -m benchmarks.conformal PART [DATA]``.

Parts: airfoil (1,000 draws of the simulation of Tibshirani and others 2019; DATA is a folder with
``airfoil.parquet``), nine (draws on the paper's sets; DATA is their folder), and cost (10⁶ rows
with 10⁵ calibration rows). Results are stored beside this file; see each part for its protocol.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

from benchmarks.conformal import airfoil, nine
from unskew import ConformalRegressor, HistogramWeights, Population

RESULT = Path(__file__).with_name("result.json")
NINE = Path(__file__).with_name("nine.json")
AIRFOIL_DRAWS = 1000
NINE_DRAWS = 15


def cost() -> dict[str, Any]:
    """Measure the processor time of intervals of 10⁶ rows, and what of it is not ours."""
    random = np.random.default_rng(0)
    X = random.normal(size=(200_000, 3))
    y = X[:, 0] + random.normal(size=len(X))
    new = random.normal(size=(1_000_000, 3))
    weighter = HistogramWeights(overlap="ignore")
    model = ConformalRegressor(LinearRegression(), weighter).fit(X, y, population=Population(new))
    seconds = {}
    for name, call in (
        ("predict_interval", model.predict_interval),
        ("predict", model.predict),
        ("weigh", model.weighters_[0].weigh),
    ):
        call(new[:1000])
        took = []
        for _ in range(3):
            begin = process_time()
            call(new)
            took.append(process_time() - begin)
        seconds[name] = round(min(took), 3)
    beside = seconds["predict_interval"] - seconds["predict"] - seconds["weigh"]
    return {
        "rows": len(new),
        "calibration_rows": len(model.calibration_rows_),
        "seconds": seconds,
        "beside_model_and_weights": round(beside, 3),
    }


def main() -> None:
    """Run one part and store its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["airfoil", "nine", "cost"])
    parser.add_argument("data", nargs="?", type=Path)
    given = parser.parse_args()
    if given.part == "airfoil":
        found = airfoil.simulate(given.data, AIRFOIL_DRAWS)
    elif given.part == "nine":
        nine.simulate(given.data, NINE, NINE_DRAWS)
        found = nine.means(NINE)
    else:
        found = cost()
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    result[given.part] = found
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result[given.part], indent=1))


if __name__ == "__main__":
    main()
