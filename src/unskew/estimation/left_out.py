"""How much each column that is seen changes the odds of selection: what a hidden one might do."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from unskew.errors import UnskewError
from unskew.estimation.hidden_selection import population_scale
from unskew.estimation.sensitivity import ColumnOdds
from unskew.estimation.weighing import NOISE_ROWS, Weighed
from unskew.numerics.typing import FloatArray
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir

MOST_ROWS = 0.95
"""The share of rows for which a typical change holds."""
_WEIGHT = "unskew design weight"


def odds_of_columns(
    weighed: Weighed, *, nested: bool
) -> tuple[tuple[ColumnOdds, ...], tuple[str, ...]]:
    """Return how much odds change if each column is left out, and what could not be done.

    Weights are fitted again without the column, to margins or to at most 20,000 rows of the
    population.
    """
    names = list(weighed.weighter.columns_)
    if not weighed.weighter._corrects_columns:
        return (), ("Weights that do not go by columns change with none that is left out.",)
    if not weighed.weighter._estimates:
        return (), ("Known weights were not fitted to columns, so that none can be left out.",)
    try:
        known, whole = _population(weighed), weighed.weights
        if isinstance(known, pa.Table) and len(known) < weighed.n_rows:
            whole = _weights(weighed, known, names)
    except UnskewError as error:
        return (), (f"No column was left out for comparison: {error}",)
    scale = population_scale(weighed) * weighed.weights.sum() if nested else 0.0
    found, notes = [], []
    for name in names:
        others = [one for one in names if one != name]
        try:
            without = _weights(weighed, known, others)
        except UnskewError as error:
            notes.append(f"'{name}' could not be left out for comparison: {error}")
            continue
        found.append(_compared(name, whole, without, scale))
    return tuple(found), tuple(notes)


def _population(weighed: Weighed) -> pa.Table | Margins:
    """Return margins, or a part of the population's rows that stands for all, with weights."""
    target = weighed.fit.target
    if isinstance(target, Margins):
        return target
    drawn = weighed.drawn if weighed.drawn is not None else target.reduce(Reservoir(NOISE_ROWS))
    table = pa.Table.from_batches([weighed.select_columns(drawn.rows)])
    share = drawn.weight * (target.mass / drawn.weight.sum())
    return table.append_column(_WEIGHT, pa.array(share))


def _weights(weighed: Weighed, known: pa.Table | Margins, columns: list[str]) -> FloatArray:
    """Return the weights by some of the columns."""
    sample = weighed.fit.sample
    if not columns:
        return sample.design
    weighter = clone(weighed.weighter)
    chosen = {name: "shared" for name in weighter.get_params() if name.endswith("columns")}
    weighter.set_params(**chosen, overlap="ignore")
    if isinstance(known, pa.Table):  # without further columns: those without names go by position
        known = Population(known.select([*columns, _WEIGHT]), weight=_WEIGHT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit with all columns has said what there is to say
        weighter._fit(sample.select(columns), None, known)
    return weighter.weights_


def _compared(name: str, whole: FloatArray, without: FloatArray, scale: float) -> ColumnOdds:
    """Return by which factor odds differ; with a scale, those of inverse probabilities."""
    one, other = whole / whole.sum(), without / without.sum()
    if scale:
        one, other = np.maximum(scale * one - 1.0, 0.0), np.maximum(scale * other - 1.0, 0.0)
    kept = (one > 0) & (other > 0)
    if not kept.any():
        return ColumnOdds(name, 1.0, 1.0)
    ratios = np.exp(np.abs(np.log(one[kept]) - np.log(other[kept])))
    typical = np.sort(ratios)[int(np.ceil(MOST_ROWS * len(ratios))) - 1]
    return ColumnOdds(name, float(ratios.max()), float(typical))
