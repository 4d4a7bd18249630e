"""Populations on Spark.

    python -m benchmarks.scale spark same     the weights of local Parquet, to the last bit
    python -m benchmarks.scale spark ratio    against a mapInArrow that does nothing
    python -m benchmarks.scale spark cores    twice the rows on two cores instead of one
    python -m benchmarks.scale spark kill     executors killed at random moments, with speculation
    python -m benchmarks.scale spark plan     bytes of answers measured; a cluster on paper

Each writes its own data (--rows N) and needs Java.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unskew
from benchmarks.scale.spark_data import (
    COLUMNS,
    ROWS_A_FILE,
    SAMPLE,
    sample_and_labels,
    session,
    write_mixed,
    write_population,
)

LEAVES = 300
KILLS = 10


def tree_weights(population: Any) -> unskew.TreeWeights:
    """Fit the whole of TreeWeights: the tree, the pass and the weights."""
    sample, labels = sample_and_labels()
    weighter = unskew.TreeWeights(max_leaf_nodes=LEAVES)
    return weighter.fit(sample, labels, population=population)


def nothing(population: Any) -> int:
    """Hand the same columns to Python and count the rows."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"rows": [sum(batch.num_rows for batch in batches)]})

    counted = population.select(*COLUMNS).mapInArrow(count, "rows long").collect()
    return sum(row["rows"] for row in counted)


def seconds(function: Callable[[Any], object], population: Any) -> float:
    """Return the wall time of one call."""
    return timed(function, population)[0]


def timed(function: Callable[[Any], object], population: Any) -> tuple[float, float]:
    """Return the wall time of one call, and the processor time of Spark and Python together."""
    used, started = _processor_seconds(), time.perf_counter()
    function(population)
    wall = time.perf_counter() - started
    return wall, _processor_seconds() - used


def _processor_seconds() -> float:
    import psutil

    this = psutil.Process()
    return sum(sum(process.cpu_times()[:4]) for process in (this, *this.children(recursive=True)))


def same(n_rows: int) -> None:
    """Weights from Spark and from local Parquet, for every weighter that counts."""
    with tempfile.TemporaryDirectory() as folder:
        write_mixed(Path(folder), n_rows)
        first = pq.read_table(Path(folder) / "part-0000.parquet").slice(0, 5000)
        labels = first.column("x1").to_numpy() + 3 * first.column("rooms").to_numpy()
        spark = session("local[2]")
        frame = spark.read.parquet(folder)
        forms = {"as read": frame, "37 partitions by town": frame.repartition(37, "town")}
        print(f"{n_rows:,} rows, {len(os.listdir(folder))} files")
        print("| weighter | form | weights identical | largest relative difference |")
        print("|---|---|---|---|")
        for weighter in (
            unskew.TreeWeights(max_leaf_nodes=LEAVES),
            unskew.HistogramWeights(buckets=3, empty="drop"),
            unskew.DensityRatioWeights(n_centres=50),
        ):
            few = slice(0, 500 if isinstance(weighter, unskew.KernelMeanMatching) else 5000)
            sample, y = first.slice(0, few.stop), labels[few]
            local = _quietly(weighter, sample, y, f"{folder}/*.parquet").weights_.copy()
            for name, form in forms.items():
                found = _quietly(weighter, sample, y, form).weights_
                apart = np.max(np.abs(found - local) / np.maximum(local, 1e-300))
                print(
                    f"| {type(weighter).__name__} | {name} | {np.array_equal(found, local)} "
                    f"| {apart:.1e} |",
                    flush=True,
                )
        spark.stop()


