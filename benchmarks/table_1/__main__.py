"""Make the draws behind docs/table-1.md; stop and resume it at any time.

    python -m benchmarks.table_1 --data DIR -o FOLDER [--jobs 2] [ROUND ...]
    python -m benchmarks.table_1 --data DIR -o FOLDER --collect

A round is a plan for several seeds; rounds share a folder for each seed, so that a later one adds
to an earlier one. ``--collect`` makes no draws: it writes the results of each round that is
complete to docs/table-1, from which ``python -m docs.table_1`` makes the page. The experiment
itself is ``unskew.paper``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from unskew.paper.datasets import PAPER_SETS, DataSet, load
from unskew.paper.protocol import Plan
from unskew.paper.results import report_on
from unskew.paper.run import FILE_NAME, Kept, Records, run

RESULTS = Path(__file__).parents[2] / "docs" / "table-1"


class Round(NamedTuple):
    """The seeds, what differs from the default plan, and which rows of the report are stored."""

    seeds: tuple[int, ...]
    plan: dict[str, Any]
    rows: str


ROUNDS = {  # the seeds were fixed before the run; none is dropped
    # w chosen on ten draws of each, and reported on the same ten.
    "table": Round((0, 1, 2, 3, 4), {"averaging_draws": 0, "totals": ("paper",)}, "results"),
    # Every method at the same total weight.
    "totals": Round((0, 1, 2, 3, 4), {"averaging_draws": 0, "draws": 3}, "results"),
    # Every direction, not the worst of ten.
    "directions": Round((0, 4), {"draws": 1, "choosing_draws": 1}, "averages"),
}


def folder_of(folder: Path, seed: int) -> Path:
    """Return where the draws of a seed are kept."""
    return folder / "ours" / f"seed-{seed}"


def collect(name: str, sets: tuple[DataSet, ...], folder: Path) -> None:
    """Write the results of a round, if it is complete."""
    seeds, changes, rows = ROUNDS[name]
    reports: list[dict[str, Any]] = []
    for seed in seeds:
        plan = Plan(sets=sets, seed=seed, **changes)
        with tempfile.TemporaryDirectory() as copy:  # the original may be written to
            try:
                shutil.copy(folder_of(folder, seed) / FILE_NAME, copy)
                records = Records(Path(copy), plan.settings)
                records.close()
                report = report_on(plan, Kept(records.outcomes, records.calls))
            except (FileNotFoundError, KeyError):
                print(f"{name} is not complete for seed {seed}")
                return
        reports.append({"seed": seed, rows: getattr(report, rows), "run": report.run})
    (RESULTS / f"{name}.json").write_text(as_lines({"round": name, "reports": reports}))


def as_lines(result: dict[str, Any]) -> str:
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
    sets = tuple(load(name, options.data) for name in PAPER_SETS)
    for name in options.rounds:
        if options.collect:
            collect(name, sets, options.output)
            continue
        for seed in ROUNDS[name].seeds:
            plan = Plan(sets=sets, seed=seed, **ROUNDS[name].plan)
            run(plan, folder_of(options.output, seed), jobs=options.jobs)
            print(f"{name}, seed {seed}: done", flush=True)


if __name__ == "__main__":
    main()
