"""Memory is bounded by what is stated, whatever the sizes of sample and population."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from unskew import AutoWeights, CalibrationWeights, ClassifierWeights, Population
from unskew.weighters import two_samples

BOUND = 2**23


def rows(seed, n_rows, shift=0.0):
    random = np.random.default_rng(seed)
    numbers = random.normal(shift, 1.0, (n_rows, 3))
    towns = np.array(list("abcdefgh"))[random.integers(0, 8, n_rows)]
    return pa.table({**{f"x{j}": numbers[:, j] for j in range(3)}, "town": towns})


POPULATION = [rows(seed, 50_000) for seed in range(4)]


def peak(function):
    """Return the most bytes that are held at a time beyond those that were there before."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(autouse=True)
def lower_bound(monkeypatch):
    monkeypatch.setattr(two_samples, "MEMORY", BOUND)


class TestModels:
    def test_they_take_the_memory_that_is_stated_and_say_what_they_learned_from(self):
        sample = rows(99, 30_000, 0.5)
        weighter = AutoWeights(overlap="ignore")
        weighter.fit(sample[:500], population=POPULATION[0])  # imports
        assert weighter.sample_rows_ == 500
        found = peak(lambda: weighter.fit(sample, population=Population(POPULATION)))
        # Of the sample itself: codes, an order of its rows, hashes, log ratios and weights.
        assert found < 1.5 * BOUND + 160 * len(sample)
        assert weighter.sample_rows_ == weighter.population_rows_ < 12_000
        assert len(weighter.weights_) == len(sample)

    def test_a_part_of_the_sample_teaches_what_the_whole_does(self, monkeypatch):
        sample = rows(99, 40_000, 0.5)
        part = ClassifierWeights("logistic", overlap="ignore").fit(sample, population=POPULATION[0])
        monkeypatch.setattr(two_samples, "MEMORY", 2**30)
        whole = ClassifierWeights("logistic", overlap="ignore").fit(
            sample, population=POPULATION[0]
        )
        assert part.sample_rows_ < 10_000 < whole.sample_rows_ == 40_000
        truth = -0.5 * sum(sample[f"x{j}"].to_numpy() for j in range(3))
        near = [np.corrcoef(np.log(one.weights_), truth)[0, 1] for one in (part, whole)]
        assert near[1] > near[0] > 0.97

    def test_the_part_does_not_depend_on_the_order_of_the_rows(self):
        sample = rows(99, 20_000, 0.5)
        order = np.random.default_rng(0).permutation(len(sample))
        weighter = ClassifierWeights("logistic", overlap="ignore")
        given = weighter.fit(sample, population=POPULATION[0]).weights_
        shuffled = weighter.fit(sample.take(order), population=POPULATION[0]).weights_
        assert shuffled == pytest.approx(given[order], rel=1e-6)

    def test_what_only_the_other_sample_rows_cover_is_covered(self):
        towns = ["a"] * 39_995 + ["rare"] * 5
        sample = rows(99, 40_000, 0.5).set_column(3, "town", pa.array(towns))
        population = sample.slice(20_000)
        weighter = ClassifierWeights("logistic", overlap="ignore").fit(
            sample, population=population
        )
        assert weighter.sample_rows_ < 12_000
        assert weighter.uncovered_ == 0.0
        assert weighter.weights_[-5:].max() < 5 * weighter.weights_.mean()


class TestNewRows:
    def test_weighing_them_takes_little_memory(self):
        towns = pa.array([f"town {number % 50}" for number in range(200_000)])
        new = rows(99, 200_000, 0.5).set_column(3, "town", towns)
        weighter = CalibrationWeights(features="means").fit(new[:5000], population=new[5000:9000])
        assert weighter.weigh(new)[:5000] == pytest.approx(weighter.weights_)
        features = 8 * len(weighter.features_) * len(new)
        assert peak(lambda: weighter.weigh(new)) < features / 2


class TestCalibration:
    def test_features_are_chosen_without_those_of_all_rows(self):
        sample = rows(99, 100_000, 0.3)
        weighter = CalibrationWeights(overlap="ignore")
        weighter.fit(sample[:500], population=POPULATION[0])  # imports
        found = peak(lambda: weighter.fit(sample, population=Population(POPULATION)))
        # With features of all rows to choose from, 146 numbers a row; with those chosen alone, 50.
        assert found < 8 * 70 * len(sample)
        means = np.average(sample["x0"], weights=weighter.weights_)
        assert means == pytest.approx(np.mean([part["x0"] for part in POPULATION]), abs=1e-9)
