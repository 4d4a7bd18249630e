"""Rows of design weight zero change no weight of the others."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    KnownProbability,
    LabelShiftWeights,
    Tempered,
    TreeWeights,
    Unweighted,
)

RANDOM = np.random.default_rng(0)
M = 120


def rows(n, shift):
    return pd.DataFrame(
        {
            "x": RANDOM.normal(shift, 1, n),
            "z": RANDOM.exponential(size=n).round(2),
            "c": RANDOM.choice(list("abc"), n, p=[0.5, 0.3, 0.2] if shift else [0.2, 0.3, 0.5]),
        }
    )


SAMPLE, POPULATION = rows(M, 0.6), rows(500, 0.0)
LABELS = (SAMPLE["x"] + RANDOM.normal(size=M) > 0.5).astype(int).to_numpy()
DESIGN = RANDOM.uniform(1, 2, M)
FURTHER = {
    "repeated": (SAMPLE.iloc[:40], np.zeros(40, int)),
    "far": (pd.DataFrame({"x": [50.0, -80.0], "z": [1e4, 1e5], "c": ["a", "b"]}), np.zeros(2, int)),
    "unknown": (
        pd.DataFrame({"x": [np.nan, 0.2], "z": [1.0, np.nan], "c": ["new", None]}),
        np.zeros(2, int),
    ),
    "another class": (SAMPLE.iloc[:30], np.full(30, 7)),
}


def third(X):
    return np.full(len(X), 0.3)


@pytest.mark.parametrize("further", FURTHER)
@pytest.mark.parametrize(
    "weighter",
    [
        Unweighted(),
        KnownProbability(third),
        FrequencyWeights(columns=["c"]),
        HistogramWeights(),
        HistogramWeights(strategy="width"),
        ClusterWeights(),
        ClusterWeights(KMeans(4, n_init=1, random_state=0), scaling="range"),
        TreeWeights(min_samples_leaf=10),
        TreeWeights(min_samples_leaf=10, honest=True),
        TreeWeights(min_samples_leaf="bound"),
        KernelMeanMatching(ridge=0.1),
        KernelMeanMatching(method="low-rank", ridge=0.1),
        DensityRatioWeights(),
        DensityRatioWeights("kl"),
        CalibrationWeights(),
        CalibrationWeights(features="means", distance="linear", bounds=(0, None)),
        ClassifierWeights("logistic"),
        ClassifierWeights("logistic", max_weight=1.5),
        AutoWeights(),
        LabelShiftWeights(),
        Tempered(HistogramWeights(), power=0.5, max_weight=1.5),
    ],
    ids=lambda weighter: str(weighter).partition("(probability")[0],
)
def test_rows_without_weight_move_nothing(weighter, further):
    more, labels = FURTHER[further]
    X, y = pd.concat([SAMPLE, more], ignore_index=True), np.append(LABELS, labels)
    design = np.append(DESIGN, np.zeros(len(more)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighter.fit(SAMPLE, LABELS, population=POPULATION, sample_weight=DESIGN)
        before, uncovered = weighter.weights_, weighter.uncovered_
        after = weighter.fit(X, y, population=POPULATION, sample_weight=design).weights_
    assert not after[M:].any()
    assert after[:M] * (M / len(X)) == pytest.approx(before, rel=1e-9, abs=1e-9)
    assert weighter.uncovered_ == pytest.approx(uncovered, abs=1e-12)
