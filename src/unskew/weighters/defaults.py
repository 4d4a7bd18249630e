"""Which weighter each entry point takes where none is named: one table for Python, shell and docs.

Every other parameter has the default of its class, on the command line too. A weighter that is
named (``weighter=``, ``--method``) replaces these, and has the defaults of its class as well.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from sklearn.base import clone

from unskew.population.margins import Margins
from unskew.weighters.auto import AutoWeights
from unskew.weighters.base import Weighter
from unskew.weighters.calibration import CalibrationWeights


class Default(NamedTuple):
    """The weighters of an entry point, by what is known of the population, and why these."""

    rows: Weighter
    margins: Weighter
    why: str


DEFAULTS = {
    "weigh": Default(
        AutoWeights(), CalibrationWeights(), "nobody has said what the weights are for"
    ),
    "train": Default(
        AutoWeights(), CalibrationWeights(), "a learner depends on the whole distribution"
    ),
    "estimate": Default(
        CalibrationWeights(columns="shared"),
        CalibrationWeights(columns="shared"),
        "a number depends on what predicts y",
    ),
    "score": Default(
        AutoWeights(columns="shared"),
        CalibrationWeights(columns="shared"),
        "beside a model of the errors, weights correct what it misses anywhere",
    ),
}


def default_weighter(
    use: Literal["weigh", "train", "estimate", "score"], population: Any = None
) -> Weighter:
    """Return a new weighter for a use and a population."""
    default = DEFAULTS[use]
    chosen: Weighter = clone(default.margins if isinstance(population, Margins) else default.rows)
    return chosen
