"""What certificates of all kinds of models share: their sentences, and flipped predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.numerics.typing import FloatArray
from unskew.theory.bound import Bound
from unskew.theory.partitions import CountedCells

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


def flipped_remark(shares: dict[str, float]) -> str:
    """Return a sentence on the shares of predictions that could flip."""
    said = f"At most {100 * shares[FLIPPED]:.3g} % of the weighted sample's predictions could flip"
    if FLIPPED_IN_POPULATION in shares:
        said += f", and {100 * shares[FLIPPED_IN_POPULATION]:.3g} % of the population's"
    return f"{said}."


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


def dominant_terms(cells: CountedCells, place: int) -> dict[str, float]:
    """Return the cell that has the largest part, and its counts."""
    return {
        "dominant cell": cells.names[place],
        "its sample count": cells.sample[place],
        "its population count": cells.population[place],
    }


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
