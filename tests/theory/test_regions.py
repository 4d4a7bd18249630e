"""Certificates over the confidence ellipsoid of the weights' parameters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC

from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    Margins,
    Population,
    Reweighted,
)
from unskew.errors import LearnerError, ParameterError
from unskew.theory import certificate
from unskew.theory.regions import gaussian_norm

TILT = np.array([0.6, -0.3])
MEANS = CalibrationWeights(features="means", overlap="ignore")


def draw(seed, m=400, n=800, square=0.0):
    """Draw from densities whose ratio is e^(0.6 x0 - 0.3 x1), or has a square of x0 as well."""
    random = np.random.default_rng(seed)
    population = random.normal(size=(n, 2))
    spread = np.array([1 / np.sqrt(1 - 2 * square), 1.0])
    sample = random.normal(size=(m, 2)) * spread - TILT * spread**2
    ratio = np.exp(sample @ TILT - square * sample[:, 0] ** 2)
    labels = sample.sum(axis=1) + 0.5 * np.sin(3 * sample[:, 0]) + 0.7 * random.normal(size=m)
    return population, sample, labels, ratio


def fitted(data, learner, weighter=MEANS):
    population, sample, labels, _ = data
    return Reweighted(learner, weighter).fit(sample, labels, population=population)


def test_it_holds_as_often_as_it_says():
    draws, failed, kept = 80, 0, 0
    for seed in range(draws):
        data = draw(seed)
        population, sample, labels, ratio = data
        model = fitted(data, Ridge())
        bound = certificate(model, 0.1, X=sample, y=labels, population=population, refits=1)
        other = Ridge().fit(sample, labels, sample_weight=ratio * len(ratio) / ratio.sum())
        change = other.predict(sample) - model.predict(sample)
        failed += np.sqrt(np.average(change**2, weights=model.weights_)) > bound
        kept += bound.statement.startswith("Asymptotically with probability 90 %")
    assert failed <= binom.ppf(0.995, draws, 0.12)
    assert kept >= binom.ppf(0.005, draws, 0.94)


def test_weights_of_another_form_are_found_out():
    rejected = 0
    for seed in range(20):
        data = draw(seed, 800, 1600, square=0.2)
        population, sample, labels, _ = data
        bound = certificate(
            fitted(data, Ridge()), X=sample, y=labels, population=population, refits=1
        )
        rejected += bound.statement.startswith("Only if the weights had the right form")
    assert rejected >= 16


@pytest.mark.parametrize(
    "learner", [KernelRidge(kernel="rbf", gamma=0.3), SVC(C=0.02), LogisticRegression()]
)
@pytest.mark.parametrize(
    "weighter",
    [MEANS, ClassifierWeights("logistic", calibration=None, overlap="ignore")],
    ids=["calibration", "logistic"],
)
def test_other_learners_and_weights(learner, weighter):
    population, sample, labels, ratio = draw(0)
    if not isinstance(learner, KernelRidge):
        labels = labels > 0
    data = population, sample, labels, ratio
    model = fitted(data, learner, weighter)
    bound = certificate(model, X=sample, y=labels, population=population)
    weights = ratio * model.weights_.sum() / ratio.sum()
    other = type(learner)(**learner.get_params()).fit(sample, labels, sample_weight=weights)
    score = "predict" if isinstance(learner, KernelRidge) else "decision_function"
    change = getattr(other, score)(sample) - getattr(model, score)(sample)
    assert np.sqrt(np.average(change**2, weights=model.weights_)) <= bound


def test_known_margins_leave_the_noise_of_the_sample():
    population, sample, labels, _ = draw(0)
    frame = pd.DataFrame(sample, columns=["a", "b"])
    rows = pd.DataFrame(population, columns=["a", "b"])
    margins = Margins(means={"a": population[:, 0].mean(), "b": population[:, 1].mean()})
    model = Reweighted(Ridge(), CalibrationWeights()).fit(frame, labels, population=margins)
    known = certificate(model, X=frame, y=labels, population=margins)
    noisy = certificate(model, X=frame, y=labels, population=rows)
    assert known < noisy
    assert any("known without error" in line for line in known.assumptions)
    assert "was not tested" in known.statement


def test_the_limit_of_a_normal_vector():
    random = np.random.default_rng(0)
    spread = np.array([1.0, 0.5, 0.5, 0.2])
    drawn = np.linalg.norm(random.normal(size=(20_000, 4)) * spread, axis=1)
    for delta in (0.1, 0.05, 0.01):
        limit = gaussian_norm(np.diag(spread**2), delta)
        assert np.quantile(drawn, 1 - delta) <= limit <= 1.6 * np.quantile(drawn, 1 - delta)


def test_what_is_missing_or_not_covered():
    data = draw(0)
    population, sample, labels, _ = data
    model = fitted(data, Ridge())
    with pytest.raises(ParameterError, match="population is needed"):
        certificate(model, X=sample, y=labels)
    given = {"X": sample, "y": labels}
    assert certificate(model, population=Population(population), **given) == pytest.approx(
        float(certificate(model, population=population, **given))
    )
    for weighter in (AutoWeights(overlap="ignore"), ClassifierWeights(overlap="ignore")):
        model = Reweighted(Ridge(), weighter, power=1).fit(sample, labels, population=population)
        with pytest.raises(LearnerError, match="not covered: .*not confined to a known region"):
            certificate(model, X=sample, y=labels, population=population)
