"""What goes into a fit beside the weights, and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.sample import Sample
from unskew.population.summaries import Summary


class Beside(NamedTuple):
    """What else a fit's pass over the population answers."""

    columns: Sequence[str]
    """The columns of X that are read for it, all that the weighter reads among them."""
    asked: Sequence[Summary]


class Fit(NamedTuple):
    """What a fit has seen."""

    sample: Sample
    """With the columns that were weighed by."""
    target: Population | Margins
    """With the same columns."""
    answer: Summary | None
