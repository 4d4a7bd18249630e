"""Commands on files, from the shell to the verdict."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks.speed.fits import shifted
from benchmarks.speed.jobs import Job

IMPORTS = "import typer, pyarrow.csv, pyarrow.dataset, sklearn.tree"
"""What any of these commands needs before it can begin."""


def jobs() -> Iterator[Job]:
    """Yield the commands that people run first."""
    imports = ("a process that only imports", _process(["-c", IMPORTS]))
    yield Job("unskew --help", _unskew("--help"), 0.2)
    with tempfile.TemporaryDirectory() as folder:
        small, large = (_files(Path(folder), m) for m in (1_000, 10_000))
        weigh = ["weigh", *small, "--target", "y", "-o", f"{folder}/weights.csv"]
        yield Job(
            "unskew weigh --method tree, 1,000 rows", _unskew(*weigh, "--method", "tree"), 1.2
        )
        yield Job(
            "the same over its imports",
            _unskew(*weigh, "--method", "tree"),
            1.5,
            peer=imports,
        )
        yield Job("unskew weigh, 1,000 rows against 10,000", _unskew(*weigh), 3.5)
        weigh = ["weigh", *large, "--target", "y", "-o", f"{folder}/weights.csv"]
        yield Job("unskew weigh, 10,000 rows against 100,000", _unskew(*weigh), 6.0, repeats=3)
    yield Job("unskew demo, warm", _unskew("demo"), 20.0, repeats=1)


def _files(folder: Path, m: int) -> tuple[str, str]:
    sample, y, population = shifted(m, 10 * m, 8)
    names = [f"c{j}" for j in range(8)]
    paths = folder / f"sample{m}.csv", folder / f"population{m}.parquet"
    table = pa.table([*sample.T, y], names=[*names, "y"])
    csv.write_csv(table, paths[0])
    pq.write_table(pa.table(list(population.T), names=names), paths[1])
    return str(paths[0]), str(paths[1])


def _unskew(*arguments: str) -> Callable[[], None]:
    return _process(["-m", "unskew", *arguments])


def _process(arguments: list[str]) -> Callable[[], None]:
    """Return a job that runs Python as where unskew is installed, with its bytecode kept."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return functools.partial(
        subprocess.run,
        [sys.executable, *arguments],
        check=True,
        capture_output=True,
        env=environment,
    )
