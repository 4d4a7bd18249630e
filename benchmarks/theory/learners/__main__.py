"""Whether certificates of linear learners and classifiers hold, how tight they are, what they cost.

    python -m benchmarks.theory.learners [cells calibration ... cost]
    python -m benchmarks.theory.learners tables

Each part goes in steps, by draws, learner, design or data set, and stores each in ``results``, so
that it can be interrupted and goes on where it was; parts can run beside each other. ``--minutes``
begins no step after that time, ``--again`` measures anew. ``tables`` prints what is stored as the
tables of docs/guarantees.md.

Protocol, fixed before the run. δ = 0.05. A draw counts as failed if the decision function or the
predictions have moved by more than the certificate, as a root mean square over the weighted sample,
or if more of the population's predictions flip than certified. The perfect weights are the true
ones in the scale of the estimated ones; the learner is fitted with them by the same call (for
stochastic gradient descent, by the exact solver of its objective). 1,000 draws for each learner:

- cells: 600 rows in four cells of known probability of selection.
- calibration, logistic, penalised: a sample of 300 and a population of 600 rows, whose density
  ratio is e^(0.6 x0 - 0.3 x1); raking to the means, the ordinary logistic regression, and the
  default one, with a penalty and folds.
- bootstrap: the same with 39 replicates of raking.

And others:

- pooled: 40 draws of the same with 19 replicates of AutoWeights, for LogisticRegression.
- broken: 1,000 draws with Ridge of designs in which the assumptions hold, in which selection
  depends on a column within cells, or in which the ratio has a square: how often the headline is
  qualified.
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
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from sklearn import config_context

from benchmarks.theory.learners import validity
from benchmarks.theory.learners.assumptions import DESIGNS, qualified
from benchmarks.theory.learners.comparison import comparison
from benchmarks.theory.learners.cost import MEASURED, cost
from benchmarks.theory.learners.designs import LEARNERS
from benchmarks.theory.learners.tables import DRAWS, RESULTS, stored, tables
from benchmarks.theory.learners.tightness import DATASETS, tightness

CHUNK = 250


def _steps(
    run: Callable[..., Any], names: Iterable[str], *given: Any
) -> dict[str, Callable[[], Any]]:
    return {name: partial(run, name, *given) for name in names}


def _sets(run: Callable[[Path], Any]) -> dict[str, Callable[[], Any]]:
    return {path.stem: partial(run, path) for path in sorted(DATASETS.glob("*.parquet"))}


def _draws(
    run: Callable[[list[str], range], Any],
    learners: Iterable[str] = LEARNERS,
    draws: int = DRAWS,
    chunk: int = CHUNK,
) -> dict[str, Callable[[], Any]]:
    """Return steps of some draws, whose weights the learners share."""
    return {
        f"{start} to {start + chunk - 1}": partial(run, list(learners), range(start, start + chunk))
        for start in range(0, draws, chunk)
    }


def _by_learner(run: Callable[[list[str], range], Any]) -> dict[str, Callable[[], Any]]:
    """Return a step for each learner, where sharing weights saves little."""
    return {name: partial(run, [name], range(DRAWS)) for name in LEARNERS}


PARTS: dict[str, dict[str, Callable[[], Any]]] = {
    "cost": _steps(cost, MEASURED),
    "tightness": _sets(tightness),
    "comparison": _sets(comparison),
    "cells": _by_learner(validity.cells),
    "calibration": _draws(validity.calibration),
    "logistic": _draws(validity.logistic),
    "broken": _steps(qualified, DESIGNS, range(DRAWS)),
    "penalised": _draws(validity.penalised),
    "bootstrap": _by_learner(validity.bootstrap),
    "pooled": _draws(validity.pooled, ["LogisticRegression"], 40, 10),
}


def main() -> None:
    """Run the parts that the command line names, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="Default: all; tables prints those of the docs.")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--again", action="store_true", help="Also what is stored.")
    given = parser.parse_args()
    if given.parts == ["tables"]:
        for table in tables(stored()):
            print("\n".join(table), end="\n\n")
        return
    end = time.monotonic() + 60 * given.minutes
    for part in given.parts or PARTS:
        path = RESULTS / f"{part}.json"
        result = json.loads(path.read_text()) if path.exists() else {}
        for step, run in PARTS[part].items():
            if step in result and not given.again:
                continue
            if time.monotonic() > end:
                return
            # Scikit-learn's checks slow down draws, but belong to the cost of a fit.
            fast = part != "cost"
            with config_context(assume_finite=fast, skip_parameter_validation=fast):
                result[step] = run()
            path.write_text(json.dumps(result, indent=1) + "\n")
            print(part, step, result[step], flush=True)


if __name__ == "__main__":
    main()
