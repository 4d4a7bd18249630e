"""Whether the code gives the answers of an earlier revision, as a change for speed must do.

    python -m benchmarks.answers REVISION

Every weighter is fitted to tables of several kinds, from arrays, data frames and Parquet, by the
code of the revision, checked out in a temporary folder, and by that of the working tree. A line
shows the largest difference of the weights over their mean, of the shares that are not covered,
and of the statistics of a diagnosis. Weights that are solved for by iteration may differ by the
tolerance of their solver; all others only by rounding.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[2]


def answers_of(source: Path) -> dict[str, dict[str, Any]]:
    """Return the answers of the package in a folder, computed in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "answers"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(HERE)])}
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.answers.cases", str(path)]
        subprocess.run(command, check=True, env=environment, cwd=name)
        with path.open("rb") as file:
            found: dict[str, dict[str, Any]] = pickle.load(file)
    return found


def difference(before: Any, now: Any) -> float:
    """Return the largest difference, over the mean of the values before where they are many."""
    if isinstance(before, str) or isinstance(now, str):  # a refusal
        return 0.0 if before == now else np.inf
    first, second = np.atleast_1d(before), np.atleast_1d(now)
    if first.shape != second.shape:
        return np.inf
    scale = np.nanmean(np.abs(first)) if len(first) > 1 else 1.0
    apart = np.abs(first - second)
    apart[np.isnan(first) != np.isnan(second)] = np.inf
    return float(np.nan_to_num(apart, nan=0.0, posinf=np.inf).max(initial=0.0) / (scale or 1.0))


def main() -> None:
    """Print a table of the differences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", help="A commit of this repository.")
    revision = parser.parse_args().revision
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "revision"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--detach", str(folder), revision], check=True)
        try:
            before = answers_of(folder / "src")
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)
    now = answers_of(HERE / "src")
    print(f"\nAgainst {revision}:\n\n| case | answer | largest difference |\n|---|---|--:|")
    for case, found in now.items():
        for answer, value in found.items():
            largest = difference(before.get(case, {}).get(answer, "missing"), value)
            print(f"| {case} | {answer} | {largest:.1e} |")


if __name__ == "__main__":
    main()
