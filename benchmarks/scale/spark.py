"""Whole fits to a population on Spark, against a ``mapInArrow`` that does nothing.

    python -m benchmarks.scale spark [--rows 20000000] [--repeats 5]

Nearly all the time of a pass is Spark handing rows to Python, so that is the baseline. Local mode
on two cores; it writes its own data and needs Java.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.scale.local import fit
from benchmarks.scale.local_data import NUMBERS, write_numbers

WEIGHTERS = ("TreeWeights, 300 leaves", "CalibrationWeights, 40 features")
WEIGHTERS += ("ClassifierWeights, one small fit",)


def session() -> Any:
    """Start Spark with the Python that runs this."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    builder = SparkSession.builder.master("local[2]")
    settings = {
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "8",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    warnings.simplefilter("ignore", FutureWarning)
    return builder.getOrCreate()


def nothing(population: Any) -> int:
    """Hand the same columns to Python and count the rows."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"rows": [sum(batch.num_rows for batch in batches)]})

    counted = population.select(*NUMBERS).mapInArrow(count, "rows long").collect()
    return sum(row["rows"] for row in counted)


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Return the wall time of one call, and the processor time of Spark and Python together."""
    used, started = _processor_seconds(), time.perf_counter()
    run()
    wall = time.perf_counter() - started
    return wall, _processor_seconds() - used


def _processor_seconds() -> float:
    import psutil

    this = psutil.Process()
    return sum(sum(process.cpu_times()[:4]) for process in (this, *this.children(recursive=True)))


def measure(population: Any, n_rows: int, repeats: int) -> None:
    """Print ours against nothing, in turn in one session."""
    jobs: dict[str, Callable[[], object]] = {"nothing": lambda: nothing(population)}
    jobs |= {name: lambda name=name: fit(name, population) for name in WEIGHTERS}
    for job in jobs.values():  # warm
        job()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            times[name].append(timed(job))
    print(
        "| rows | question | mapInArrow, nothing, s | whole fit, s | ratio (range) "
        "| processor seconds of nothing | of the fit | ratio (range) |"
    )
    print("|---|---|---|---|---|---|---|---|")
    bare = times.pop("nothing")
    for name, found in times.items():
        line = f"| {n_rows:,} | {name} "
        for clock in range(2):
            ours, theirs = ([one[clock] for one in each] for each in (found, bare))
            ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
            line += (
                f"| {statistics.median(theirs):.2f} | {statistics.median(ours):.2f} "
                f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
            )
        print(f"{line}|", flush=True)


def main(arguments: list[str]) -> None:
    """Write the rows and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        write_numbers(Path(folder), given.rows)
        spark = session()
        measure(spark.read.parquet(folder), given.rows, given.repeats)
        spark.stop()
