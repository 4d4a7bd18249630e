"""Every bound of the paper, corrected and computable, and certificates for fitted models.

The paper is Cortes, Mohri, Riley and Rostamizadeh, *Sample Selection Bias Correction Theory*, ALT
2008. Each of its results is one function that returns a :class:`Bound`; ``form="paper"`` is the
formula as printed, ``form="corrected"`` (the default) as it should read. docs/guarantees.md
explains the guarantees and maps every statement of the paper to its function.

Examples
--------
>>> from unskew.theory import frequency_bound
>>> print(frequency_bound.__doc__.splitlines()[0])
Lemma 3: the error of every estimated probability of selection at once.
"""

from __future__ import annotations

from unskew.numerics.kernel_matrix import Bracket as Bracket
from unskew.numerics.kernel_matrix import gaussian_product as gaussian_product
from unskew.numerics.kernel_matrix import largest_eigenvalue as largest_eigenvalue
from unskew.numerics.kernel_matrix import smallest_eigenvalue as smallest_eigenvalue
from unskew.theory.bound import Bound as Bound
from unskew.theory.cell_bounds import Intervals as Intervals
from unskew.theory.cell_bounds import cell_intervals as cell_intervals
from unskew.theory.cell_bounds import cluster_bound as cluster_bound
from unskew.theory.cell_bounds import cluster_distance_bound as cluster_distance_bound
from unskew.theory.cell_bounds import frequency_bound as frequency_bound
from unskew.theory.cell_bounds import frequency_distance_bound as frequency_distance_bound
from unskew.theory.cell_bounds import worst_case_distance as worst_case_distance
from unskew.theory.certificate import certificate as certificate
from unskew.theory.certificate import dual_certificate as dual_certificate
from unskew.theory.stability import distance as distance
from unskew.theory.stability import lambda_of_kernel_ridge as lambda_of_kernel_ridge
from unskew.theory.stability import lambda_of_svr as lambda_of_svr
from unskew.theory.stability import lipschitz_constant as lipschitz_constant
from unskew.theory.stability import removal_bound as removal_bound
from unskew.theory.stability import risk_bound as risk_bound
from unskew.theory.stability import stability_coefficient as stability_coefficient
from unskew.theory.weighting_bounds import discriminative_bound as discriminative_bound
from unskew.theory.weighting_bounds import (
    discriminative_distance_bound as discriminative_distance_bound,
)
from unskew.theory.weighting_bounds import (
    importance_weighting_bound as importance_weighting_bound,
)
from unskew.theory.weighting_bounds import kmm_bound as kmm_bound
from unskew.theory.weighting_bounds import kmm_distance_bound as kmm_distance_bound
from unskew.theory.weighting_bounds import mean_distance as mean_distance
from unskew.theory.weighting_bounds import mean_matching_bound as mean_matching_bound
from unskew.theory.weighting_bounds import prefer_clusters_over_kmm as prefer_clusters_over_kmm
from unskew.theory.weighting_bounds import rounding_floor as rounding_floor


def __getattr__(name: str) -> object:
    if name == "hidden_selection_certificate":
        raise AttributeError(
            f"{name} was removed. estimate(...).sensitivity() says how strong hidden selection "
            "would have to be."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = sorted(
    name for name, value in globals().items() if callable(value) and not name.startswith("_")
)
