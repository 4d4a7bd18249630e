# What functions return: each line imports a class from the module that defines it.

from unskew.diagnostics.diagnosis import Diagnosis as Diagnosis
from unskew.diagnostics.selection import SelectionComparison as SelectionComparison
from unskew.estimation.results import ColumnOdds as ColumnOdds
from unskew.estimation.results import Estimate as Estimate
from unskew.estimation.results import Estimates as Estimates
from unskew.estimation.results import OddsBounds as OddsBounds
from unskew.estimation.results import Sensitivity as Sensitivity
from unskew.estimation.results import SurveyBias as SurveyBias
from unskew.learning.selection_model import HeckmanSummary as HeckmanSummary
from unskew.overlap.overlap import Overlap as Overlap
from unskew.overlap.overlap import OverlapRule as OverlapRule
from unskew.population.progress import Progress as Progress
from unskew.population.summaries import Summary as Summary
from unskew.weighters.label_shift import LabelShiftTest as LabelShiftTest

__all__: list[str]
