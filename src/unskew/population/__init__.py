"""The population, the sample, and the one-pass summaries of them."""

from unskew.population.about import About
from unskew.population.kernel_sums import KernelSums
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.progress import Progress
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.population.summaries import (
    CellCounts,
    EncodedRows,
    Moments,
    Question,
    RowBlock,
    Summaries,
    Summary,
    Total,
)

__all__ = [
    "About",
    "CellCounts",
    "EncodedRows",
    "KernelSums",
    "Margins",
    "Moments",
    "Population",
    "Progress",
    "Question",
    "Reservoir",
    "RowBlock",
    "Sample",
    "Summaries",
    "Summary",
    "Total",
]
