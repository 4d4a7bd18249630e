"""The answers that are compared; run by ``benchmarks.answers`` with the package of one revision."""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import unskew
from unskew import (
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    LabelShiftWeights,
    TreeWeights,
    UnskewError,
    diagnose,
)

M, N = 600, 6_000


def tables() -> Iterator[tuple[str, Any, np.ndarray, Any]]:
    """Yield a name, a sample, its labels and its population."""
    random = np.random.default_rng(7)
    numbers = random.normal(size=(N, 6))
    chosen = random.choice(N, M, replace=False, p=_chances(numbers[:, 0]))
    yield "numbers", numbers[chosen], numbers[chosen, 0] + random.normal(size=M), numbers
    frame = _frame(random)
    chosen = random.choice(N, M, replace=False, p=_chances(frame["age"].fillna(50) / 20))
    sample = frame.iloc[chosen].reset_index(drop=True)
    labels = (sample["age"].fillna(40) / 20 + random.normal(size=M)).to_numpy()
    yield "mixed columns", sample, labels, frame
    with tempfile.TemporaryDirectory() as folder:
        for part, some in enumerate(np.array_split(np.arange(N), 3)):
            table = pa.Table.from_pandas(frame.iloc[some], preserve_index=False)
            pq.write_table(table, Path(folder) / f"{part}.parquet", row_group_size=700)
        yield "mixed columns from Parquet", sample, labels, folder
    whole = random.integers(0, 5, size=(N, 3)).astype(float)  # every row recurs
    chosen = random.choice(N, M, replace=False, p=_chances(whole[:, 0] - 2))
    yield "repeated rows", whole[chosen], whole[chosen, 1], whole


def _frame(random: np.random.Generator) -> pd.DataFrame:
    """Return texts, missing values, whole numbers, a constant and a skewed column."""
    age = random.normal(50, 15, N).round(1)
    age[random.random(N) < 0.05] = np.nan
    regions = random.choice(["north", "south", "east", "west"], N, p=[0.5, 0.3, 0.15, 0.05])
    return pd.DataFrame(
        {
            "age": age,
            "region": np.where(random.random(N) < 0.03, None, regions),
            "count": random.integers(0, 9, N),
            "constant": 1.5,
            "income": np.exp(random.normal(10, 1, N)),
            "member": random.random(N) < 0.4,
        }
    )


def _chances(drive: Any) -> np.ndarray:
    odds = 1 / (1 + np.exp(-np.asarray(drive, dtype=float)))
    return odds / odds.sum()


def weighters() -> dict[str, Any]:
    """Return every weighter, with overlap reported and not refused."""
    kernel = {"random_state": 0}
    return {
        "FrequencyWeights": FrequencyWeights(overlap="warn"),
        "HistogramWeights": HistogramWeights(overlap="warn"),
        "TreeWeights": TreeWeights(overlap="warn"),
        "TreeWeights, thorough overlap": TreeWeights(overlap=1.0),
        "ClusterWeights": ClusterWeights(overlap="warn"),
        "CalibrationWeights": CalibrationWeights(overlap="warn"),
        "KernelMeanMatching, exact": KernelMeanMatching(method="exact", **kernel),
        "KernelMeanMatching, ridge": KernelMeanMatching(method="exact", ridge=0.01, **kernel),
        "KernelMeanMatching, low rank": KernelMeanMatching(method="low-rank", **kernel),
        "DensityRatioWeights, squared": DensityRatioWeights("squared"),
        "DensityRatioWeights, kl": DensityRatioWeights("kl"),
        "ClassifierWeights, boosted": ClassifierWeights(),
        "ClassifierWeights, logistic": ClassifierWeights("logistic"),
        "LabelShiftWeights": LabelShiftWeights(),
        "AutoWeights": unskew.AutoWeights(),
    }


def fitted(weighter: Any, sample: Any, labels: np.ndarray, population: Any) -> dict[str, Any]:
    """Return weights and overlap, or the kind of error."""
    if isinstance(weighter, LabelShiftWeights):
        labels = labels > np.median(labels)
    try:
        weighter.fit(sample, labels, population=population)
    except UnskewError as error:
        return {"refused": type(error).__name__}
    overlap = weighter.overlap_
    shares = {} if overlap is None else {"overlap": overlap.uncovered}
    return {"weights": weighter.weights_, "uncovered": weighter.uncovered_, **shares}


def diagnosed(sample: Any, population: Any) -> dict[str, Any]:
    """Return the numbers of a diagnosis."""
    found = diagnose(sample, population)
    tests = {test.name: test.before.statistic for test in found.bias.tests}
    columns = np.array([feature.before.distance or 0.0 for feature in found.bias.features])
    return {**tests, "columns": columns, "overlap": found.overlap.uncovered}


def main() -> None:
    """Write the answers to the file that is named."""
    found: dict[str, dict[str, Any]] = {}
    for table, sample, labels, population in tables():
        for name, weighter in weighters().items():
            found[f"{name}: {table}"] = fitted(weighter, sample, labels, population)
        found[f"diagnose: {table}"] = diagnosed(sample, population)
    Path(sys.argv[1]).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main()
