"""What the printed sample sizes say of the inputs that w acts on; no error enters.

    python -m benchmarks.table_1.sizes --data DIR

It writes docs/table-1/sizes.json: for each set and each scaling of the inputs for the selection,
the expected sample sizes of w drawn from [-1, 1]^d, and how likely they make the printed size.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp
from scipy.stats import norm
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from unskew.paper.datasets import KNOWN, DataSet, load
from unskew.paper.methods import Array
from unskew.paper.printed import TABLE_1
from unskew.paper.protocol import random_stream

DIRECTIONS = 600
SCALERS = {"raw": FunctionTransformer, "standardised": StandardScaler, "[0, 1]": MinMaxScaler}
RESULT = Path(__file__).parents[2] / "docs" / "table-1" / "sizes.json"


def size_moments(X: Array, directions: Array, n: int) -> tuple[Array, Array]:
    """Return the mean and the variance of the sample size, for each direction and n rows of X."""
    projected = (X - X.mean(axis=0)) @ directions.T
    p = expit(4 * projected / projected.std(axis=0))
    return n * p.mean(axis=0), n * (p * (1 - p)).mean(axis=0)


def log_density(printed: int, mean: Array, variance: Array) -> float:
    """Return the log density of a size under a random w: a mixture of normal distributions."""
    parts = norm.logpdf(printed, mean, np.sqrt(variance))
    return float(logsumexp(parts) - np.log(len(parts)))


def ordinal(data: DataSet, order: tuple[int, ...]) -> Array:
    """Return abalone's inputs with Sex as a number, its categories 0, 1, 2 in an order."""
    return np.column_stack([data.X[:, :3] @ np.array(order, float), data.X[:, 3:]])


def evidence(data: DataSet) -> dict[str, Any]:
    """Return what each scaling says of a set's printed size."""
    printed = TABLE_1[data.name]
    w = random_stream(0, data.name, "sizes").uniform(-1, 1, (DIRECTIONS, data.X.shape[1]))
    found: dict[str, Any] = {"m": printed.m, "n": printed.n}
    for name, scaler in SCALERS.items():
        found[name] = _summary(printed.m, *size_moments(_scaled(scaler, data.X), w, printed.n))
    return found


def sex_as_a_number(data: DataSet) -> dict[str, Any]:
    """Return the same for abalone with Sex as a number, least and largest over all codings."""
    printed = TABLE_1[data.name]
    w = random_stream(0, data.name, "sizes").uniform(-1, 1, (DIRECTIONS, data.X.shape[1] - 2))
    sizes = np.concatenate(
        [size_moments(ordinal(data, order), w, printed.n)[0] for order in permutations(range(3))]
    )
    return {"m": printed.m, "least": float(sizes.min()), "largest": float(sizes.max())}


def _scaled(scaler: Any, X: Array) -> Array:
    return np.asarray(scaler().fit_transform(X))


def _summary(printed: int, mean: Array, variance: Array) -> dict[str, Any]:
    percentiles = np.percentile(mean, np.arange(1, 100))
    return {
        "log_density": round(log_density(printed, mean, variance), 2),
        "percentiles": [round(float(size), 1) for size in percentiles],  # 1 % to 99 %
    }


def totals(sets: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the log density of all printed sizes together, for each scaling."""
    return {
        name: round(sum(found[name]["log_density"] for found in sets.values()), 1)
        for name in SCALERS
    }


def main() -> None:
    """Write the evidence and print its sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    loaded = {name: load(name, parser.parse_args().data) for name in KNOWN}
    sets = {name: evidence(data) for name, data in loaded.items()}
    result = {
        "directions": DIRECTIONS,
        "log_density": totals(sets),
        "sex_as_a_number": sex_as_a_number(loaded["abalone"]),
        "sets": sets,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name, found in sets.items():
        ranges = {key: found[key]["percentiles"][::98] for key in SCALERS}
        print(f"{name}: printed {found['m']}, 1 % to 99 % {ranges}")
    print(result["log_density"], result["sex_as_a_number"])


if __name__ == "__main__":
    main()
