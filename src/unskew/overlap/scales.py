"""A sample that a step of a pipeline has scaled, beside a population that it has not.

A scaler leaves its mark: a mean of 0 and a standard deviation of 1, or a largest absolute value of
1. A sample that was only selected has neither but by chance, and a population that the same step
has scaled stays near. So both must be there, in most of the columns, before anything is said.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unskew.errors import ColumnWarning, warn_caller
from unskew.numerics.typing import FloatArray
from unskew.population.column_names import listing
from unskew.population.kinds import Kind, as_doubles, kind_of
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.population.summaries import Summary

_FEWEST_ROWS = 10
_EXACT = 1e-3
_APART, _WIDER = 5.0, 10.0
"""On another scale: so many standard deviations apart, or so many times as wide."""


class ScaleCheck:
    """Compares columns that look scaled with rows drawn from the population.

    ``asked`` is what the fit's pass is to answer: nothing where columns do not look scaled.
    """

    def __init__(self, sample: Sample, population: Population) -> None:
        schema = sample.batch.schema
        numbers = [name for name in schema.names if kind_of(schema.field(name).type) == Kind.NUMBER]
        with np.errstate(over="ignore", invalid="ignore"):  # the largest doubles have no sum
            values = {name: _finite(sample.batch, name) for name in numbers}
            scaled = {name: one for name, one in values.items() if _looks_scaled(one)}
        self._scaled = scaled if 2 * len(scaled) >= len(numbers) else {}
        self._numbers, self._drawn = numbers, Reservoir(1000)
        drawn = not self._scaled or population.draw(self._drawn)
        self.asked: list[Summary] = [] if drawn else [self._drawn]

    def warn(self) -> None:
        """Warn if most columns are on another scale in the population."""
        if not self._scaled or self._drawn.rows is None:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            theirs = {name: _finite(self._drawn.rows, name) for name in self._numbers}
            many = [name for name, values in theirs.items() if len(np.unique(values)) > 2]
            far = [one for one in many if one in self._scaled and self._is_far(one, theirs[one])]
        if far and 2 * len(far) >= len(many):
            warn_caller(
                ColumnWarning(
                    f"X looks scaled, and the population does not: in X alone, {listing(far)} have "
                    "mean 0 and standard deviation 1, or a range that ends at 1. A scaler that "
                    "comes before in a pipeline transforms X and not the population. Weigh rows as "
                    "they are, scale the population by the same step, or put the scaler beside a "
                    "learner: Reweighted(make_pipeline(scaler, learner), weighter).",
                    far,
                )
            )

    def _is_far(self, name: str, theirs: FloatArray) -> bool:
        mine = self._scaled[name]
        apart, wider = abs(theirs.mean() - mine.mean()) / mine.std(), theirs.std() / mine.std()
        return bool(apart > _APART or not 1 / _WIDER < wider < _WIDER)


def _finite(rows: pa.RecordBatch, name: str) -> FloatArray:
    values: FloatArray = as_doubles(rows.column(name)).to_numpy(zero_copy_only=False)
    return values if np.isfinite(values.sum()) else values[np.isfinite(values)]


def _looks_scaled(values: FloatArray) -> bool:
    """Whether a column has a scaler's mark and, unlike indicators, holds fractions."""
    if len(values) < _FEWEST_ROWS:
        return False
    standard = abs(values.mean()) < _EXACT and abs(values.std() - 1) < _EXACT
    if not standard and abs(max(-values.min(), values.max()) - 1) > 1e-9:
        return False
    return bool((values != np.round(values)).any())
