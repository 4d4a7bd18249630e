"""What a diagnosis costs beside the bare scan of the same columns."""

from __future__ import annotations

import resource
import subprocess
import sys
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


def wide() -> None:
    """Print time and memory of diagnosing many columns: 5,000 rows against 20,000."""
    print(
        "\nMany columns; 5,000 sample rows and 20,000 of the population, in a process of their own"
    )
    print(f"{'columns':40} {'wall, s':>8} {'CPU, s':>8} {'peak memory, MB':>15}")
    for name in WIDE:
        code = f"from benchmarks.diagnosis import cost; cost.diagnose_wide({name!r})"
        subprocess.run([sys.executable, "-c", code], check=True)


WIDE = {"500 columns of numbers": (500, 0), "100 columns of 100 texts each": (100, 100)}


def diagnose_wide(name: str) -> None:
    """Diagnose one of ``WIDE`` and print its line."""
    columns, categories = WIDE[name]
    random = np.random.default_rng(0)
    names = np.array([f"k{i:03}" for i in range(categories)])

    def rows(n: int) -> pa.Table:
        def column() -> Any:
            return names[random.integers(0, categories, n)] if categories else random.normal(size=n)

        return pa.table({f"c{j}": column() for j in range(columns)})

    sample, population = rows(5000), rows(20_000)
    wall, cpu = time.perf_counter(), time.process_time()
    unskew.diagnose(sample, population)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000  # it counts in KiB
    print(f"{name:40} {wall:8.1f} {cpu:8.1f} {peak * 1.024:15,.0f}", flush=True)


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
