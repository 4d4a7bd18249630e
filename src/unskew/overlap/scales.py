"""A sample that a step of a pipeline has scaled, beside a population that it has not.

A scaler leaves its mark: a mean of 0 and a standard deviation of 1, or a largest absolute value of
1. A sample that was only selected has neither but by chance, and a population that the same step
has scaled stays near. So both must be there, in most of the columns, before anything is said.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unskew.errors import ColumnWarning, listing, warn_caller
from unskew.numerics.typing import FloatArray
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import Summary
from unskew.rows.kinds import Kind, as_doubles, kind_of
from unskew.rows.sample import Sample

_FEWEST_ROWS = 10
_EXACT = 1e-3
_APART, _WIDER = 5.0, 10.0
"""On another scale: so many standard deviations apart, or so many times as wide."""


class ScaleCheck:
    """Compares columns that look scaled with rows drawn from the population.

    ``asked`` is what the fit's pass is to answer: nothing where columns do not look scaled.
    """

    def __init__(self, sample: Sample, population: Population) -> None:
        kinds = zip(sample.batch.schema.names, sample.batch.schema.types, strict=True)
        self._numbers = [name for name, kind in kinds if kind_of(kind) == Kind.NUMBER]
        self._drawn, values = Reservoir(1000), _finite(sample.batch, self._numbers)
        scaled = {name: one for name, one in values.items() if _looks_scaled(one)}
        self._scaled = scaled if 2 * len(scaled) >= len(values) else {}
        drawn = not self._scaled or population.draw(self._drawn)
        self.asked: list[Summary] = [] if drawn else [self._drawn]

    def warn(self) -> None:
        """Warn if most columns are on another scale in the population."""
        if not self._scaled or self._drawn.rows is None:
            return
        in_population = _finite(self._drawn.rows, self._numbers)
        many = {name: one for name, one in in_population.items() if len(np.unique(one)) > 2}
        far = [one for one in many if one in self._scaled and _is_far(self._scaled[one], many[one])]
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


@np.errstate(over="ignore", invalid="ignore")  # the largest doubles have no sum
def _finite(rows: pa.RecordBatch, names: list[str]) -> dict[str, FloatArray]:
    found = {name: as_doubles(rows.column(name)).to_numpy(zero_copy_only=False) for name in names}
    return {k: v if np.isfinite(v.sum()) else v[np.isfinite(v)] for k, v in found.items()}


@np.errstate(over="ignore", invalid="ignore")
def _is_far(in_sample: FloatArray, in_population: FloatArray) -> bool:
    apart, wider = (
        abs(in_population.mean() - in_sample.mean()) / in_sample.std(),
        in_population.std() / in_sample.std(),
    )
    return bool(apart > _APART or not 1 / _WIDER < wider < _WIDER)


@np.errstate(over="ignore", invalid="ignore")
def _looks_scaled(values: FloatArray) -> bool:
    """Whether a column has a scaler's mark and, unlike indicators, holds fractions."""
    if len(values) < _FEWEST_ROWS:
        return False
    standard = abs(values.mean()) < _EXACT and abs(values.std() - 1) < _EXACT
    if not standard and abs(max(-values.min(), values.max()) - 1) > 1e-9:
        return False
    return bool((values != np.round(values)).any())
