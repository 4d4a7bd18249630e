"""The population and the one-pass summaries of it."""

from unskew.population.population import Population
from unskew.population.progress import Progress
from unskew.population.summaries import (
    CellCounts,
    EncodedRows,
    KernelSums,
    Moments,
    Reservoir,
    Summary,
    Total,
)

__all__ = [
    "CellCounts",
    "EncodedRows",
    "KernelSums",
    "Moments",
    "Population",
    "Progress",
    "Reservoir",
    "Summary",
    "Total",
]
