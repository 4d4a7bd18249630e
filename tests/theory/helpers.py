"""A population in cells, and models fitted to a sample of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from unskew import CalibrationWeights, HistogramWeights, Reweighted

BUCKETS = HistogramWeights(buckets={0: [-1.0, 0.0, 1.0], 1: 1, 2: 1})


def ridge(**parameters):
    return KernelRidge(**{"kernel": "rbf", "gamma": 0.3, "alpha": 1.0, **parameters})


def draw_cells(seed=0, n=2500):
    """Draw from a population whose probability of selection is constant in four cells."""
    random = np.random.default_rng(seed)
    population = random.normal(size=(n, 3))
    place = np.searchsorted([-1.0, 0.0, 1.0], population[:, 0], side="right")
    probability = np.array([0.2, 0.5, 0.7, 0.4])[place]
    selected = random.uniform(size=n) < probability
    sample = population[selected]
    labels = np.sin(2 * sample[:, 0]) + sample[:, 1] + 0.2 * random.normal(size=len(sample))
    return population, sample, labels, probability[selected]


def fitted(cells, learner=None, weighter=BUCKETS):
    population, sample, labels, _ = cells
    model = Reweighted(ridge() if learner is None else learner, weighter)
    return model.fit(sample, labels, population=population)


TILT = np.array([0.6, -0.3])


class Drawn(NamedTuple):
    """A sample and a population."""

    sample: np.ndarray
    population: np.ndarray


def by_ratio(seed, m=300, n=600, square=0.0):
    """Return a sample and a population whose density ratio is log-linear, or has a square."""
    random = np.random.default_rng(seed)
    spread = np.array([1 / np.sqrt(1 - 2 * square), 1.0])
    sample = random.normal(size=(m, 2)) * spread - TILT * spread**2
    return Drawn(sample, random.normal(size=(n, 2)))


def raking():
    """Return weights of the form of that ratio."""
    return CalibrationWeights(features="means", overlap="ignore")
