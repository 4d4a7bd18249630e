"""The weights for an estimate, and what else it asks of the population, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.errors import InputError
from unskew.estimation.outcome_models import GroupSums
from unskew.numerics.typing import FloatArray
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import OfColumns, Summaries, Summary
from unskew.rows.sample import Sample
from unskew.weighters.base import Fit, Weighter
from unskew.weighters.linearisation import Linearisation

NOISE_ROWS = 20_000
"""Rows of the population from which its own sampling noise is estimated; all, if it has fewer."""


@dataclass(frozen=True)
class Weighed:
    """A sample with its weights, and what the pass has answered beside them."""

    weighter: Weighter
    fit: Fit
    sums: GroupSums | None
    drawn: Reservoir | None
    """Rows of the population; None where it has none, or is known without error."""
    n_rows: int
    """The population's."""
    census: bool = False
    """Whether the population is complete, and its own number is asked for."""

    @property
    def weights(self) -> FloatArray:
        """One weight for each sample row."""
        return self.weighter.weights_

    @cached_property
    def linearisation(self) -> Linearisation | None:
        """How the weights follow the rows; None where only a bootstrap can show it."""
        return self.weighter.linearisation(self.fit.sample)

    @property
    def beyond_itself(self) -> FloatArray:
        """The share of each row's variance that counts: of a census, what it does not stand for."""
        if not self.census:
            return np.ones(len(self.weights))
        whole = self.weights * (self.mass() / self.weights.sum())
        return np.maximum(1.0 - 1.0 / np.maximum(whole, 1e-300), 0.0)

    @cached_property
    def drawn_rows(self) -> pa.RecordBatch:
        """The rows that were drawn of the population, with the columns that were weighed by."""
        assert self.drawn is not None
        return self.select_columns(self.drawn.rows)

    def mass(self) -> float:
        """Return the population's size, or raise that it is not known."""
        return self.fit.target.mass

    def select_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows that were drawn with the columns that were weighed by."""
        return batch.select(self.fit.sample.rows.table.column_names)


def weigh(
    fitted: Weighter,
    given: Sample,
    population: Population | Margins,
    columns: Sequence[str],
    sums: GroupSums | None,
    *,
    census: bool,
    beside: Sequence[OfColumns[Any]] = (),
) -> Weighed:
    """Fit the weights; ask for the sums, and draw rows, in the same pass.

    Parameters
    ----------
    fitted : Weighter
        It is fitted.
    given : Sample
        With all columns of X.
    population : Population or Margins
    columns : sequence of str
        Those of X that ``sums`` needs.
    sums : GroupSums or None
    census : bool
        Whether the population has no sampling noise of its own.
    beside : sequence of OfColumns
        What else the pass answers.
    """
    if not given.in_memory:
        raise InputError("X is a distributed table; replicates need a sample in memory.")
    rows = isinstance(population, Population)
    drawn = Reservoir(NOISE_ROWS) if rows and not census else None
    asked: list[Summary] = [one for one in (sums, drawn) if one is not None]
    if asked:
        weighed_by = fitted._matched(given, population)[0].rows.table.column_names
        needed = {*weighed_by, *columns}
        wide = [name for name in given.rows.table.column_names if name in needed]
        read = weighed_by if needed == set(weighed_by) else wide
        beside = [*beside, OfColumns(read, Summaries(asked))]
    fit = fitted._fit(given, None, population, beside=beside)
    size = population.size if isinstance(population, Population) else 0
    return Weighed(fitted, fit, sums, drawn, size, census)
