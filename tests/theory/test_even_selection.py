"""The headline of a certificate stands only where selection is even within cells."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.kernel_ridge import KernelRidge

from unskew import HistogramWeights, Population, Reweighted, TreeWeights, diagnose
from unskew.theory import certificate

BUCKETS = HistogramWeights(buckets={0: [-1.0, 0.0, 1.0], 1: 1})
LEAVES = TreeWeights()
PLAIN = "With probability 95 %, estimating the weights"


def by_cell(x):
    return np.array([0.2, 0.5, 0.7, 0.4])[np.searchsorted([-1.0, 0.0, 1.0], x[:, 0])]


def within_cells(x):
    return 1 / (1 + np.exp(-x[:, 1]))


def even(x):
    return np.full(len(x), 0.4)


def fitted(weighter, rate, seed, n=700):
    random = np.random.default_rng(seed)
    population = random.normal(size=(n, 2))
    probability = rate(population)
    selected = random.uniform(size=n) < probability
    sample = population[selected]
    labels = np.sin(2 * sample[:, 0]) + sample[:, 1] + 0.2 * random.normal(size=len(sample))
    learner = KernelRidge(kernel="rbf", gamma=0.3)
    model = Reweighted(learner, weighter).fit(sample, labels, population=population)
    perfect = learner.fit(
        sample, labels, sample_weight=model.weighter_.scale_ / probability[selected]
    )
    change = perfect.predict(sample) - model.predict(sample)
    return model, float(np.sqrt(np.average(change**2, weights=model.weights_)))


def test_it_is_qualified_where_selection_varies_within_cells():
    violated = qualified = 0
    for seed in range(25):
        model, change = fitted(BUCKETS, within_cells, seed)
        bound = certificate(model, refits=1)
        violated += change > bound
        qualified += bound.statement.startswith("Only if selection were even within cells")
        assert bound.terms["p-value of even selection within cells"] <= 1
    assert violated >= 20  # the design does break the assumption
    assert qualified >= 24


def test_it_stands_where_selection_is_by_cell():
    draws, kept = 40, 0
    for seed in range(draws):
        bound = certificate(fitted(BUCKETS, by_cell, seed, n=500)[0], refits=1)
        kept += bound.statement.startswith(PLAIN)
    assert kept >= binom.ppf(0.005, draws, 0.95)
    assert "finds no difference" in str(bound)


def test_coarser_cells_are_left_out_where_merging_is_rejected():
    left_out = 0
    for seed in range(20):
        bound = certificate(fitted(LEAVES, within_cells, seed)[0], refits=1)
        left_out += "on coarser cells" not in bound.terms
    assert left_out >= 19
    assert "coarser cells is given: selection differs within them (p = " in str(bound)


def test_coarser_cells_stay_where_selection_is_even():
    draws, kept = 20, 0
    for seed in range(draws):
        bound = certificate(fitted(LEAVES, even, seed)[0], refits=1)
        kept += "on coarser cells" in bound.terms
    assert kept >= binom.ppf(0.005, draws, 0.95)


def test_without_the_rows_it_says_that_nothing_was_tested():
    model = pickle.loads(pickle.dumps(fitted(BUCKETS, by_cell, 0)[0]))
    text = str(certificate(model, refits=1))
    assert text.startswith("If selection is even within cells, which was not tested, with prob")
    assert "kept only in memory after fit" in text


def test_grouped_counts_are_not_rows_to_test_with():
    random = np.random.default_rng(0)
    rows = random.integers(0, 4, size=(900, 1)).astype(float)
    sample = rows[random.uniform(size=900) < 0.4]
    values, counts = np.unique(rows, return_counts=True)
    population = Population(values[:, None], weight=counts)
    model = Reweighted(KernelRidge(kernel="rbf"), HistogramWeights(buckets={0: [0.5, 1.5, 2.5]}))
    model.fit(sample, sample[:, 0], population=population)
    assert "not tested" in certificate(model, refits=1).statement


@pytest.mark.parametrize(("rate", "rejected"), [(by_cell, False), (within_cells, True)])
def test_the_diagnosis_says_so_too(rate, rejected):
    random = np.random.default_rng(1)
    population = pd.DataFrame(random.normal(size=(900, 2)), columns=["a", "b"])
    sample = population[random.uniform(size=900) < rate(population.to_numpy())]
    weighter = HistogramWeights(buckets={"a": [-1.0, 0.0, 1.0], "b": 1})
    found = diagnose(sample, population, weighter.fit(sample, population=population))
    (text,) = [one.statement for one in found.bounds if "the weights differ" in one.statement]
    assert ("Only if selection were even within cells" in text) == rejected
