from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import DBSCAN, Birch, BisectingKMeans, KMeans, MeanShift
from sklearn.mixture import GaussianMixture

from unskew import ClusterWeights
from unskew.errors import InputError, ParameterError


@pytest.mark.parametrize(
    "clusterer",
    [
        KMeans(4, n_init=1, random_state=0),
        Birch(n_clusters=3),
        GaussianMixture(3, random_state=0),
        MeanShift(bin_seeding=True, cluster_all=False),
    ],
    ids=lambda clusterer: type(clusterer).__name__,
)
@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_any_clusterer_that_predicts(shift, clusterer):
    weighter = ClusterWeights(clusterer, total="population", scaling=None)
    weighter.fit(shift.sample[:300], population=shift.population[:800])
    assert weighter.weights_.sum() == pytest.approx(800)
    labels = weighter.clusterer_.predict(shift.sample[:300])
    population_labels = weighter.clusterer_.predict(shift.population[:800])
    if weighter.uncovered_ == 0:
        for label in np.unique(labels):
            expected = (population_labels == label).sum() / (labels == label).sum()
            assert weighter.weights_[labels == label] == pytest.approx(expected)


def test_a_clusterer_that_cannot_predict_is_refused():
    with pytest.raises(ParameterError, match="'clusterer' parameter.*predict"):
        ClusterWeights(DBSCAN()).fit(np.zeros((3, 1)), population=np.zeros((3, 1)))


def test_more_clusters_than_rows():
    with pytest.raises(ParameterError, match=r"KMeans could not cluster.*n_samples=3"):
        ClusterWeights(KMeans(5)).fit(np.eye(3), population=np.eye(3))


def test_rows_that_a_clusterer_calls_noise():
    class Core(BaseEstimator):
        """One cluster around zero; the rest is noise."""

        def fit(self, X):
            return self

        def predict(self, X):
            return np.where(np.abs(X[:, 0]) < 1, 0, -1)

    sample = np.array([[0.0], [0.1], [0.2], [50.0]])
    weighter = ClusterWeights(Core(), scaling=None, total="population")
    weighter.fit(sample, population=sample[:3])
    assert weighter.cells_[3] == -1
    assert np.isfinite(weighter.weights_).all()


@pytest.mark.parametrize("clusterer", [None, BisectingKMeans(3, random_state=0)])
def test_a_row_too_far_for_distances_is_in_no_cluster(clusterer, shift):
    population = shift.population.copy()
    population[:30] = [[1e300, 0.0, 0.0]] * 15 + [[0.0, -1e308, 0.0]] * 15
    weighter = ClusterWeights(clusterer, empty="drop", overlap="ignore")
    with np.errstate(all="raise"):
        weighter.fit(shift.sample, population=population)
    assert weighter.uncovered_ == pytest.approx(30 / len(population))
    with pytest.raises(InputError, match="Column 'x0' of the population holds values too large"):
        weighter.set_params(empty="merge").fit(shift.sample, population=population)
