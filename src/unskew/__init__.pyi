# The public names: each line imports one of them from the module that defines it.

from unskew import errors as errors
from unskew import results as results
from unskew import theory as theory
from unskew.diagnostics.diagnose import diagnose as diagnose
from unskew.diagnostics.selection import compare_selection as compare_selection
from unskew.estimation.estimate import estimate as estimate
from unskew.estimation.scores import estimate_score as estimate_score
from unskew.estimation.scores import population_scorer as population_scorer
from unskew.estimation.statistics import Mean as Mean
from unskew.estimation.statistics import Proportion as Proportion
from unskew.estimation.statistics import Quantile as Quantile
from unskew.estimation.statistics import Total as Total
from unskew.estimation.weighing import replicate_weights as replicate_weights
from unskew.learning.choose_power import weighted_risk as weighted_risk
from unskew.learning.conformal import ConformalClassifier as ConformalClassifier
from unskew.learning.conformal_regressor import ConformalRegressor as ConformalRegressor
from unskew.learning.heckman import HeckmanClassifier as HeckmanClassifier
from unskew.learning.heckman import HeckmanRegressor as HeckmanRegressor
from unskew.learning.reweighted import Reweighted as Reweighted
from unskew.learning.trainer import split_labelled as split_labelled
from unskew.numerics.weight_vectors import effective_sample_size as effective_sample_size
from unskew.numerics.weight_vectors import trim_weights as trim_weights
from unskew.population.margins import Margins as Margins
from unskew.population.open_sample import SparkSample as SparkSample
from unskew.population.population import Population as Population
from unskew.population.sample_files import read_margins as read_margins
from unskew.population.sample_files import read_sample as read_sample
from unskew.weighters.auto import AutoWeights as AutoWeights
from unskew.weighters.calibration import CalibrationWeights as CalibrationWeights
from unskew.weighters.classifier import ClassifierWeights as ClassifierWeights
from unskew.weighters.cluster import ClusterWeights as ClusterWeights
from unskew.weighters.density_ratio import DensityRatioWeights as DensityRatioWeights
from unskew.weighters.histogram import FrequencyWeights as FrequencyWeights
from unskew.weighters.histogram import HistogramWeights as HistogramWeights
from unskew.weighters.kernel_mean_matching import KernelMeanMatching as KernelMeanMatching
from unskew.weighters.known_probability import KnownProbability as KnownProbability
from unskew.weighters.known_probability import Unweighted as Unweighted
from unskew.weighters.label_shift import LabelShiftWeights as LabelShiftWeights
from unskew.weighters.storage import load_weighter as load_weighter
from unskew.weighters.storage import save_weighter as save_weighter
from unskew.weighters.tempered import Tempered as Tempered
from unskew.weighters.tree import TreeWeights as TreeWeights

__version__: str
__all__: list[str]
