"""Weights by clusters."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.utils.validation import has_fit_parameter

from unskew._compat import HasMethods, StrOptions
from unskew.errors import ParameterError
from unskew.numerics.nearest_centre import NearestCentre
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.encode import FeatureSpace, Scaling
from unskew.weighters.base import Sample
from unskew.weighters.cells import Cells, CellWeighter, Empty, Partition
from unskew.weighters.typing import OnUncovered, Total


class ClusterWeights(CellWeighter):
    """Weights by counts in the clusters that a scikit-learn clusterer finds in the sample.

    Parameters
    ----------
    clusterer : scikit-learn clusterer with ``predict``, optional
        By default k-means with as many clusters as the square root of the number of distinct
        sample rows.
    scaling : {"standard", "range", None}, default="standard"
        How numbers are scaled before distances are taken: to mean 0 and variance 1, to [0, 1], or
        not at all. Categories become one-hot columns.
    empty : {"merge", "drop", "raise"}, default="merge"
        What becomes of population rows in clusters without sample rows, or with values that no
        sample row has: they are counted with the nearest sample row's, left out, or refused. The
        first two warn when it is more than 1 % of the population.
    total : {"sample", "population"}, default="sample"
        What the weights sum to: the number of sample rows, or the population's size.
    overlap : {"warn", "raise", "ignore"} or float, default="warn"
        What to do where the sample does not reach part of the population. "warn" if the method
        leaves more than 1 % of it uncovered, or if regions without sample rows hold more than 5 %
        of it; "raise" an ``OverlapError`` at 1 % and 5 %, a number at that share of either.
        ``overlap_`` tells in words which regions. "ignore" also saves the time that looking for
        them takes.
    random_state : int, RandomState instance or None, default=0
        For the default k-means; a clusterer that is given has its own.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
    overlap_ : Overlap or None
        Which part of the population the sample does not reach, and where; None if ignored.
    clusterer_ : estimator
        The fitted clusterer.
    uncovered_ : float
        The share of the population that no sample row can stand for. Clusters found in the sample
        reach to infinity, so here it counts mostly values that only the population has.
    cells_ : ndarray of shape (n_samples,)
        The cluster of each row.
    sample_counts_, population_counts_ : ndarray of shape (n_cells,)
        How many rows are in each cluster.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from unskew import ClusterWeights
    >>> sample = [[0.0], [0.1], [0.2], [5.0]]
    >>> population = [[0.0], [0.2], [4.9], [5.1]]
    >>> weighter = ClusterWeights(KMeans(2, n_init=1, random_state=0))
    >>> weighter.fit(sample, population=population).weights_
    array([0.66666667, 0.66666667, 0.66666667, 2.        ])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CellWeighter._parameter_constraints,
        "clusterer": [HasMethods(["fit", "predict"]), None],
        "scaling": [StrOptions({"standard", "range"}), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        clusterer: Any = None,
        *,
        scaling: Scaling = "standard",
        empty: Empty = "merge",
        total: Total = "sample",
        overlap: OnUncovered = "warn",
        random_state: Any = 0,
    ) -> None:
        self.clusterer = clusterer
        self.scaling = scaling
        self.empty = empty
        self.total = total
        self.overlap = overlap
        self.random_state = random_state

    def _cells(self, sample: Sample) -> Cells:
        space = FeatureSpace(scaling=self.scaling).fit(sample.rows.batch)
        points = space.transform(sample.rows.batch, side="sample").values
        clusterer = self._default(points) if self.clusterer is None else clone(self.clusterer)
        try:
            weighted = has_fit_parameter(clusterer, "sample_weight")
            design = {"sample_weight": sample.design} if weighted else {}
            self.clusterer_ = clusterer.fit(points, **design)
        except ValueError as error:
            raise ParameterError(
                f"{type(clusterer).__name__} could not cluster the sample "
                f"(n_samples={len(sample)}): {error}"
            ) from error
        return Cells(space, _partition(self.clusterer_, points), np.arange(len(sample)))

    def _default(self, points: FloatArray) -> KMeans:
        n_distinct = len(np.unique(points, axis=0))
        return KMeans(math.isqrt(n_distinct), n_init=3, random_state=self.random_state)


def _partition(clusterer: Any, points: FloatArray) -> Partition:
    # What k-means predicts is the nearest centre; this says it alike on every machine.
    if type(clusterer) in (KMeans, MiniBatchKMeans):
        return NearestCentre(clusterer.cluster_centers_)
    return _ClusterPartition(clusterer, points)


class _ClusterPartition:
    """The clusters that occur in the sample; a row predicted elsewhere, or as noise, has none."""

    def __init__(self, clusterer: Any, sample: FloatArray) -> None:
        self._clusterer = clusterer
        self.n_cells = max(0, int(clusterer.predict(sample).max())) + 1

    def cells(self, values: FloatArray) -> IntArray:
        labels = self._clusterer.predict(values).astype(np.int64)
        return np.where(labels < self.n_cells, np.maximum(labels, -1), -1)
