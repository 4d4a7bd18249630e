"""Whether certificates of linear learners and classifiers hold, how tight they are, what they cost.

    python -m benchmarks.theory.learners [cells calibration ... cost]
    python -m benchmarks.theory.learners tables

Each part goes in steps of a few draws of one learner, or by data set, and stores each step in
``result.json``, so that it can be interrupted and goes on where it was. ``--minutes`` ends it after
that time. ``tables`` prints what is stored as the tables of docs/guarantees.md.

Protocol, fixed before the run. δ = 0.05. A draw counts as failed if the decision function or the
predictions have moved by more than the certificate, as a root mean square over the weighted sample,
or if more of the population's predictions flip than certified. The perfect weights are the true
ones in the scale of the estimated ones; the learner is fitted with them by the same call (for
stochastic gradient descent, by the exact solver of its objective).

- cells: 1,000 draws of 600 rows in four cells of known probability of selection.
- calibration, logistic, penalised: 1,000 draws of a sample of 300 and a population of 600 rows,
  whose density ratio is e^(0.6 x0 - 0.3 x1); raking to the means, the ordinary logistic regression,
  and the default one, with a penalty and folds, for two learners.
- bootstrap: the same with 99 replicates of raking, for a learner of each kind.
- level: 1,000 draws in which the assumptions hold: how often the headline is qualified.
- broken: 200 draws in which selection depends on a column within cells, or the ratio has a square:
  how often the headline is qualified.
- hidden: 200 draws; hidden factors of 1.2 and 1/1.2 at the rows where they do most, to first order.
- tightness: the nine data sets, labels split at their median, three draws.
- comparison: bounds on the change of risk by cells, kernel mean matching and the discriminative
  method, for the same learner, on 1,000 rows of the nine sets.
- cost: m = 5,000 against the fit with its weights; m = 100,000 rows of 50 features. Processor time
  with one BLAS thread, and wall time beside it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.theory.learners.comparison import comparison
from benchmarks.theory.learners.cost import MEASURED, cost
from benchmarks.theory.learners.tables import tables
from benchmarks.theory.learners.tightness import DATASETS, tightness
from benchmarks.theory.learners.validity import (
    LEARNERS,
    bootstrap,
    broken,
    calibration,
    cells,
    hidden,
    level,
    logistic_weights,
    penalised_weights,
)

RESULT = Path(__file__).parent / "result.json"


def _draws(run: Callable[[range], Any], draws: int, step: int) -> dict[str, Callable[[], Any]]:
    return {
        f"{start} to {start + step - 1}": partial(run, range(start, start + step))
        for start in range(0, draws, step)
    }


def _of_learners(
    run: Callable[[str, range], Any], learners: Sequence[str], draws: int = 1000, step: int = 20
) -> dict[str, Callable[[], Any]]:
    """Return steps of draws, in each of which the learners take turns."""
    return {
        f"{name}: {start} to {start + step - 1}": partial(run, name, range(start, start + step))
        for start in range(0, draws, step)
        for name in learners
    }


PARTS: dict[str, dict[str, Callable[[], Any]]] = {
    "cost": {name: partial(cost, name) for name in MEASURED},
    "tightness": {
        path.stem: partial(tightness, path) for path in sorted(DATASETS.glob("*.parquet"))
    },
    "comparison": {
        path.stem: partial(comparison, path) for path in sorted(DATASETS.glob("*.parquet"))
    },
    "level": _draws(level, 1000, 20),
    "cells": _of_learners(cells, list(LEARNERS)),
    "calibration": _of_learners(calibration, list(LEARNERS)),
    "logistic": _of_learners(logistic_weights, list(LEARNERS)),
    "penalised": _of_learners(penalised_weights, ["Ridge", "LogisticRegression"]),
    "bootstrap": _of_learners(
        bootstrap, ["LogisticRegression", "LinearSVC, hinge, C = 0.01", "KernelRidge"]
    ),
    "broken": _draws(broken, 200, 20),
    "hidden": _draws(hidden, 200, 20),
}


def main() -> None:
    """Run the parts that the command line names, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="Default: all; tables prints those of the docs.")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--learner", action="append", help="Of those that go by learner; all.")
    given = parser.parse_args()
    if given.parts == ["tables"]:
        for table in tables(json.loads(RESULT.read_text())):
            print("\n".join(table), end="\n\n")
        return
    end = time.monotonic() + 60 * given.minutes
    steps = [
        (place / len(PARTS[part]), part, step)
        for part in given.parts or PARTS
        for place, step in enumerate(PARTS[part])
        if not given.learner or ":" not in step or step.split(":")[0] in given.learner
    ]
    for _, part, step in sorted(steps, key=lambda one: one[0]):  # parts take turns
        result = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        if step in result.get(part, {}):
            continue
        if time.monotonic() > end:
            return
        result.setdefault(part, {})[step] = PARTS[part][step]()
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
        print(part, step, flush=True)


if __name__ == "__main__":
    main()
