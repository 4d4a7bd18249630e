"""Which draws the page on Table 1 consists of, in the order in which they are made.

A round is a plan for several seeds. Rounds of one reading share a folder for each seed, so that a
later round adds to an earlier one; each leaves a table over all nine sets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.table_1.matchings import TRIALS
from benchmarks.table_1.today import TODAY
from unskew.experiments.methods import METHODS

SEEDS = (0, 1, 2, 3, 4)
"""Fixed before the run; none is dropped."""

TABLE = {"scalings": ("range",), "mechanisms": ("logistic",), "averaging_draws": 0}
PAPER = {**TABLE, "totals": ("paper",)}
FEW = {**PAPER, "draws": 3, "choosing_draws": 3}


class Round(NamedTuple):
    """A reading, the seeds and what differs from the default plan."""

    reading: str
    seeds: tuple[int, ...]
    plan: dict[str, Any]


ROUNDS = {
    # w chosen on three draws each, then reported on three and on ten.
    "first": Round("ours", SEEDS, FEW),
    "table": Round("ours", SEEDS, {**FEW, "draws": 10}),
    "totals": Round("ours", SEEDS, {**TABLE, "draws": 3, "choosing_draws": 3}),
    "any-size": Round("any-size", SEEDS, FEW),
    "mechanisms": Round(
        "ours",
        SEEDS[:1],
        {"mechanisms": ("quadratic", "threshold", "label"), "totals": ("sample",), "draws": 10}
        | {"scalings": ("range",)},
    ),
    "matchings": Round("ours", SEEDS[:1], {**FEW, "methods": {**METHODS, **TRIALS}}),
    "today": Round(
        "ours",
        SEEDS[:1],
        {**PAPER, "draws": 1, "choosing_draws": 1, "averaging_draws": 1, "further": TODAY},
    ),
    "directions": Round(
        "ours", SEEDS, {**TABLE, "draws": 1, "choosing_draws": 1, "averaging_draws": 1}
    ),
    "standard": Round("ours", SEEDS[:1], {**FEW, "scalings": ("standard",)}),
    **{
        name: Round(name, SEEDS[:1], FEW)
        for name in (
            "standard-w",
            "range-w",
            "scaled-by-all",
            "first-rows",
            "range-target",
            "raw-target",
        )
    },
    # The same as "table" with w chosen on all ten draws.
    "chosen-on-ten": Round("ours", SEEDS, {**PAPER, "draws": 10, "choosing_draws": 10}),
}
