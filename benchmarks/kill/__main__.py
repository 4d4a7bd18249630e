"""``unskew weigh`` killed at random moments: never a partial output.

    python -m benchmarks.kill [--kills 100] [--seed 0]

Each time a process of its own weighs a sample and is ended by ``kill -9``: half the times at a
moment drawn uniformly from the time that a whole run takes, half the times a little after it began
to write. In half of each there are files from an earlier run. Afterwards every output must be
absent, or as it was, or whole.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unskew

SAMPLE_ROWS = 60_000
POPULATION_ROWS = 500_000
COLUMNS = ("age", "income", "height")
UNFINISHED = ".unfinished"


def write_inputs(folder: Path) -> None:
    """Write a sample and a population that take a while, and weights of some megabytes."""
    generator = np.random.default_rng(0)

    def columns(n_rows: int) -> dict[str, np.ndarray]:
        return {name: generator.normal(size=n_rows) for name in COLUMNS}

    pq.write_table(pa.table(columns(POPULATION_ROWS)), folder / "population.parquet")
    sample = columns(SAMPLE_ROWS)
    sample["label"] = sample["age"] + generator.normal(size=SAMPLE_ROWS)
    pq.write_table(pa.table(sample), folder / "sample.parquet")


def start(folder: Path, outputs: dict[str, Path]) -> subprocess.Popen[bytes]:
    """Start a run."""
    words = [word for option, path in outputs.items() for word in (option, str(path))]
    command = ["weigh", "sample.parquet", "population.parquet", "--target", "label", *words]
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "unskew.cli",
            *command,
            "--method",
            "tree",
            "--set",
            "min_samples_leaf=200",
        ],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def outputs_in(folder: Path, kind: str) -> dict[str, Path]:
    """Return what a run writes, by option."""
    return {"-o": folder / f"weights.{kind}", "--save": folder / "weighter.skops"}


def await_writing(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Return once the process has begun to write its outputs, or is over."""
    while process.poll() is None:
        for entry in os.scandir(folder):
            if entry.name.endswith(UNFINISHED) and entry.stat().st_size:
                return
        time.sleep(0.001)


def is_whole(path: Path, whole: bytes) -> bool:
    """Whether an output is the one of a run that was not killed."""
    if path.suffix != ".skops":
        return path.read_bytes() == whole
    try:
        unskew.load_weighter(path)  # the names inside such a file are random
    except unskew.UnskewError:
        return False
    return True


def kill_once(
    folder: Path, kind: str, whole: dict[str, bytes], *, delay: float, writing: bool, existing: bool
) -> Counter[str]:
    """Start a run, kill it, and count what is left."""
    place = Path(tempfile.mkdtemp(dir=folder))
    outputs = outputs_in(place, kind)
    old = b"from an earlier run" if existing else None
    if old is not None:
        for path in outputs.values():
            path.write_bytes(old)
    process = start(folder, outputs)
    if writing:
        await_writing(place, process)
    time.sleep(delay)
    left_early = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    found: Counter[str] = Counter(killed=left_early, over=not left_early)
    for option, path in outputs.items():
        now = path.read_bytes() if path.exists() else None
        if now == old:
            found["outputs as before"] += 1
        elif now is not None and is_whole(path, whole[option]):
            found["outputs whole"] += 1
        else:
            found["outputs partial or lost"] += 1
    left = [path for path in place.iterdir() if path.name.endswith(UNFINISHED)]
    found["killed while writing"] = bool(left_early and any(path.stat().st_size for path in left))
    found["unfinished files left behind"] = len(left)
    for path in left:  # as if the next run came minutes later
        os.utime(path, (0, 0))
    return found


def main() -> None:
    """Kill the given number of times, and print what was left."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        whole: dict[str, dict[str, bytes]] = {}
        seconds = {}
        for kind in ("csv", "parquet"):
            started = time.perf_counter()
            if start(folder, outputs := outputs_in(folder, kind)).wait() != 0:
                parser.error("a run that was not killed failed")
            seconds[kind] = time.perf_counter() - started
            whole[kind] = {option: path.read_bytes() for option, path in outputs.items()}
        while found["killed"] < given.kills:
            kind, writing = draw.choice(["csv", "parquet"]), draw.random() < 0.5
            found += kill_once(
                folder,
                kind,
                whole[kind],
                delay=seconds[kind] * (draw.random() ** 4 if writing else draw.random()),
                writing=writing,
                existing=draw.random() < 0.5,
            )
        places = [path for path in folder.iterdir() if path.is_dir()]
        spoilt = next(path for path in places if any(path.glob(f".*{UNFINISHED}")))
        kind = "csv" if any(spoilt.glob(".weights.csv*")) else "parquet"
        start(folder, outputs_in(spoilt, kind)).wait()
        remaining = len(list(spoilt.glob(f".*{UNFINISHED}")))
    print(f"a whole run: {seconds['csv']:.1f} s (CSV), {seconds['parquet']:.1f} s (Parquet)")
    for words in (
        "killed",
        "killed while writing",
        "over",
        "outputs as before",
        "outputs whole",
        "outputs partial or lost",
        "unfinished files left behind",
    ):
        print(f"{words}: {found[words]}")
    print(f"of these, after the next run to the same place: {remaining}")
    sys.exit(1 if found["outputs partial or lost"] or remaining else 0)


if __name__ == "__main__":
    main()
