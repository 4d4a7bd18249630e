"""Passes over Parquet beside the fastest bare scan, and over rows beside a matrix product."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.scale.local import WEIGHTERS, bare_scans, fit, seconds
from benchmarks.scale.local_data import NUMBERS, write_numbers
from benchmarks.speed.jobs import Job

ROWS = 20_000_000
PRODUCT_ROWS = 2_000_000
LIMITS = {"TreeWeights": 2.0, "Calibration": 3.0, "Histogram": 3.0, "Frequency": 3.0}
PRODUCTS = {"ClusterWeights": 141, "KernelMeanMatching": 512}
"""Columns of the product: clusters, and landmarks."""


def jobs() -> Iterator[Job]:
    """Yield whole fits; the data are written to a temporary folder and deleted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_numbers(folder, ROWS)
        paths = sorted(map(str, folder.glob("*.parquet")))
        for weighter, (_, columns) in WEIGHTERS.items():
            limit = next((most for key, most in LIMITS.items() if weighter.startswith(key)), None)
            if limit is None:
                continue
            scans = bare_scans(paths, columns)
            took = {engine: min(seconds(scan) for _ in range(2)) for engine, scan in scans.items()}
            fastest = min(took, key=lambda engine: took[engine])
            yield Job(
                f"{weighter}, {ROWS:,} rows of Parquet",
                lambda w=weighter: fit(w, paths),
                limit,
                (f"bare scan by {fastest}", scans[fastest]),
                repeats=3,
            )
    rows = np.random.default_rng(0).normal(size=(PRODUCT_ROWS, len(NUMBERS))).astype(np.float32)
    for key, size in PRODUCTS.items():
        weighter = next(one for one in WEIGHTERS if one.startswith(key))
        yield Job(
            f"{weighter}, {PRODUCT_ROWS:,} rows in memory",
            lambda w=weighter: fit(w, rows),
            5.0,
            (f"product with {size} columns", lambda k=size: rows @ rows[:k].T),
            repeats=3,
        )
