"""Make the draws behind docs/table-1.md; stop and resume it at any time.

    python -m benchmarks.table_1 --data DIR -o FOLDER [--jobs 2] [ROUND ...]
    python -m benchmarks.table_1 --data DIR -o FOLDER --collect

Without a round it makes all of them, in order. ``--collect`` makes no draws: it writes the results
of each round that is complete for all of its seeds to docs/table-1, from which docs/table_1.py
makes the page.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.table_1.rounds import ROUNDS
from unskew.paper.datasets import KNOWN, DataSet, load
from unskew.paper.protocol import READINGS, Plan
from unskew.paper.results import report_on
from unskew.paper.run import FILE_NAME, Kept, Records, run

RESULTS = Path(__file__).parents[2] / "docs" / "table-1"


def make(name: str, sets: tuple[DataSet, ...], folder: Path, jobs: int) -> None:
    """Make what is missing of a round."""
    reading, seeds, _ = ROUNDS[name]
    for seed in seeds:
        started = time.monotonic(), time.process_time()
        run(plan_of(name, sets, seed), folder / reading / f"seed-{seed}", jobs=jobs)
        wall, processor = time.monotonic() - started[0], time.process_time() - started[1]
        print(f"{name}, seed {seed}: {wall:.0f} s, processor {processor:.0f} s", flush=True)


def plan_of(name: str, sets: tuple[DataSet, ...], seed: int) -> Plan:
    """Return the plan of a round for a seed."""
    reading, _, changes = ROUNDS[name]
    return Plan(sets=sets, seed=seed, reading=READINGS[reading], **changes)


def collect(name: str, sets: tuple[DataSet, ...], folder: Path) -> None:
    """Write the results of a round, if it is complete."""
    reading, seeds, _ = ROUNDS[name]
    reports: list[dict[str, Any]] = []
    for seed in seeds:
        plan = plan_of(name, sets, seed)
        with tempfile.TemporaryDirectory() as copy:  # the original may be written to
            try:
                shutil.copy(folder / reading / f"seed-{seed}" / FILE_NAME, copy)
                records = Records(Path(copy), plan.settings)
                records.close()
                report = report_on(plan, Kept(records.outcomes, records.calls))
            except (FileNotFoundError, KeyError):
                print(f"{name} is not complete for seed {seed}")
                return
        reports.append({"seed": seed, **report._asdict()})
    (RESULTS / f"{name}.json").write_text(_lines({"round": name, "reports": reports}))


def _lines(result: dict[str, Any]) -> str:
    """Return JSON with one result a line, its numbers to six decimals."""
    rounded = json.loads(json.dumps(result), parse_float=lambda text: round(float(text), 6))
    return json.dumps(rounded).replace('{"set"', '\n{"set"') + "\n"


def main() -> None:
    """Make what is missing of the named rounds, or collect the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="*", default=list(ROUNDS))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--collect", action="store_true")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    sets = tuple(load(name, options.data) for name in KNOWN)
    for name in options.rounds:
        if options.collect:
            collect(name, sets, options.output)
        else:
            make(name, sets, options.output, options.jobs)


if __name__ == "__main__":
    main()
