"""Compare the weights of two commits, for every weighter on ten data sets.

    python tools/compare_weights.py OLD [NEW] [--only TEXT]

OLD and NEW are revisions; NEW is the working tree if it is left out. Each runs in a process of its
own on the same made-up data. For every weighter the table shows in how many data sets the weights,
and the weights of new rows, are equal to the last bit, and the largest difference as a share of the
total weight. Combinations that fail are compared by the kind of error.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def data_sets() -> dict[str, dict[str, Any]]:
    """Return ten samples with labels, populations and design weights."""
    import pandas as pd

    random = np.random.default_rng(20261116)
    n, m = 1500, 240

    def normal(size: int, d: int, shift: float = 0.0) -> Any:
        return random.normal(shift, 1.0, size=(size, d))

    def mixed(size: int, shift: float) -> Any:
        days = random.integers(0, 900, size) + int(50 * shift)
        frame = pd.DataFrame(
            {
                "age": random.normal(40 + 5 * shift, 12, size),
                "town": random.choice(list("abcdefgh"), size),
                "owner": random.uniform(size=size) < 0.4 + 0.2 * shift,
                "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D"),
            }
        )
        frame.loc[random.uniform(size=size) < 0.1, "age"] = np.nan
        frame.loc[random.uniform(size=size) < 0.05, "town"] = None
        return frame

    def labels(values: Any) -> Any:
        return np.nan_to_num(np.asarray(values, dtype=float)) + random.normal(size=len(values))

    sets: dict[str, dict[str, Any]] = {}
    for name, d, shift in (("normal", 4, 0.5), ("wide", 20, 0.2), ("no shift", 3, 0.0)):
        sample = normal(m, d, shift)
        sets[name] = {"X": sample, "y": labels(sample[:, 0]), "population": normal(n, d)}
    whole = random.integers(0, 6, size=(n, 3)).astype(float)
    kept = whole[random.uniform(size=n) < 0.05 + 0.05 * whole[:, 0]]
    sets["discrete"] = {"X": kept, "y": labels(kept[:, 1]), "population": whole}
    sample = mixed(m, 1.0)
    sets["mixed"] = {"X": sample, "y": labels(sample["age"]), "population": mixed(n, 0.0)}
    sample = mixed(m, 0.5)
    sets["design weights"] = {
        "X": sample,
        "y": labels(sample["age"]),
        "population": mixed(n, 0.0).assign(w=random.uniform(0.5, 2.0, n)),
        "sample_weight": random.uniform(0.5, 2.0, m),
        "weight": "w",
    }
    sample = np.exp(normal(m, 3, 0.4))
    sets["skewed"] = {"X": sample, "y": labels(sample[:, 2]), "population": np.exp(normal(n, 3))}
    sample = np.column_stack([normal(m, 2, 0.5), np.ones(m)])
    people: Any = np.column_stack([normal(n, 2), np.ones(n)])
    sets["constant column"] = {"X": sample, "y": labels(sample[:, 0]), "population": people}
    towns = np.array([f"town {k}" for k in range(300)])
    sample = pd.DataFrame({"town": random.choice(towns[:200], m), "x": normal(m, 1)[:, 0]})
    people = pd.DataFrame({"town": random.choice(towns, n), "x": normal(n, 1)[:, 0]})
    sets["many categories"] = {"X": sample, "y": labels(sample["x"]), "population": people}
    sample = normal(m // 4, 3, 0.5).repeat(4, axis=0).astype(np.float32)
    people = normal(n, 3).astype(np.float32)
    sets["repeated rows"] = {"X": sample, "y": labels(sample[:, 0]), "population": people}
    return sets


def weighters() -> dict[str, Callable[[], Any]]:
    """Return how to make each weighter, with the names of old versions where they differ."""
    import unskew

    return {
        "Unweighted": unskew.Unweighted,
        "KnownProbability": lambda: unskew.KnownProbability(_known),
        "TreeWeights": unskew.TreeWeights,
        "TreeWeights, population": lambda: unskew.TreeWeights(total="population"),
        "TreeWeights, honest": lambda: unskew.TreeWeights(honest=True, empty="drop"),
        "TreeWeights, honest, merge": lambda: unskew.TreeWeights(honest=True),
        "TreeWeights, bound": lambda: unskew.TreeWeights(min_samples_leaf="bound"),
        "ClusterWeights": unskew.ClusterWeights,
        "ClusterWeights, range": lambda: unskew.ClusterWeights(scaling="range"),
        "HistogramWeights": lambda: unskew.HistogramWeights(buckets=3),
        "FrequencyWeights": lambda: unskew.FrequencyWeights(empty="merge"),
        "KernelMeanMatching": unskew.KernelMeanMatching,
        "KernelMeanMatching, ridge": lambda: unskew.KernelMeanMatching(ridge=0.01),
        "KernelMeanMatching, low rank": lambda: unskew.KernelMeanMatching(method="low-rank"),
        "density ratio": lambda: unskew.DensityRatioWeights(bandwidth="paper"),
        "density ratio, cv": unskew.DensityRatioWeights,
        "CalibrationWeights": unskew.CalibrationWeights,
        "ClassifierWeights, logistic": lambda: unskew.ClassifierWeights("logistic"),
        "ClassifierWeights, boosted": unskew.ClassifierWeights,
        "AutoWeights": unskew.AutoWeights,
    }


def _known(rows: Any) -> Any:
    import pandas as pd

    first = pd.DataFrame(rows).iloc[:, 0]
    return 1 / (1 + np.exp(-pd.to_numeric(first, errors="coerce").fillna(0).clip(-3, 3)))


def compute(path: Path, only: str) -> None:
    """Fit every weighter whose name has a text to every data set and write the results."""
    import unskew

    found: dict[tuple[str, str], Any] = {}
    for data_name, given in data_sets().items():
        options = {"weight": given["weight"]} if "weight" in given else {}
        for name, make in weighters().items():
            if only.lower() not in name.lower():
                continue
            population = unskew.Population(given["population"], **options)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    fitted = make().fit(
                        given["X"],
                        given["y"],
                        population=population,
                        sample_weight=given.get("sample_weight"),
                    )
                    new = fitted.weigh(given["X"]) if hasattr(fitted, "weigh") else np.empty(0)
                    found[data_name, name] = fitted.weights_, new
                except Exception as error:
                    found[data_name, name] = type(error).__name__
    path.write_bytes(pickle.dumps(found))


def results_of(revision: str | None, folder: Path, only: str) -> dict[tuple[str, str], Any]:
    """Return the results of a revision, or of the working tree."""
    source = ROOT
    if revision is not None:
        source = folder / revision.replace("/", "-")
        source.mkdir()
        archive = subprocess.run(
            ["git", "archive", revision, "src"], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x"], cwd=source, check=True, input=archive.stdout)
    path = folder / "results.pickle"
    environment = {**os.environ, "PYTHONPATH": str(source / "src")}
    command = [sys.executable, __file__, "--compute", str(path), "--only", only]
    subprocess.run(command, check=True, env=environment)
    found: dict[tuple[str, str], Any] = pickle.loads(path.read_bytes())
    return found


def difference(old: Any, new: Any) -> float:
    """Return the largest difference as a share of the total; infinite between unlike results."""
    if isinstance(old, str) or isinstance(new, str):
        return 0.0 if isinstance(old, str) and isinstance(new, str) else float("inf")
    shares = [float(np.abs(a - b).sum() / a.sum()) for a, b in zip(old, new, strict=True) if len(a)]
    return max(shares)


def main() -> int:
    """Print the comparison; return 1 if a result is of another kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", nargs="?")
    parser.add_argument("new", nargs="?")
    parser.add_argument("--only", default="", help="Weighters whose name has this text.")
    parser.add_argument("--compute", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compute:
        compute(arguments.compute, arguments.only)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        old, new = (
            results_of(revision, Path(folder), arguments.only)
            for revision in (arguments.old, arguments.new)
        )
    worst = 0.0
    for name in dict.fromkeys(name for _, name in old):
        pairs = {data: (old[data, name], new[data, name]) for data, one in old if one == name}
        differences = {data: difference(*pair) for data, pair in pairs.items()}
        where = max(differences, key=lambda data: differences[data])
        worst = max(worst, differences[where])
        equal = sum(share == 0 for share in differences.values())
        print(
            f"{name:30} equal in {equal:2} of {len(pairs)}; largest difference "
            f"{differences[where]:.2g}" + (f" ({where})" if differences[where] else "")
        )
    return int(np.isinf(worst))


if __name__ == "__main__":
    sys.exit(main())
