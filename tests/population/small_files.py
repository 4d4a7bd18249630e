"""Populations in a few small files, on the disk and in a store in memory."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.memory import MemoryFileSystem


def table(start: int, rows: int = 100) -> pa.Table:
    numbers = np.arange(start, start + rows)
    return pa.table({"a": numbers * 0.5, "town": [f"t{number % 7}" for number in numbers]})


def write_files(folder, n_files: int = 3, *, row_group_size: int = 30) -> list[str]:
    folder.mkdir(exist_ok=True, parents=True)
    paths = [folder / f"{number}.parquet" for number in range(n_files)]
    for number, path in enumerate(paths):
        pq.write_table(table(100 * number), path, row_group_size=row_group_size)
    return [str(path) for path in paths]


class CountingStore(MemoryFileSystem):
    """An object store in memory that counts how often each object is opened."""

    protocol = "counting"
    store: dict = {}  # noqa: RUF012  (fsspec's own way)
    pseudo_dirs = [""]  # noqa: RUF012
    opened: Counter = Counter()  # noqa: RUF012

    def _open(self, path, mode="rb", **options):
        if mode == "rb":
            self.opened[path] += 1
        return super()._open(path, mode, **options)


def fill(store, folder: str, n_files: int = 3) -> None:
    for number in range(n_files):
        with store.open(f"{folder}/{number}.parquet", "wb") as file:
            pq.write_table(table(100 * number), file, row_group_size=30)
