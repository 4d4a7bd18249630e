"""The population as certificates ask it: rows of any engine, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from unskew.numerics.typing import FloatArray
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.rows.sample import Sample
from unskew.rows.tables import Form
from unskew.theory.assumption_tests import DrawnPopulation
from unskew.theory.flips import FlipRule, Flips

POPULATION_ROWS = 20_000
"""Rows of the population from which its part of a covariance is estimated; all, if it has fewer."""


class PopulationSource:
    """What was passed as population=, and the X whose columns are asked for.

    Parameters
    ----------
    population : Population, Margins, anything that Population takes, or None
    X : array-like or dataframe
    """

    def __init__(self, population: Any, X: Any) -> None:
        self.population, self.X = population, X
        self._kept: Reservoir | None = None

    @property
    def has_rows(self) -> bool:
        """Whether predictions can be made for the population."""
        return self.population is not None and not isinstance(self.population, Margins)

    @cached_property
    def sample(self) -> Sample:
        """X as rows."""
        return Sample.of(self.X)

    @property
    def _names(self) -> list[str]:
        return list(self.sample.rows.table.column_names)

    def _of(self, columns: Sequence[str] | None = None) -> Population:
        wanted = self.sample if columns is None else self.sample.select(list(columns))
        return Population.of(self.population).matched(wanted.rows, among=self._names)

    def flips(
        self, rule: FlipRule, read: Callable[[Any], tuple[FloatArray, FloatArray]]
    ) -> FloatArray:
        """Return the shares of the population that could flip, by one pass over its rows.

        Where :meth:`rows` has returned all of them, with all columns, by none.
        """
        question = Flips(rule, read, Form(self.X))
        if self._kept is not None:
            return self._kept.answer(question).shares
        return self._of().reduce(question).shares

    def rows(self, columns: Sequence[str]) -> DrawnPopulation:
        """Return rows with the columns that were weighed by, and how many there are."""
        population = self._of(columns)
        # If that was the whole population, flips are counted on it: no second pass is needed.
        drawn = population.reduce(Reservoir(POPULATION_ROWS))
        if drawn.whole(population.size) and drawn.rows.schema.names == self._names:
            self._kept = drawn
        return DrawnPopulation(drawn.rows, drawn.weight / drawn.weight.sum(), population.size)
