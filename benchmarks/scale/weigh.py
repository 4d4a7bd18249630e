"""The command line with a large sample: seconds and peak memory of its processes.

    python -m benchmarks.scale weigh [--rows 30000000] [--sample-rows 2140000] [--folder DIRECTORY]

Each command has a process of its own, whose peak memory is the system's count. The benchmark fails
if the default takes 3 GB, or 120 seconds, or more.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNK = 500_000
MOST_MB, MOST_SECONDS = 3000, 120
TOWNS, KINDS = [f"town {number:02d}" for number in range(40)], list("abcdef")


def draw(random: np.random.Generator) -> pa.Table:
    """Return rows of eight columns: five numbers, an age, a town and a kind."""
    numbers = random.normal(size=(CHUNK, 5)).round(3)
    columns = {f"x{place}": numbers[:, place] for place in range(5)}
    town = random.choice(40, CHUNK, p=np.arange(1, 41) / 820)
    kind = random.integers(0, 6, CHUNK)
    columns |= {"age": random.integers(18, 90, CHUNK)}
    columns |= {"town": np.array(TOWNS)[town], "kind": np.array(KINDS)[kind]}
    return pa.table(columns)


def selected(random: np.random.Generator) -> pa.Table:
    """Return those rows that get into the sample."""
    rows = draw(random)
    x0, x1, x2, age = (rows[name].to_numpy() for name in ("x0", "x1", "x2", "age"))
    score = 0.02 * (age - 50) + 0.8 * x0 - 0.5 * x1 + 0.4 * x0 * x2
    return rows.filter(pa.array(random.uniform(size=CHUNK) < 1 / (1 + np.exp(-score))))


def write(parts: Iterator[pa.Table], n_rows: int, path: Path) -> Path:
    """Write so many rows, of which one part is in memory at a time."""
    first = next(parts)
    with pq.ParquetWriter(path, first.schema) as writer:
        part, left = first, n_rows
        while left:
            writer.write_table(part[:left])
            left -= min(left, len(part))
            part = next(parts) if left else part
    return path


def run(name: str, *arguments: object) -> tuple[float, float]:
    """Print what a process of the command line costs, and return its seconds and peak in MB."""
    command = [sys.executable, "-m", "unskew", *map(str, arguments)]
    started = time.perf_counter()
    process = os.posix_spawn(sys.executable, command, os.environ)
    _, status, used = os.wait4(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0, name
    took, peak = time.perf_counter() - started, used.ru_maxrss / 1e3
    work = used.ru_utime + used.ru_stime
    print(f"| {name} | {took:.0f} | {work:.0f} | {peak:,.0f} |", flush=True)
    return took, peak


def main(arguments: list[str]) -> None:
    """Weigh by default and by raking, and apply."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale weigh", description=__doc__)
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--sample-rows", type=int, default=2_140_000)
    parser.add_argument("--folder", type=Path, help="where to write the data")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        place, random = Path(folder), np.random.default_rng(0)
        population = write(iter(lambda: draw(random), None), given.rows, place / "U.parquet")
        sample = write(iter(lambda: selected(random), None), given.sample_rows, place / "S.parquet")
        saved, output = place / "saved.skops", place / "weights.parquet"
        print(f"{given.sample_rows:,} against {given.rows:,} rows, 8 columns\n")
        print("| | seconds | processor seconds | peak MB |\n|---|---|---|---|", flush=True)
        took, peak = run("`unskew weigh`", "weigh", sample, population, "-o", output)
        rake = ["weigh", sample, population, "--method", "rake", "-o", output, "--save", saved]
        run("`unskew weigh --method rake`", *rake)
        run("`unskew apply`", "apply", saved, sample, "-o", output)
        assert peak < MOST_MB, peak
        assert took < MOST_SECONDS, took
