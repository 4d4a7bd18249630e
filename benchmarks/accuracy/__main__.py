"""Which weights are right, and which help a learner; the protocol is in README.md.

    python -m benchmarks.accuracy run                       # our weighters
    python -m benchmarks.accuracy run --part "some draws" --draws 2
    python -m benchmarks.accuracy run --part kernel --python .venv-kernel/bin/python --draws 1
    python -m benchmarks.accuracy run --part survey --python .venv-survey/bin/python --draws 1
    python -m benchmarks.accuracy collect                   # writes results.json
    python -m benchmarks.accuracy page                      # writes docs/accuracy.md, its figure

A run appends a line for each cell to a file of its part, and goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path

from benchmarks.accuracy.cells import PARTS, run_cell
from benchmarks.accuracy.draws import MECHANISMS
from benchmarks.accuracy.tables import ROOT, load_tables

FOLDER = ROOT / ".accuracy"


def run(folder: Path, part: str, python: str | None, draws: int, seed: int, minutes: float) -> None:
    """Run a part draw by draw, over all tables and mechanisms, until it is done or time is up."""
    from benchmarks.accuracy.peer_process import Peers

    path = folder / f"{part.replace(' ', '-')}.jsonl"
    done = set()
    if path.exists():
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        done = {(one["table"], one["mechanism"], one["draw"]) for one in lines}
    tables = load_tables(folder / "wheels")
    weigh = PARTS[part] if part in PARTS else Peers(part, python or "python", folder)
    begun = time.monotonic()
    for number in range(draws):
        for shift, (place, table) in product(range(len(MECHANISMS)), enumerate(tables)):
            mechanism = MECHANISMS[(place + shift) % len(MECHANISMS)]
            if (table.name, mechanism, number) in done:
                continue
            if time.monotonic() - begun > 60 * minutes:
                return
            record = run_cell(table, mechanism, number, seed, number + shift, weigh)
            with path.open("a") as lines_out:
                lines_out.write(json.dumps(record, ensure_ascii=False) + "\n")
            print(f"{time.strftime('%H:%M:%S')} {number} {table.name}, {mechanism}", flush=True)


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=["run", "collect", "page"])
    parser.add_argument("--part", default="every draw", choices=[*PARTS, "kernel", "survey"])
    parser.add_argument("--python", help="The interpreter of the peers' environment.")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.command == "run":
        run(given.folder, given.part, given.python, given.draws, given.seed, given.minutes)
    elif given.command == "collect":
        from benchmarks.accuracy.results import collect

        collect(given.folder)
    else:
        from benchmarks.accuracy.page import write_page

        write_page()


if __name__ == "__main__":
    main()
