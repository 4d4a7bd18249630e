"""The weighters that are saved and loaded."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KnownProbability,
    Tempered,
    TreeWeights,
    Unweighted,
)

WEIGHTERS = {
    "tree": TreeWeights(min_samples_leaf=20),
    "classes": TreeWeights(task="classification", random_state=np.random.RandomState(3)),
    "honest": TreeWeights(min_samples_leaf="bound", honest=True),
    "cluster": ClusterWeights(),
    "own clusterer": ClusterWeights(KMeans(5, n_init=1, random_state=0), scaling="range"),
    "histogram": HistogramWeights(buckets={"income": [-1, 1], "rooms": 3}),
    "width": HistogramWeights(strategy="width", empty="drop"),
    "frequency": FrequencyWeights(),
    "ratio": DensityRatioWeights(),
    "kliep": DensityRatioWeights("kl", tilt=True, kernel="laplace"),
    "laplace": DensityRatioWeights(kernel="laplace", bandwidth="paper", total="population"),
    "calibration": CalibrationWeights(on_infeasible="relax"),
    "bounded": CalibrationWeights(distance="logit", bounds=(0.01, 50), ridge=0.1, max_weight=20),
    "boosted": ClassifierWeights(),
    "logistic": ClassifierWeights("logistic", max_weight=5.0),
    "auto": AutoWeights(calibrate_to="means"),
    "pool of others": AutoWeights(candidates=[TreeWeights(min_samples_leaf=20), ClusterWeights()]),
    "tempered": Tempered(TreeWeights(min_samples_leaf=20), power=0.5),
    "unweighted": Unweighted(),
    "probability": KnownProbability("probability"),
}
