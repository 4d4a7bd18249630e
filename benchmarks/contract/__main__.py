"""The processor time of a fit and of a diagnosis, in this tree and in an older commit.

    python -m benchmarks.contract OLD_COMMIT [--rounds 5]

``TreeWeights(overlap="ignore").fit`` and ``diagnose`` of a sample of 2,000 rows and a population of
20,000, with eight numbers, and with four numbers and four texts. Processes of both alternate, so
that whatever else the machine does slows both down.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
ONCE = Path(__file__).with_name("once.py")


def unpack(commit: str, folder: Path) -> Path:
    """Write the source of a commit to a folder, and return the path to import it from."""
    packed = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def measure(source: Path) -> dict[str, list[float]]:
    """Return the seconds of each case in a new process that imports from ``source``."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(ONCE)],
        env={**os.environ, "PYTHONPATH": str(source)},
        check=True,
        capture_output=True,
        text=True,
    )
    times: dict[str, list[float]] = json.loads(done.stdout)
    return times


def main() -> None:
    """Print the median and the least time of both, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="The older commit.")
    parser.add_argument("--rounds", type=int, default=5, help="Processes of each. Default: 5.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = [unpack(options.commit, Path(folder)), ROOT / "src"]
        rounds = [[measure(source) for source in sources] for _ in range(options.rounds)]
    print("Processor time in ms: median (least)")
    print(f"{'':20} {'before':>16} {'now':>16} {'ratio':>16}")
    for case in rounds[0][0]:
        both = [
            1000 * np.concatenate([one[side][case] for one in rounds])
            for side in range(len(sources))
        ]
        medians, least = ([float(f(times)) for times in both] for f in (np.median, np.min))
        cells = [f"{a:.1f} ({b:.1f})" for a, b in zip(medians, least, strict=True)]
        ratio = f"{medians[0] / medians[1]:.2f} ({least[0] / least[1]:.2f})"
        print(f"{case:20} {cells[0]:>16} {cells[1]:>16} {ratio:>16}")


if __name__ == "__main__":
    main()
