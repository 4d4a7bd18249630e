"""The command line at scale, with a large sample: time, memory, and what bounding costs.

    python -m benchmarks.scale weigh cost     unskew weigh and apply, 2.14 M against 30 M rows
    python -m benchmarks.scale weigh error    weights by the default and by 20 m population rows

"cost" has processes of its own, whose peak memory is the system's count; it fails if the default
takes more than 3 GB. "error" has m = 50,000: the root mean square of what weights differ from the
true ratio by, both with a mean of one; it fails beyond 1.05 times that of 20 m population rows.
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

import unskew

CHUNK = 500_000
MOST_MB = 3000
WORST_RATIO = 1.05
TOWNS, KINDS = [f"town {number:02d}" for number in range(40)], list("abcdef")
DESIGNS = ("interaction", "square")


def draw(random: np.random.Generator, n_rows: int) -> dict[str, np.ndarray]:
    """Return columns: five numbers, an age, codes of a town and of a kind."""
    numbers = random.normal(size=(n_rows, 5)).round(3)
    return {
        **{f"x{place}": numbers[:, place] for place in range(5)},
        "age": random.integers(18, 90, n_rows),
        "town": random.choice(40, n_rows, p=np.arange(1, 41) / 820),
        "kind": random.integers(0, 6, n_rows),
    }


def chance(rows: dict[str, np.ndarray], design: str) -> np.ndarray:
    """Return the probability of selection."""
    score = 0.02 * (rows["age"] - 50) + 0.3 * np.sin(rows["town"]) + 0.3 * (rows["kind"] == 2)
    if design == "interaction":
        score = score + 0.8 * rows["x0"] - 0.5 * rows["x1"] + 0.4 * rows["x0"] * rows["x2"]
    else:
        score = score - 1 + rows["x0"] + 0.5 * rows["x1"] ** 2 - 0.5 * rows["x2"]
    return 1 / (1 + np.exp(-score))


def as_table(rows: dict[str, np.ndarray]) -> pa.Table:
    """Return the rows with texts in place of codes."""
    texts = {"town": pa.array(TOWNS), "kind": pa.array(KINDS)}
    columns = {
        name: texts[name].take(pa.array(v)) if name in texts else v for name, v in rows.items()
    }
    return pa.table(columns)


def population_parts(n_rows: int, seed: int = 0) -> Iterator[pa.Table]:
    """Yield the population."""
    random = np.random.default_rng(seed)
    for begin in range(0, n_rows, CHUNK):
        yield as_table(draw(random, min(CHUNK, n_rows - begin)))


def sample_parts(n_rows: int, design: str, seed: int = 1) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Yield the sample with its true ratios, up to a factor."""
    random, left = np.random.default_rng(seed), n_rows
    while left:
        rows = draw(random, CHUNK)
        chances = chance(rows, design)
        chosen = np.flatnonzero(random.uniform(size=CHUNK) < chances)[:left]
        left -= len(chosen)
        yield as_table({name: values[chosen] for name, values in rows.items()}), 1 / chances[chosen]


def write(parts: Iterator[pa.Table], path: Path) -> Path:
    """Write a table of which one part is in memory at a time."""
    first = next(parts)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(part)
    return path


def run(name: str, *arguments: object) -> float:
    """Print what a process of the command line costs, and return its peak in MB."""
    command = [sys.executable, "-m", "unskew", *map(str, arguments)]
    started = time.perf_counter()
    process = os.posix_spawn(sys.executable, command, os.environ)
    _, status, used = os.wait4(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0, name
    took, peak = time.perf_counter() - started, used.ru_maxrss / 1e3
    work = used.ru_utime + used.ru_stime
    print(f"| {name} | {took:.0f} | {work:.0f} | {peak:.0f} |", flush=True)
    return peak


def cost(arguments: argparse.Namespace) -> None:
    """Weigh and apply."""
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        place = Path(folder)
        population = write(population_parts(arguments.rows), place / "population.parquet")
        tables = (table for table, _ in sample_parts(arguments.sample_rows, DESIGNS[0]))
        sample = write(tables, place / "sample.parquet")
        saved, output = place / "saved.skops", place / "weights.parquet"
        print(f"{arguments.sample_rows:,} against {arguments.rows:,} rows, 8 columns\n")
        print("| | s | s of processor | peak MB |\n|---|---|---|---|")
        peak = run("weigh", "weigh", sample, population, "-o", output)
        rake = ["weigh", sample, population, "--method", "rake", "-o", output, "--save", saved]
        run("weigh --method rake", *rake)
        run("apply", "apply", saved, sample, "-o", output)
        assert peak < MOST_MB, peak


def error(arguments: argparse.Namespace) -> None:
    """Compare the default with 20 m population rows, at m = 50,000."""
    size = 50_000
    print(
        "| design | draw | population rows | error | 20 m rows | ratio |\n|---|---|---|---|---|---|"
    )
    for design in DESIGNS:
        for seed in range(arguments.draws):
            parts = list(sample_parts(size, design, 2 * seed + 1))
            sample = pa.concat_tables([table for table, _ in parts])
            truth = np.concatenate([ratios for _, ratios in parts])
            population = pa.concat_tables(population_parts(22 * size, 2 * seed))
            found = []
            for rows in ("auto", 20 * size):
                weighter = unskew.AutoWeights(population_rows=rows, overlap="ignore")
                weights = weighter.fit(sample, population=population).weights_
                apart = weights / weights.mean() - truth / truth.mean()
                found.append((weighter.population_rows_, float(np.sqrt(np.mean(apart**2)))))
            (drawn, mine), (_, most) = found
            print(
                f"| {design} | {seed} | {drawn:,} | {mine:.4f} | {most:.4f} | {mine / most:.3f} |"
            )
            assert mine <= WORST_RATIO * most


def main(arguments: list[str]) -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale weigh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("cost", "error"))
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--sample-rows", type=int, default=2_140_000)
    parser.add_argument("--draws", type=int, default=1, help="of each design, for error")
    parser.add_argument("--folder", type=Path, help="where to write the data")
    parsed = parser.parse_args(arguments)
    {"cost": cost, "error": error}[parsed.command](parsed)
