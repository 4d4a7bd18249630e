"""Whether the bounds hold, how tight they are, and what they cost.

    python -m benchmarks.theory validity [--draws 2000]   # violation rates in simulations
    python -m benchmarks.theory tightness [--draws 5]     # against refits, on the nine data sets
    python -m benchmarks.theory leaves [--draws 5]        # bound and error against the leaf size
    python -m benchmarks.theory cost [--rows 5000]        # the certificate against the fit

``tightness`` and ``leaves`` read the nine data sets of the paper's experiments; ``--datasets`` is
their folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks.theory.cost import print_cost
from benchmarks.theory.leaves import print_leaves
from benchmarks.theory.tightness import print_tightness
from benchmarks.theory.validity import print_validity

DATASETS = Path(__file__).resolve().parents[3] / "shared" / "datasets"


def main() -> None:
    """Run one measurement from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)

    def command(name: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        added = commands.add_parser(name)
        added.set_defaults(run=run)
        return added

    validity = command("validity", lambda given: print_validity(given.draws))
    validity.add_argument("--draws", type=int, default=2000)
    for name, run in (("tightness", print_tightness), ("leaves", print_leaves)):
        measured = command(name, lambda given, run=run: run(given.datasets, given.draws))
        measured.add_argument("--draws", type=int, default=5)
        measured.add_argument("--datasets", type=Path, default=DATASETS)
    cost = command("cost", lambda given: print_cost(given.rows, given.repeats))
    cost.add_argument("--rows", type=int, default=5000)
    cost.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    if not getattr(given, "datasets", Path()).exists():
        parser.error(
            f"{given.datasets} does not exist; pass the folder of the data sets as --datasets."
        )
    given.run(given)


if __name__ == "__main__":
    main()
