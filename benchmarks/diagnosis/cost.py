"""What a diagnosis costs beside the bare scan of the same columns."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unskew

COLUMNS = 100
ROWS_A_FILE = 500_000


def main(sizes: tuple[int, ...] = (1_000_000, 4_000_000, 10_000_000), repeats: int = 3) -> None:
    """Print the time of both, alternating, and the part that does not grow with the rows."""
    random = np.random.default_rng(0)
    sample = {f"c{j}": random.normal(loc=0.2, size=5000) for j in range(COLUMNS)}
    print(f"\n{COLUMNS} columns of float64; sample of 5,000 rows; best of {repeats}, alternating")
    print(
        f"{'rows':>12} {'bare scan, s':>12} {'diagnosis, s':>12} {'the pass, s':>12} "
        f"{'pass / scan':>11}"
    )
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            _write(Path(folder), size, random)
            scans, wholes, passes = [], [], []
            for _ in range(repeats):
                scans.append(_scan(folder))
                whole, within = _diagnosis(sample, folder)
                wholes.append(whole)
                passes.append(within)
            print(
                f"{size:12,} {min(scans):12.2f} {min(wholes):12.2f} {min(passes):12.2f} "
                f"{min(passes) / min(scans):11.2f}",
                flush=True,
            )


def _write(folder: Path, size: int, random: np.random.Generator) -> None:
    for number, start in enumerate(range(0, size, ROWS_A_FILE)):
        rows = min(ROWS_A_FILE, size - start)
        table = pa.table({f"c{j}": random.normal(size=rows) for j in range(COLUMNS)})
        pq.write_table(table, folder / f"{number:03}.parquet", compression="zstd")


def _scan(folder: str) -> float:
    started = time.perf_counter()
    sums = ", ".join(f"sum(c{j})" for j in range(COLUMNS))
    duckdb.sql(f"select {sums} from read_parquet('{folder}/*.parquet')").fetchall()
    return time.perf_counter() - started


def _diagnosis(sample: dict[str, Any], folder: str) -> tuple[float, float]:
    """Return the seconds of the whole diagnosis and those of its pass over the population."""
    moments: list[float] = []
    population = unskew.Population(
        f"{folder}/*.parquet", progress=lambda _: moments.append(time.perf_counter())
    )
    table = pa.table(sample)
    started = time.perf_counter()
    unskew.diagnose(table, population)
    return time.perf_counter() - started, moments[-1] - started
