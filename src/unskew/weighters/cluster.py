"""Weights by clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.utils.validation import has_fit_parameter

from unskew._compat import HasMethods
from unskew.errors import ParameterError
from unskew.numerics.cell_routing import NearestCentre
from unskew.numerics.typing import FloatArray, IntArray
from unskew.rows.design import LARGEST, Scaling
from unskew.rows.sample import Sample
from unskew.weighters.cells import Cells, CellWeighter, CountedCells


class ClusterWeights(CellWeighter):
    """Weights by counts in the clusters that a scikit-learn clusterer finds in the sample.

    Parameters
    ----------
    clusterer : scikit-learn clusterer with ``predict``, optional
        By default k-means with as many clusters as the square root of the number of distinct
        sample rows with a positive design weight.
    scaling : {"standard", "range", None}, default="standard"
        How numbers are scaled before distances are taken: to mean 0 and variance 1, to [0, 1], or
        not at all. Categories become one-hot columns.
    <CellWeighter parameters>
    <Weighter parameters>
        It seeds the default k-means; a clusterer that is given has its own.

    Attributes
    ----------
    <Weighter attributes>
    clusterer_ : estimator
        The fitted clusterer.
    uncovered_ : float
        The share of the population in clusters without sample rows, or with values that no sample
        row has. Clusters found in the sample are unbounded, so it is mostly the latter.
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

    clusterer: Annotated[Any, HasMethods(["fit", "predict"]), None] = field(
        default=None, kw_only=False
    )
    scaling: Scaling = "standard"

    traits = replace(
        CellWeighter.traits,
        assumes="within a cluster, every row is equally likely to be selected",
    )

    def _cells(self, sample: Sample) -> list[Cells]:
        counting = sample.take(np.flatnonzero(sample.design > 0))  # the others move nothing
        space, points = counting.points(self.scaling)
        space.check_distances(points, side="sample")
        default = self.clusterer is None
        clusterer = self._default(points) if default else clone(self.clusterer)
        try:
            weighted = has_fit_parameter(clusterer, "sample_weight")
            design = {"sample_weight": counting.design} if weighted else {}
            clusterer.fit(points, **design)
        except ValueError as error:
            raise ParameterError(
                f"{type(clusterer).__name__} could not cluster the sample "
                f"(n_samples={len(counting)}): {error}"
            ) from error
        partition = _partition(clusterer, points)
        values = space.transform(sample.batch, side="sample").values
        return [Cells(sample, space, partition, values, self.empty, learned=clusterer)]

    def _choose(self, sample: Sample, counted: Sequence[CountedCells]) -> CountedCells:  # noqa: ARG002
        self.clusterer_ = counted[0].cells.learned
        return counted[0]

    def _default(self, points: FloatArray) -> KMeans:
        n_distinct = len(np.unique(points, axis=0))
        return KMeans(math.isqrt(n_distinct), n_init=3, random_state=self.random_state)


def _partition(clusterer: Any, points: FloatArray) -> Any:
    # What k-means predicts is the nearest centre. Ours finds it in single precision and settles
    # near ties in double: faster, and the same on every machine, also without scikit-learn.
    if type(clusterer) in (KMeans, MiniBatchKMeans):
        return NearestCentre(clusterer.cluster_centers_)
    return _ClusterPartition(clusterer, points)


class _ClusterPartition:
    """The clusters that occur in the sample; a row predicted elsewhere, or as noise, has none."""

    def __init__(self, clusterer: Any, sample: FloatArray) -> None:
        self._clusterer = clusterer
        self.n_cells = max(0, int(clusterer.predict(sample).max())) + 1

    def cells(self, values: FloatArray) -> IntArray:
        cells = np.full(len(values), -1)
        within = np.abs(values).max(axis=1, initial=0.0) < LARGEST  # no distance otherwise
        if within.any():
            labels = self._clusterer.predict(values[within]).astype(np.int64)
            cells[within] = np.where(labels < self.n_cells, np.maximum(labels, -1), -1)
        return cells