def _quietly(weighter: Any, sample: pa.Table, labels: np.ndarray, population: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return weighter.fit(sample, labels, population=population)


def calibration_weights(population: Any) -> unskew.CalibrationWeights:
    """Fit the whole of CalibrationWeights: means, products of pairs and squares."""
    pairs = list(combinations(COLUMNS, 2))
    squares = [(name, name) for name in COLUMNS[:4]]
    weighter = unskew.CalibrationWeights(features=[*COLUMNS, *pairs, *squares])
    return weighter.fit(sample_and_labels()[0], population=population)


def reservoir(population: Any) -> unskew.ClassifierWeights:
    """Fit a classifier that asks for a reservoir, small so that it is the pass that is measured."""
    weighter = unskew.ClassifierWeights(
        "logistic", cv=None, penalty=0.01, rate=0.5, hinges=False, population_rows=20_000
    )
    return weighter.fit(sample_and_labels()[0], population=population)


class _Asked(Exception):  # noqa: N818 - no error: it ends a fit that has said what it asks
    pass


def together(population: Any) -> None:
    """Fit all three to one population whose first pass answers them all."""
    known = unskew.Population(population)

    def remember(reading: Any, question: Any, **_: Any) -> None:
        reading.ask_as_well(question)
        raise _Asked

    with mock.patch.object(unskew.Population, "reduce", remember):
        for ask in (calibration_weights, reservoir):
            with contextlib.suppress(_Asked):
                ask(known)
    for weigh in (tree_weights, calibration_weights, reservoir):
        weigh(known)


def ratio(n_rows: int, repeats: int) -> None:
    """Ours against nothing, in turn in one session."""
    weighters: dict[str, Callable[[Any], object]] = {
        "TreeWeights, 300 leaves": tree_weights,
        "CalibrationWeights, 40 features": calibration_weights,
        "a reservoir of 20,000 rows": reservoir,
        "all three, one pass": together,
    }
    with tempfile.TemporaryDirectory() as folder:
        write_population(Path(folder), n_rows)
        spark = session("local[2]")
        population = spark.read.parquet(folder)
        for once in (nothing, *weighters.values()):  # warm
            once(population)
        print(
            "| rows | question | mapInArrow, nothing, s | whole fit, s | ratio (range) "
            "| processor seconds of nothing | of the fit | ratio (range) |"
        )
        print("|---|---|---|---|---|---|---|---|")
        bare: list[tuple[float, float]] = []
        ours: dict[str, list[tuple[float, float]]] = {name: [] for name in weighters}
        for _ in range(repeats):
            bare.append(timed(nothing, population))
            for name, weigh in weighters.items():
                ours[name].append(timed(weigh, population))
        for name, times in ours.items():
            line = f"| {n_rows:,} | {name} "
            for clock in range(2):
                mine, theirs = ([one[clock] for one in each] for each in (times, bare))
                ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
                line += (
                    f"| {statistics.median(theirs):.2f} | {statistics.median(mine):.2f} "
                    f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
                )
            print(f"{line}|", flush=True)
        assert tree_weights(population).population_counts_.sum() == n_rows == nothing(population)
        spark.stop()


def cores(n_rows: int, repeats: int) -> None:
    """Weak scaling: n rows on one core, twice as many on two, each in a process of its own."""
    print("| cores | rows | TreeWeights, s | nothing, s |")
    print("|---|---|---|---|", flush=True)
    for n_cores in (1, 2):
        command = [sys.executable, "-m", "benchmarks.scale", "spark", "_one"]
        command += ["--rows", str(n_rows * n_cores), "--repeats", str(repeats)]
        subprocess.run([*command, "--cores", str(n_cores)], check=True)


def _one(n_rows: int, repeats: int, n_cores: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_population(Path(folder), n_rows)
        spark = session(f"local[{n_cores}]")
        population = spark.read.parquet(folder)
        tree_weights(population), nothing(population)
        times = [
            (seconds(tree_weights, population), seconds(nothing, population))
            for _ in range(repeats)
        ]
        ours, bare = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"| {n_cores} | {n_rows:,} | {ours:.2f} | {bare:.2f} |", flush=True)
        spark.stop()


def kill(n_rows: int) -> None:
    """Kill an executor at a random moment of each of ten passes; its work is done again."""
    import psutil

    with tempfile.TemporaryDirectory() as folder:
        write_population(Path(folder), n_rows)
        settings = {
            "spark.executor.memory": "1g",
            "spark.speculation": "true",
            "spark.speculation.multiplier": "1.1",
            "spark.sql.files.maxPartitionBytes": "4m",
        }
        spark = session("local-cluster[2,1,1024]", **settings)
        population = spark.read.parquet(folder)
        expected = tree_weights(population).weights_
        usual = seconds(tree_weights, population)
        draw = random.Random(0)
        print(f"{n_rows:,} rows, two executors; a pass takes {usual:.1f} s undisturbed", flush=True)
        same = 0
        for number in range(KILLS):
            after = draw.uniform(0, usual)
            killed: list[int] = []
            timer = threading.Timer(after, _kill_an_executor, (psutil, draw, killed))
            timer.start()
            started = time.perf_counter()
            found = tree_weights(population).weights_
            timer.join()
            identical = np.array_equal(found, expected)
            same += identical
            print(
                f"{number + 1}: killed {'an executor' if killed else 'nothing'} after "
                f"{after:.1f} s of {time.perf_counter() - started:.1f}; "
                f"weights identical: {identical}",
                flush=True,
            )
        print(f"identical in {same} of {KILLS}")
        spark.stop()


def _kill_an_executor(psutil: Any, draw: random.Random, killed: list[int]) -> None:
    executors = []
    for process in psutil.Process().children(recursive=True):  # those of this session alone
        try:
            if any("CoarseGrainedExecutorBackend" in part for part in process.cmdline()):
                executors.append(process)
        except psutil.Error:  # it ended meanwhile
            continue
    if executors:
        victim = draw.choice(executors)
        killed.append(victim.pid)
        victim.send_signal(signal.SIGKILL)


def plan(n_rows: int) -> None:
    """Measure what an answer weighs from Spark's own log, and what that makes of a cluster."""
    questions = {
        "TreeWeights, 300 leaves": unskew.TreeWeights(max_leaf_nodes=LEAVES),
        "TreeWeights, 20,000 sample rows, leaves of 4": unskew.TreeWeights(),
        "KernelMeanMatching, exact, 5,000 sample rows": unskew.KernelMeanMatching(method="exact"),
        "DensityRatioWeights(population_rows=20_000): a reservoir": unskew.DensityRatioWeights(
            population_rows=20_000
        ),
    }
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as log:
        write_population(Path(folder), n_rows, row_group=ROWS_A_FILE // 16)
        settings = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": Path(log).as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.sql.files.maxPartitionBytes": "2m",  # one row group each: none is empty
        }
        spark = session("local[2]", **settings)
        population = spark.read.parquet(folder)
        sample, labels = sample_and_labels()
        for name, weighter in questions.items():
            rows = 5000 if "5,000" in name else 300 if "cv" in name else SAMPLE
            spark.sparkContext.setJobDescription(name)
            _quietly(weighter, sample.slice(0, rows), labels[:rows], population)
        spark.stop()
        _print_plan(list(questions), [json.loads(line) for line in _log_lines(Path(log))])


def _log_lines(folder: Path) -> list[str]:
    (path,) = (path for path in folder.rglob("*") if path.is_file() and "local-" in path.name)
    return path.read_text().splitlines()


def _print_plan(names: list[str], events: list[dict[str, Any]]) -> None:
    owner: dict[int, str] = {}
    for event in events:
        if event["Event"] == "SparkListenerJobStart":
            description = event["Properties"].get("spark.job.description", "")
            owner |= dict.fromkeys(event["Stage IDs"], description)
    ends = [event for event in events if event["Event"] == "SparkListenerTaskEnd"]
    print("| question | partitions | stages | shuffled | to the driver | an answer |")
    print("|---|---|---|---|---|---|")
    plans = []
    for name in names:
        mine = [event for event in ends if owner.get(event["Stage ID"]) == name]
        stages = sorted({event["Stage ID"] for event in mine})
        first = [event for event in mine if event["Stage ID"] == stages[0]]
        shuffled = sum(_shuffled(event) for event in first)
        results = [event for event in mine if event["Task Type"] == "ResultTask"]
        driver = sum(event["Task Metrics"]["Result Size"] for event in results)
        answer = (shuffled or driver) / len(first)
        plans.append((name, answer, bool(shuffled), len(stages)))
        print(
            f"| {name} | {len(first)} | {len(stages)} | {_size(sum(map(_shuffled, mine)))} "
            f"| {_size(driver)} | {_size(answer)} |"
        )
    print("\n10,000,000,000 rows in 10,000 partitions, from these answers:")
    print("| question | stages | shuffled | to the driver |")
    print("|---|---|---|---|")
    for name, answer, staged, stages in plans:
        partitions = 10_000
        shuffled = driver = 0.0
        left = partitions
        for _ in range(stages - 1 if staged else 0):
            shuffled += left * answer
            left = -(-left // 64)
        driver = left * answer
        print(f"| {name} | {stages} | {_size(shuffled)} | {_size(driver)} |")


def _shuffled(event: dict[str, Any]) -> int:
    written: int = event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    return written


def _size(n_bytes: float) -> str:
    for unit in ("B", "KB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"


def main(arguments: list[str]) -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale spark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["same", "ratio", "cores", "kill", "plan", "_one"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cores", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    match given.command:
        case "same":
            same(given.rows or 5_000_000)
        case "ratio":
            ratio(given.rows or 20_000_000, given.repeats)
        case "cores":
            cores(given.rows or 5_000_000, given.repeats)
        case "kill":
            kill(given.rows or 1_000_000)
        case "plan":
            plan(given.rows or 2_000_000)
        case "_one":
            _one(given.rows, given.repeats, given.cores)
