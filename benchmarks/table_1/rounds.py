"""Which draws the page on Table 1 consists of, in the order in which they are made.

A round is a plan for several seeds. Rounds of one reading share a folder for each seed, so that a
later round adds to an earlier one; each leaves a table over all nine sets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.table_1.matchings import TRIALS
from benchmarks.table_1.today import TODAY
from unskew.paper.methods import METHODS

SEEDS = (0, 1, 2, 3, 4)
"""Fixed before the run; none is dropped."""

TABLE = {"scalings": ("range",), "mechanisms": ("logistic",), "averaging_draws": 0}
PAPER = {**TABLE, "totals": ("paper",)}
FEW = {**PAPER, "draws": 3, "choosing_draws": 3}
TWO = {"draws": 2, "choosing_draws": 2}
ONE = {"draws": 1, "choosing_draws": 1, "averaging_draws": 1}


class Round(NamedTuple):
    """A reading, the seeds and what differs from the default plan."""

    reading: str
    seeds: tuple[int, ...]
    plan: dict[str, Any]


OTHERS = {
    "scalings": ("range",),
    "mechanisms": ("quadratic", "threshold", "label"),
    "totals": ("sample",),
}

ROUNDS = {
    # The table: w chosen on ten draws of each, and reported on the same ten. The first two lead
    # there, with w chosen on three draws.
    "first": Round("ours", SEEDS, FEW),
    "chosen-on-three": Round("ours", SEEDS, {**FEW, "draws": 10}),
    "table": Round("ours", SEEDS, PAPER),
    "totals": Round("ours", SEEDS, {**TABLE, "draws": 3}),
    "directions": Round("ours", (0, 4), {**TABLE, **ONE}),
    # The panels; the second half of them adds to the first.
    "mechanisms": Round("ours", SEEDS[:1], {**OTHERS, "draws": 5}),
    "any-size": Round("any-size", SEEDS[:2], FEW),
    "today": Round("ours", SEEDS[:1], {**PAPER, **ONE, "directions": 3, "further": TODAY}),
    "matchings": Round("ours", SEEDS[:1], {**PAPER, "draws": 2, "methods": {**METHODS, **TRIALS}}),
    "standard": Round("ours", SEEDS[:1], {**PAPER, **TWO, "scalings": ("standard",)}),
    "more-today": Round("ours", SEEDS[:1], {**PAPER, **ONE, "further": TODAY}),
    "more-any-size": Round("any-size", SEEDS, FEW),
    "more-mechanisms": Round("ours", SEEDS[:1], OTHERS),
    "more-directions": Round("ours", SEEDS, {**TABLE, **ONE}),
    **{
        name: Round(name, SEEDS[:1], FEW)
        for name in (
            "scaled-by-all",
            "standard-w",
            "range-w",
            "first-rows",
            "range-target",
            "raw-target",
        )
    },
}
