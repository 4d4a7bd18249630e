"""The population as certificates ask it: rows of any engine, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from unskew.numerics.typing import FloatArray
from unskew.population.forms import Form
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.theory.flips import FlipRule, Flips
from unskew.theory.form_test import TheirRows

POPULATION_ROWS = 20_000
"""Rows of the population from which its part of a covariance is estimated; all, if it has fewer."""


@dataclass(frozen=True)
class Asked:
    """What was passed as population=, and the X whose columns are asked for."""

    population: Any
    X: Any

    @property
    def has_rows(self) -> bool:
        """Whether predictions can be made for the population."""
        return self.population is not None and not isinstance(self.population, Margins)

    def _of(self, columns: Sequence[str] | None = None) -> Population:
        sample = Sample.of(self.X)
        names = sample.rows.table.column_names
        wanted = sample if columns is None else sample.select(list(columns))
        return Population.of(self.population).matched(wanted.rows, among=names)

    def flips(
        self, rule: FlipRule, read: Callable[[Any], tuple[FloatArray, FloatArray]]
    ) -> FloatArray:
        """Return the shares of the population that could flip, by one pass over its rows."""
        return self._of().reduce(Flips(rule, read, Form(self.X))).shares

    def rows(self, columns: Sequence[str]) -> TheirRows:
        """Return rows with the columns that were weighed by, and how many there are."""
        population = self._of(columns)
        drawn = population.reduce(Reservoir(POPULATION_ROWS))
        return TheirRows(drawn.rows, drawn.weight / drawn.weight.sum(), population.size)
