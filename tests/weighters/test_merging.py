"""Where population rows count that lie in no cell with sample rows."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from tests.population.frequencies import frequencies

from unskew import FrequencyWeights, HistogramWeights, Population, TreeWeights
from unskew.errors import InputError, OverlapError, OverlapWarning

pytestmark = pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")


def test_an_unseen_category_is_shared_by_all_that_are_equally_far():
    sample = pd.DataFrame({"t": ["Bonn"] * 50 + ["Aachen"] * 50 + ["Kiel"] * 50})
    population = pd.DataFrame(
        {"t": ["Bonn"] * 100 + ["Aachen"] * 100 + ["Kiel"] * 100 + ["Ulm"] * 300}
    )
    with pytest.warns(OverlapWarning):
        assert frequencies(sample, population) == pytest.approx(np.full(150, 4.0))


def test_it_stays_quick_when_nearly_all_is_unseen():
    random = np.random.default_rng(0)
    names = np.array([f"name {number}" for number in range(20_000)])
    sample = pd.DataFrame({"t": names[random.integers(0, 2500, 3000)]})
    population = pd.DataFrame({"t": names[random.integers(0, 20_000, 50_000)]})
    with pytest.warns(OverlapWarning):
        weights = frequencies(sample, population)
    assert weights.sum() == pytest.approx(50_000)


def test_values_too_large_for_distances():
    with (
        pytest.raises(InputError, match="Column 'x0' of the sample holds values too large"),
        np.errstate(all="ignore"),
    ):
        frequencies([[1e300], [-1e300]], [[5.0]])


def test_up_to_a_thousand_distinct_rows_each_uncovered_row_counts_with_the_nearest():
    random = np.random.default_rng(1)
    sample = random.normal(size=(900, 3)) * [1.0, 5.0, 0.1]
    population = random.normal(0.3, 1.2, size=(4000, 3)) * [1.0, 5.0, 0.1]
    weighter = FrequencyWeights(total="population").fit(sample, population=population)
    scaled = (population[:, None] - sample) / sample.std(axis=0)
    nearest = np.square(scaled).sum(axis=2).argmin(axis=1)
    assert np.array_equal(weighter.weights_, np.bincount(nearest, minlength=900))


class TestManyDistinctRows:
    """Beyond, it counts with a group of rows around the nearest of 1,024 of them."""

    sample = np.sort(np.random.default_rng(2).uniform(size=(8000, 1)), axis=0)

    def counts(self, population, sample=None):
        weighter = FrequencyWeights(total="population", overlap="ignore")
        given = self.sample if sample is None else sample
        return weighter.fit(given, population=population).weights_

    def test_the_group_is_near(self):
        added = self.counts(np.full((500, 1), 0.5))
        assert added.sum() == pytest.approx(500)
        assert np.ptp(self.sample[added > 0]) < 20 / 1024
        assert np.abs(self.sample[added > 0] - 0.5).max() < 20 / 1024
        assert np.allclose(added[added > 0], added.max())  # each cell has one row of the group

    def test_the_order_of_rows_and_the_parts_of_the_population_do_not_matter(self):
        random = np.random.default_rng(3)
        population = random.uniform(-0.1, 1.1, size=(20_000, 1))
        whole = self.counts(population)
        shuffled = random.permutation(len(self.sample))
        parts = np.array_split(population[::-1], 37)
        again = self.counts(iter(parts), self.sample[shuffled])
        assert np.array_equal(again, whole[shuffled])

    def test_new_rows_get_the_mean_weight_of_the_group(self):
        population = np.concatenate([self.sample[::2], np.full((500, 1), 0.5)])
        weighter = FrequencyWeights(total="population", overlap="ignore")
        weights = weighter.fit(self.sample, population=population).weights_
        group = self.counts(np.full((500, 1), 0.5)) > 0
        expected = [weights[group].mean()] * 2
        assert weighter.weigh([[0.5], [0.5]]) == pytest.approx(expected, rel=1e-12)

    def test_equal_points_are_one_group(self):
        """10,000 categories share 64 one-hot columns, so that there are 64 points."""
        names = np.array([f"name {number}" for number in range(10_000)])
        sample = pd.DataFrame({"t": names})
        population = pd.DataFrame({"t": [*names, *["unseen"] * 5000]})
        assert self.counts(population, sample) == pytest.approx(np.full(10_000, 1.5))


@pytest.mark.parametrize("form", ["text and numbers", "histogram", "honest tree"])
def test_the_cost_is_not_the_product_of_sample_and_population(form):
    random = np.random.default_rng(5)
    m, n = 20_000, 40_000
    sample, population = random.normal(0.2, 1.0, (m, 20)), random.normal(size=(n, 20))
    weighter = HistogramWeights(overlap="ignore")
    if form == "text and numbers":
        names = np.array([f"name {number}" for number in range(10_000)])
        sample, population = (
            pd.DataFrame(
                {"t": names[random.integers(0, 10_000, size)], "x": random.normal(size=size)}
            )
            for size in (m, n)
        )
        weighter = FrequencyWeights(overlap="ignore")
    elif form == "honest tree":
        weighter = TreeWeights(honest=True, min_samples_leaf=1, overlap="ignore")
    started = time.process_time()  # of all threads, whatever else the machine does
    weighter.fit(sample, np.sin(np.arange(m)), population=population)
    assert weighter.uncovered_ > 0.25
    assert time.process_time() - started < 8.0


@pytest.mark.parametrize("overlap", ["raise", 0.02])
def test_a_refusal_names_the_share_also_if_nothing_was_merged(overlap):
    random = np.random.default_rng(6)
    sample, population = random.normal(size=(300, 1)), random.normal(size=(5000, 1))
    with pytest.raises(OverlapError, match=r"100\.0% of the population") as caught:
        FrequencyWeights(overlap=overlap).fit(sample, population=Population(population))
    assert caught.value.share == 1.0
