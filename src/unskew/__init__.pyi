# The public names: each line imports one of them from the module that defines it.

from unskew import theory as theory
from unskew.diagnostics.diagnose import diagnose as diagnose
from unskew.diagnostics.diagnosis import Diagnosis as Diagnosis
from unskew.errors import ColumnWarning as ColumnWarning
from unskew.errors import EstimateWarning as EstimateWarning
from unskew.errors import InputError as InputError
from unskew.errors import InputFileError as InputFileError
from unskew.errors import InputTypeError as InputTypeError
from unskew.errors import LearnerError as LearnerError
from unskew.errors import OverlapError as OverlapError
from unskew.errors import OverlapWarning as OverlapWarning
from unskew.errors import ParameterError as ParameterError
from unskew.errors import SkippedFilesWarning as SkippedFilesWarning
from unskew.errors import UnreadableFileError as UnreadableFileError
from unskew.errors import UnseenValueWarning as UnseenValueWarning
from unskew.errors import UnskewError as UnskewError
from unskew.estimation.estimate import estimate as estimate
from unskew.estimation.replicate_weights import replicate_weights as replicate_weights
from unskew.estimation.results import Estimate as Estimate
from unskew.estimation.results import Estimates as Estimates
from unskew.estimation.scorer import population_scorer as population_scorer
from unskew.estimation.scores import estimate_score as estimate_score
from unskew.learning.reweighted import Reweighted as Reweighted
from unskew.learning.risk import weighted_risk as weighted_risk
from unskew.numerics.trimming import trim_weights as trim_weights
from unskew.numerics.weight_vectors import effective_sample_size as effective_sample_size
from unskew.overlap.overlap import Overlap as Overlap
from unskew.overlap.overlap import OverlapRule as OverlapRule
from unskew.population.known_levels import CollapsedLevelsWarning as CollapsedLevelsWarning
from unskew.population.margin_files import read_margins as read_margins
from unskew.population.margins import Margins as Margins
from unskew.population.population import Population as Population
from unskew.population.progress import Progress as Progress
from unskew.population.sample_files import read_sample as read_sample
from unskew.population.spark_sample import SparkSample as SparkSample
from unskew.population.summaries import Summary as Summary
from unskew.weighters.auto import AutoWeights as AutoWeights
from unskew.weighters.calibration import CalibrationWeights as CalibrationWeights
from unskew.weighters.classifier import ClassifierWeights as ClassifierWeights
from unskew.weighters.cluster import ClusterWeights as ClusterWeights
from unskew.weighters.density_ratio import DensityRatioWeights as DensityRatioWeights
from unskew.weighters.frequency import FrequencyWeights as FrequencyWeights
from unskew.weighters.histogram import HistogramWeights as HistogramWeights
from unskew.weighters.kernel_mean_matching import KernelMeanMatching as KernelMeanMatching
from unskew.weighters.known_probability import KnownProbability as KnownProbability
from unskew.weighters.storage import load_weighter as load_weighter
from unskew.weighters.storage import save_weighter as save_weighter
from unskew.weighters.tempered import Tempered as Tempered
from unskew.weighters.tree import TreeWeights as TreeWeights
from unskew.weighters.unweighted import Unweighted as Unweighted

__version__: str
__all__: list[str]
