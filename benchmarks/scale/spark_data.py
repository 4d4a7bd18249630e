"""Data for the measurements on Spark, written as they are needed, and the session."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = [f"x{number}" for number in range(8)]
ROWS_A_FILE = 500_000
SAMPLE = 20_000


def write_population(folder: Path, n_rows: int, *, row_group: int = 250_000) -> None:
    """Write four columns of float64 and four of float32."""
    for number in range(-(-n_rows // ROWS_A_FILE)):
        rows = min(ROWS_A_FILE, n_rows - number * ROWS_A_FILE)
        draw = np.random.default_rng(number)
        columns = {
            name: draw.normal(size=rows).astype(np.float64 if place < 4 else np.float32)
            for place, name in enumerate(COLUMNS)
        }
        path = folder / f"part-{number:04d}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=row_group)


def write_mixed(folder: Path, n_rows: int) -> None:
    """Write files of very different sizes with text, gaps and a few very common categories."""
    towns = np.array([f"town {number}" for number in range(300)], dtype=object)
    start, number = 0, 0
    while start < n_rows:
        rows = min(n_rows - start, 10_000 * 2**number, 1_000_000)
        draw = np.random.default_rng(number)
        numbers = draw.lognormal(size=(3, rows))
        numbers[0, draw.uniform(size=rows) < 0.1] = np.nan
        town = towns[np.minimum(draw.zipf(1.5, rows) - 1, len(towns) - 1)]
        town[draw.uniform(size=rows) < 0.05] = None
        table = pa.table(
            {
                **{f"x{j}": pa.array(numbers[j], from_pandas=True) for j in range(3)},
                "town": pa.array(town, pa.string()),
                "rooms": draw.integers(0, 9, rows),
            }
        )
        pq.write_table(table, folder / f"part-{number:04d}.parquet")
        start, number = start + rows, number + 1


def sample_and_labels() -> tuple[pa.Table, np.ndarray]:
    """Return a sample whose tree uses every column."""
    values = np.random.default_rng(12345).normal(size=(SAMPLE, len(COLUMNS)))
    labels = values[:, 0] * values[:, 1] + np.sin(3 * values[:, 2]) + values[:, 3:].sum(axis=1) / 2
    return pa.table(dict(zip(COLUMNS, values.T, strict=True))), labels


def session(master: str, **settings: str) -> Any:
    """Start Spark with the Python that runs this."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    builder = SparkSession.builder.master(master)
    common = {
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "8",
    }
    for name, value in {**common, **settings}.items():
        builder = builder.config(name, value)
    warnings.simplefilter("ignore", FutureWarning)
    return builder.getOrCreate()
