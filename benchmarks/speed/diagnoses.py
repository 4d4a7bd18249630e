"""Diagnoses of many columns and of many rows, and the report's page."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale.local import peak_memory
from benchmarks.speed.fits import shifted
from benchmarks.speed.jobs import Job
from unskew import diagnose

ROWS = (1_000_000, 10_000_000)
ROWS_A_FILE = 500_000


def jobs() -> Iterator[Job]:
    """Yield diagnoses of many columns in processes of their own, of many rows, and a page."""
    for name, kinds in WIDE.items():
        yield Job(
            f"diagnose {name}, m = 2,000, n = 20,000", _wide(kinds), 10.0, repeats=3, warm=False
        )
    sample, _, population = shifted(1_000, 10_000, 8)
    found = diagnose(sample, population)
    yield Job("the report's page, d = 8", lambda: found.to_html() and None, 2.0)
    for rows in ROWS:
        yield _many_rows(rows)


WIDE = {"500 columns of numbers": (500, 0), "100 columns of 100 texts": (100, 100)}


def _wide(kinds: tuple[int, int]) -> Callable[[], str]:
    """Return a job that notes the seconds of the diagnosis alone, and its peak memory."""
    code = f"from benchmarks.speed.diagnoses import wide; wide{kinds}"

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    return run


def wide(columns: int, categories: int) -> None:
    """Diagnose many columns, and print how long that took beside imports and data."""
    random = np.random.default_rng(0)
    names = np.array([f"k{i:03}" for i in range(categories)])

    def rows(n: int) -> pa.Table:
        def column() -> Any:
            return names[random.integers(0, categories, n)] if categories else random.normal(size=n)

        return pa.table({f"c{j}": column() for j in range(columns)})

    sample, population = rows(2_000), rows(20_000)
    wall, processor = time.perf_counter(), time.process_time()
    diagnose(sample, population)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"itself {wall:.1f} s, processor {processor:.1f} s; peak {peak_memory():,.0f} MB")


def _many_rows(size: int) -> Job:
    """Return the diagnosis of 100 columns beside DuckDB's scan of the same files."""
    random = np.random.default_rng(0)
    sample = pa.table({f"c{j}": random.normal(loc=0.2, size=5_000) for j in range(100)})
    sums = ", ".join(f"sum(c{j})" for j in range(100))
    return Job(
        f"diagnose 100 columns of {size:,} rows",
        lambda: diagnose(sample, _written(size)) and None,
        3.0,
        peer=(
            "DuckDB's scan",
            lambda: (
                duckdb.sql(f"select {sums} from read_parquet('{_written(size)}')").fetchall()
                and None
            ),
        ),
        plus=4.0,
        repeats=2,
    )


@functools.cache
def _written(size: int) -> str:
    """Write the rows, once, and return where; they are deleted when the process ends."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    random = np.random.default_rng(1)
    for number in range(size // ROWS_A_FILE):
        table = pa.table({f"c{j}": random.normal(size=ROWS_A_FILE) for j in range(100)})
        pq.write_table(table, Path(folder) / f"{number:03}.parquet", compression="zstd")
    return f"{folder}/*.parquet"
