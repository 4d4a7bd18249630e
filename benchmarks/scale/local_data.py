"""Data for the measurements on one machine, written as they are needed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NUMBERS = [f"x{number}" for number in range(8)]
POINTS = ["rooms", "region"]
ROWS_A_FILE = 1_000_000
SAMPLE = 20_000


def number_rows(seed: int, n_rows: int) -> dict[str, np.ndarray]:
    """Return four columns of float64, four of float32, and two of a few whole numbers."""
    random = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {
        name: random.normal(size=n_rows).astype(np.float64 if place < 4 else np.float32)
        for place, name in enumerate(NUMBERS)
    }
    columns["rooms"] = random.integers(1, 9, n_rows)
    columns["region"] = random.integers(0, 40, n_rows)
    return columns


def write_numbers(folder: Path, n_rows: int, *, linked: int = 1) -> int:
    """Write Parquet files of a million rows; with ``linked`` each under so many names.

    The further names are hard links: the rows are read and counted anew under each of them, but the
    disk holds, and the page cache keeps, one copy. Files that are there already are left alone, so
    that a folder can grow. Returns the number of rows under all names.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def write(number: int) -> None:
        rows = min(ROWS_A_FILE, n_rows - number * ROWS_A_FILE)
        path = folder / f"part-{number:05d}-0.parquet"
        if path.exists():
            return
        table = pa.table(number_rows(number, rows))
        pq.write_table(table, path, compression="zstd", row_group_size=250_000)
        for twin in range(1, linked):
            os.link(path, folder / f"part-{number:05d}-{twin}.parquet")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(-(-n_rows // ROWS_A_FILE))))
    return n_rows * linked


def number_sample(columns: list[str]) -> tuple[pa.Table, np.ndarray]:
    """Return a sample whose tree uses every column."""
    rows = number_rows(10**6, SAMPLE)
    x = np.column_stack([rows[name] for name in NUMBERS])
    labels = x[:, 0] * x[:, 1] + np.sin(3 * x[:, 2]) + x[:, 3:].sum(axis=1) / 2
    return pa.table({name: rows[name] for name in columns}), labels
