"""Tree weights from a Parquet folder against DuckDB's bare scan of it.

    python -m benchmarks.population [--rows 20000000] [--repeats 5]

Writes its own data, alternates the two in one process, prints the ratio of wall times, and measures
the peak memory of our pass in processes of their own, at a quarter of the rows and at all of them.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unskew

COLUMNS = [f"x{number}" for number in range(8)]
ROWS_A_FILE = 1_000_000
LEAVES = 300
SAMPLE = 20_000


def write_population(folder: Path, n_rows: int) -> None:
    """Write files of a million rows: four columns of float64, four of float32."""

    def write(number: int) -> None:
        random = np.random.default_rng(number)
        rows = min(ROWS_A_FILE, n_rows - number * ROWS_A_FILE)
        columns = {
            name: random.normal(size=rows).astype(np.float64 if place < 4 else np.float32)
            for place, name in enumerate(COLUMNS)
        }
        path = folder / f"part-{number:04d}.parquet"
        pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=250_000)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(-(-n_rows // ROWS_A_FILE))))


def sample_and_labels() -> tuple[pa.Table, np.ndarray]:
    """Return a sample whose tree uses every column."""
    random = np.random.default_rng(12345)
    values = random.normal(size=(SAMPLE, len(COLUMNS)))
    labels = values[:, 0] * values[:, 1] + np.sin(3 * values[:, 2]) + values[:, 3:].sum(axis=1) / 2
    return pa.table(dict(zip(COLUMNS, values.T, strict=True))), labels


def tree_weights(folder: Path) -> unskew.TreeWeights:
    """Fit the whole of TreeWeights: the tree, the pass and the weights."""
    sample, labels = sample_and_labels()
    weighter = unskew.TreeWeights(min_samples_leaf=4, max_leaf_nodes=LEAVES)
    return weighter.fit(sample, labels, population=folder / "*.parquet")


def bare_scan(folder: Path) -> None:
    """Read the same columns with DuckDB and do as little as possible with them."""
    import duckdb

    sums = ", ".join(f"sum({name})" for name in COLUMNS)
    duckdb.sql(f"select {sums} from '{folder}/*.parquet'").fetchall()


def seconds(function: Callable[[Path], object], folder: Path) -> float:
    """Return the wall time of one call."""
    started = time.perf_counter()
    function(folder)
    return time.perf_counter() - started


def peak_memory(folder: Path) -> float:
    """Return the peak memory in MB of a process that does our pass and nothing else."""
    command = [sys.executable, "-m", "benchmarks.population", "--only-pass", str(folder)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def own_peak_memory() -> float:
    """Return this process's peak memory in MB.

    Not ``getrusage``'s ``ru_maxrss``: that starts from the parent's, across fork and exec.
    """
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return float(line.split()[1]) / 1024


def compare(folder: Path, n_rows: int, repeats: int) -> None:
    """Print the table for one size."""
    tree_weights(folder), bare_scan(folder)  # fill the page cache
    ours, scan = [], []
    for _ in range(repeats):
        scan.append(seconds(bare_scan, folder))
        ours.append(seconds(tree_weights, folder))
    ratios = [a / b for a, b in zip(ours, scan, strict=True)]
    weighter = tree_weights(folder)
    assert weighter.population_counts_.sum() == n_rows
    print(
        f"| {n_rows:,} | {statistics.median(scan):.2f} | {statistics.median(ours):.2f} "
        f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
        f"| {n_rows / statistics.median(ours) / 1e6:.1f} | {peak_memory(folder):.0f} |",
        flush=True,
    )


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only-pass", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only_pass:
        tree_weights(arguments.only_pass)
        print(own_peak_memory())
        return
    cores = len(os.sched_getaffinity(0))
    print(
        f"{LEAVES} leaves, {len(COLUMNS)} columns, {cores} cores, "
        f"Python {platform.python_version()}"
    )
    print("| rows | bare scan, s | TreeWeights, s | ratio (range) | M rows/s | peak MB |")
    print("|---|---|---|---|---|---|")
    for n_rows in (arguments.rows // 4, arguments.rows):
        with tempfile.TemporaryDirectory() as folder:
            write_population(Path(folder), n_rows)
            compare(Path(folder), n_rows, arguments.repeats)


if __name__ == "__main__":
    main()
