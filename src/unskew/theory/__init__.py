"""Every bound of the paper, corrected and computable, and certificates for fitted models.

The paper is Cortes, Mohri, Riley and Rostamizadeh, *Sample Selection Bias Correction Theory*, ALT
2008. Each of its results is one function that returns a :class:`Bound`; ``form="paper"`` is the
formula as printed, ``form="corrected"`` (the default) as it should read. docs/guarantees.md
explains the guarantees and maps every statement of the paper to its function.
"""

from __future__ import annotations

from unskew.numerics.eigenvalue_brackets import (
    Bracket,
    gaussian_product,
    largest_eigenvalue,
    smallest_eigenvalue,
)
from unskew.theory.bound import Bound
from unskew.theory.certificate import certificate
from unskew.theory.cluster import cluster_bound, cluster_distance_bound
from unskew.theory.dual import dual_certificate
from unskew.theory.effective_sample_size import importance_weighting_bound
from unskew.theory.frequency import frequency_bound, frequency_distance_bound
from unskew.theory.kernel_mean_matching import (
    kmm_bound,
    kmm_distance_bound,
    mean_matching_bound,
    prefer_clusters_over_kmm,
    rounding_floor,
)
from unskew.theory.mean_certificate import mean_distance
from unskew.theory.posterior import Intervals, cell_intervals, worst_case_distance
from unskew.theory.regularisation import (
    lambda_of_kernel_ridge,
    lambda_of_svr,
    lipschitz_constant,
)
from unskew.theory.stability import (
    distance,
    removal_bound,
    risk_bound,
    stability_coefficient,
)

__all__ = [
    "Bound",
    "Bracket",
    "Intervals",
    "cell_intervals",
    "certificate",
    "cluster_bound",
    "cluster_distance_bound",
    "distance",
    "dual_certificate",
    "frequency_bound",
    "frequency_distance_bound",
    "gaussian_product",
    "importance_weighting_bound",
    "kmm_bound",
    "kmm_distance_bound",
    "lambda_of_kernel_ridge",
    "lambda_of_svr",
    "largest_eigenvalue",
    "lipschitz_constant",
    "mean_distance",
    "mean_matching_bound",
    "prefer_clusters_over_kmm",
    "removal_bound",
    "risk_bound",
    "rounding_floor",
    "smallest_eigenvalue",
    "stability_coefficient",
    "worst_case_distance",
]
