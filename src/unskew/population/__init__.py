"""The population and the one-pass summaries of it."""

from unskew.population.population import Population
from unskew.population.summaries import (
    CellCounts,
    EncodedRows,
    Moments,
    Reservoir,
    Summary,
    Total,
)

__all__ = [
    "CellCounts",
    "EncodedRows",
    "Moments",
    "Population",
    "Reservoir",
    "Summary",
    "Total",
]
