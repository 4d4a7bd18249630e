"""What certificates of all kinds of models share: their sentences, and flipped predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.errors import InputTypeError
from unskew.numerics.typing import FloatArray
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.theory.bound import Bound
from unskew.theory.partitions import CountedCells

BLOCK = 50_000
"""Rows of the population that are transformed at once."""

FLIPPED = "share of the weighted sample whose prediction could flip"
FLIPPED_IN_POPULATION = "share of the population whose prediction could flip"


@dataclass(frozen=True)
class Known:
    """What is known of the weights, in words.

    Attributes
    ----------
    headline : str
        How the statement begins.
    region : str
        What the region is, for the reference.
    assumptions, remarks : tuple of str
    terms : dict
    """

    headline: str
    region: str
    assumptions: tuple[str, ...]
    remarks: tuple[str, ...]
    terms: dict[str, float]


def flips(
    scores: FloatArray,
    reach: FloatArray,
    weights: FloatArray,
    of_population: Callable[[], Iterator[tuple[FloatArray, FloatArray]]],
    *,
    with_population: bool,
) -> tuple[dict[str, float], str]:
    """Return the shares of predictions that could flip, as terms and as a sentence."""
    share = float(np.average(np.abs(scores) <= reach, weights=weights))
    terms = {FLIPPED: share}
    said = f"At most {100 * share:.3g} % of the weighted sample's predictions could flip"
    if with_population:
        counted = [(len(s), int((np.abs(s) <= r).sum())) for s, r in of_population()]
        rows, could = np.sum(counted, axis=0)
        terms[FLIPPED_IN_POPULATION] = float(could / rows)
        said += f", and {100 * could / rows:.3g} % of the population's"
    return terms, f"{said}."


def in_blocks(population: Any) -> Iterator[Any]:
    """Yield the population's rows as the learner takes them."""
    take = population.iloc if hasattr(population, "iloc") else np.asarray(population)
    for start in range(0, len(population), BLOCK):
        yield take[start : start + BLOCK]


def has_rows(population: Any) -> bool:
    """Return whether predictions can be made for the population."""
    if isinstance(population, Population):
        raise InputTypeError(
            "population must be rows as the learner takes them, an array or a dataframe: its "
            "predictions are compared."
        )
    return population is not None and not isinstance(population, Margins)


def weighted_spread(values: FloatArray, weights: FloatArray) -> float:
    """Return the weighted standard deviation."""
    mean = np.average(values, weights=weights)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))


def relative_remark(value: float, spread: float) -> str:
    if not spread:
        return "All predictions are equal."
    return f"That is {value / spread:.2g} times the spread of the predictions, {spread:.3g}."


def dominant_remark(cells: CountedCells, place: int) -> str:
    """Return which cell has the largest part."""
    return (
        f"The largest part comes from cell {cells.names[place]}, of which {cells.sample[place]:.0f}"
        f" of {cells.population[place]:.0f} rows are in the sample."
    )


def coarse_remark(n_cells: int, coarse: Bound) -> str:
    """Return what the certificate on coarser cells is."""
    return (
        f"On {n_cells} coarser cells, if each has one probability of selection: at most "
        f"{coarse.value:.3g}."
    )


def rejected_remark(rejected: CountedCells) -> str:
    """Return why there is no certificate on coarser cells."""
    return (
        f"No bound on {len(rejected.successes)} coarser cells is given: selection differs within "
        f"them (p = {rejected.even.p_value:.2g})."
    )
