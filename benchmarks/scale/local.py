"""Populations of any size on one machine.

    python -m benchmarks.scale local ratios       each weighter against the fastest bare scan
    python -m benchmarks.scale local memory       peak memory from 1 M to 100 M rows
    python -m benchmarks.scale local largest      what 10⁹ rows cost

Data are written to a temporary folder (see --folder) and deleted.
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
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import unskew
from benchmarks.scale.local_data import NUMBERS, POINTS, number_sample, write_numbers

LEAVES = 300
FEATURES = [*NUMBERS, *combinations(NUMBERS, 2), *((name, name) for name in NUMBERS[:4])]
"""The 40 that calibration matches: means, products of pairs, squares."""
WEIGHTERS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "TreeWeights, 300 leaves": (
        lambda: unskew.TreeWeights(min_samples_leaf=4, max_leaf_nodes=LEAVES),
        NUMBERS,
    ),
    "CalibrationWeights, 40 features": (
        lambda: unskew.CalibrationWeights(features=FEATURES),
        NUMBERS,
    ),
    "ClassifierWeights, one small fit": (  # so that it is the pass that is measured
        lambda: unskew.ClassifierWeights(
            "logistic", cv=None, penalty=0.01, rate=0.5, hinges=False, population_rows=100_000
        ),
        NUMBERS,
    ),
    "HistogramWeights, 2 columns": (lambda: unskew.HistogramWeights(), NUMBERS[:2]),
    "FrequencyWeights, 2 columns": (lambda: unskew.FrequencyWeights(), POINTS),
    "ClusterWeights, 141 clusters": (lambda: unskew.ClusterWeights(), NUMBERS),
    "KernelMeanMatching, low rank": (
        lambda: unskew.KernelMeanMatching(method="low-rank"),
        NUMBERS,
    ),
}


SLOW = ("ClusterWeights", "KernelMeanMatching")
"""Measured on a tenth of the rows: their cost a row does not depend on how many there are."""


def heading(text: str) -> None:
    """Print what is measured, and on which machine."""
    print(f"{text}; {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}\n")


def seconds(function: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def fit(name: str, data: Any, **options: Any) -> Any:
    """Fit one of the weighters to a population of numbers."""
    make, columns = WEIGHTERS[name]
    sample, labels = number_sample(columns)
    population = unskew.Population(data, columns=columns, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", unskew.errors.OverlapWarning)
        return make().fit(sample, labels, population=population)


def bare_scans(paths: list[str], columns: list[str]) -> dict[str, Callable[[], object]]:
    """Return scans that read the columns and do as little as possible with them."""
    import duckdb
    import polars

    sums = ", ".join(f"sum({name})" for name in columns)
    frame = polars.scan_parquet(paths).select(polars.col(columns).sum())
    return {
        "DuckDB": lambda: duckdb.sql(f"select {sums} from read_parquet({paths})").fetchall(),
        "Polars": lambda: frame.collect(engine="streaming"),
    }


def read_only(paths: list[str], columns: list[str]) -> None:
    """Let PyArrow, which reads for us, decode the columns on as many threads as there are cores."""

    def read(path: str) -> None:
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            file.read_row_group(group, columns, use_threads=False)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(read, paths))


def ratios(arguments: argparse.Namespace, folder: Path) -> None:
    """Compare each weighter with the fastest bare scan of its columns, alternating."""
    heading(f"{arguments.rows:,} rows of Parquet, warm; median of {arguments.repeats} runs")
    write_numbers(folder, arguments.rows)
    files = sorted(map(str, folder.glob("*.parquet")))
    print(
        "| weighter | columns | rows | fastest bare scan, s | PyArrow's reading, s | whole fit, s "
        "| ratio (range) | ratio of processor time | M rows/s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (_, columns) in WEIGHTERS.items():
        if not name.startswith(arguments.only):
            continue
        paths = files[: max(1, len(files) // 10)] if name.startswith(SLOW) else files
        n_rows = arguments.rows * len(paths) // len(files)
        scans = bare_scans(paths, columns)
        for scan in scans.values():
            scan()
        fit(name, paths[:1])  # imports
        bare: dict[str, list[float]] = {engine: [] for engine in scans}
        bare_work: dict[str, list[float]] = {engine: [] for engine in scans}
        ours, work, read = [], [], []
        for _ in range(arguments.repeats):
            for engine, scan in scans.items():
                begun = time.process_time()
                bare[engine].append(seconds(scan))
                bare_work[engine].append(time.process_time() - begun)
            read.append(seconds(lambda paths=paths, columns=columns: read_only(paths, columns)))
            begun = time.process_time()
            ours.append(seconds(lambda name=name, paths=paths: fit(name, paths)))
            work.append(time.process_time() - begun)
        fastest = min(bare, key=lambda engine: statistics.median(bare[engine]))
        each = [mine / scan for mine, scan in zip(ours, bare[fastest], strict=True)]
        both = [mine / scan for mine, scan in zip(work, bare_work[fastest], strict=True)]
        middle = statistics.median(ours)
        scanned = statistics.median(bare[fastest])
        print(
            f"| {name} | {len(columns)} | {n_rows:,} | {scanned:.2f} ({fastest}) "
            f"| {statistics.median(read):.2f} | {middle:.2f} "
            f"| {statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f}) "
            f"| {statistics.median(both):.2f} | {n_rows / middle / 1e6:.1f} |",
            flush=True,
        )


def memory(arguments: argparse.Namespace, folder: Path) -> None:
    """Print the peak memory of processes that fit tree weights, over a hundredfold range."""
    heading("peak memory of the whole process, TreeWeights, 300 leaves, 8 columns")
    print("| rows | s | M rows/s | peak MB |")
    print("|---|---|---|---|")
    for millions in (1, 3, 10, 30, 100):
        n_rows = millions * 1_000_000
        if n_rows > arguments.rows:
            break
        write_numbers(folder, n_rows)  # the folder grows
        took, peak = one_pass_elsewhere(folder)
        print(f"| {n_rows:,} | {took:.1f} | {n_rows / took / 1e6:.1f} | {peak:.0f} |", flush=True)


def largest(arguments: argparse.Namespace, folder: Path) -> None:
    """Run 10⁹ rows, a tenth of them distinct and the rest hard links to the same files."""
    n_rows = arguments.rows
    distinct = n_rows // arguments.links
    heading(f"{n_rows:,} rows: {distinct:,} distinct, each file under {arguments.links} names")
    write_numbers(folder, distinct, linked=arguments.links)
    size = sum(path.stat().st_size for path in folder.glob("*-0.parquet"))
    took, peak = one_pass_elsewhere(folder)
    print(
        f"{n_rows:,} rows in {took:.0f} s, {n_rows / took / 1e6:.1f} M rows/s, {peak:.0f} MB at "
        f"most; 10⁹ rows at this pace: {took * 1e9 / n_rows:.0f} s, reading "
        f"{size * arguments.links / took / 1e6:.0f} MB/s of compressed Parquet."
    )


def one_pass_elsewhere(folder: Path) -> tuple[float, float]:
    """Return the seconds and the peak memory in MB of a process that fits tree weights."""
    command = [sys.executable, "-m", "benchmarks.scale", "local", "one-pass", "--data", str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    took, peak = output.split()
    return float(took), float(peak)


def one_pass(arguments: argparse.Namespace, folder: Path) -> None:  # noqa: ARG001
    """Fit tree weights; print seconds and this process's peak memory."""
    started = time.perf_counter()
    fit(next(iter(WEIGHTERS)), arguments.data / "*.parquet")
    took = time.perf_counter() - started
    print(took, peak_memory())


def peak_memory() -> float:
    """Return the most memory that this process has held, in MB."""
    # Not getrusage's ru_maxrss: that starts from the parent's, across fork and exec.
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return float(line.split()[1]) / 1024


COMMANDS: dict[str, tuple[Callable[[argparse.Namespace, Path], None], int]] = {
    "ratios": (ratios, 20_000_000),
    "memory": (memory, 100_000_000),
    "largest": (largest, 1_000_000_000),
    "one-pass": (one_pass, 0),
}


def main(arguments: list[str]) -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale local",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=[name for name in COMMANDS if name != "one-pass"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--links", type=int, default=10, help="names of each file, for largest")
    parser.add_argument("--only", default="", help="the beginning of a weighter's name, for ratios")
    parser.add_argument("--folder", type=Path, help="where to write the data")
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    if arguments[:1] == ["one-pass"]:
        parsed = parser.parse_args(["memory", *arguments[1:]])
        one_pass(parsed, parsed.data)
        return
    parsed = parser.parse_args(arguments)
    run, rows = COMMANDS[parsed.command]
    parsed.rows = parsed.rows or rows
    with tempfile.TemporaryDirectory(dir=parsed.folder) as folder:
        run(parsed, Path(folder))
