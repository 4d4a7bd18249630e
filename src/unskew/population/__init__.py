"""The population, the sample, and the one-pass summaries of them."""

from unskew.population.about import About as About
from unskew.population.cell_counts import CellCounts as CellCounts
from unskew.population.kernel_sums import KernelSums as KernelSums
from unskew.population.margins import Margins as Margins
from unskew.population.population import Population as Population
from unskew.population.progress import Progress as Progress
from unskew.population.reservoir import Reservoir as Reservoir
from unskew.population.summaries import EncodedRows as EncodedRows
from unskew.population.summaries import Moments as Moments
from unskew.population.summaries import Question as Question
from unskew.population.summaries import Summaries as Summaries
from unskew.population.summaries import Summary as Summary
from unskew.population.summaries import TotalWeight as TotalWeight
from unskew.rows.sample import Sample as Sample
from unskew.rows.tables import RowBlock as RowBlock
