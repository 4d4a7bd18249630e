"""Cell weights against counts made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from unskew import ClusterWeights, FrequencyWeights, HistogramWeights, Population, TreeWeights
from unskew.errors import OverlapError, OverlapWarning, ParameterError, UnseenValueWarning


def test_tree_weights_are_the_ratio_of_counts_exactly(shift):
    weighter = TreeWeights(total="population")
    weighter.fit(shift.sample, shift.labels, population=shift.population)
    leaves = weighter.tree_.apply(shift.sample.astype(np.float32))
    population_leaves = weighter.tree_.apply(shift.population.astype(np.float32))
    for leaf in np.unique(leaves):
        expected = (population_leaves == leaf).sum() / (leaves == leaf).sum()
        assert (weighter.weights_[leaves == leaf] == expected).all()
    counts = weighter.sample_counts_
    assert counts[counts > 0].min() >= 4
    assert counts.sum() == len(shift.sample)


def test_the_sample_total_is_the_population_total_rescaled(shift):
    def fit(total):
        weighter = TreeWeights(total=total)
        return weighter.fit(shift.sample, shift.labels, population=shift.population).weights_

    assert fit("sample").sum() == pytest.approx(len(shift.sample), rel=1e-12)
    assert fit("population").sum() == pytest.approx(len(shift.population), rel=1e-12)
    ratio = len(shift.sample) / len(shift.population)
    assert np.allclose(fit("sample"), fit("population") * ratio, rtol=1e-14)


@pytest.mark.parametrize(
    "weighter",
    [TreeWeights(), TreeWeights(honest=True), ClusterWeights(), HistogramWeights()],
    ids=lambda weighter: str(weighter),
)
@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_weights_move_the_sample_to_the_population(shift, weighter):
    weighter.fit(shift.sample, shift.labels, population=shift.population)
    before = shift.sample[:, 0].mean() - shift.population[:, 0].mean()
    weighted = np.average(shift.sample[:, 0], weights=weighter.weights_)
    after = weighted - shift.population[:, 0].mean()
    assert before > 0.5
    assert abs(after) < 0.4 * before


def test_tree_weights_approach_the_truth_as_rows_grow():
    """With few broad cells, n_C / m_C converges to 1 / E[p | C], which for a step is 1 / p."""
    random = np.random.default_rng(5)
    population = random.uniform(size=(200_000, 1))
    probability = np.where(population[:, 0] < 0.5, 0.1, 0.6)
    selected = random.uniform(size=len(population)) < probability
    sample = population[selected]
    labels = (sample[:, 0] >= 0.5).astype(float)
    weighter = TreeWeights(total="population", max_leaf_nodes=2)
    weights = weighter.fit(sample, labels, population=population).weights_
    assert weights == pytest.approx(1 / probability[selected], rel=0.03)


def test_an_honest_tree_counts_the_other_half(shift):
    weighter = TreeWeights(honest=True, empty="drop", min_samples_leaf=20, random_state=3)
    weighter.fit(shift.sample, shift.labels, population=shift.population)
    n_counted = int(weighter.sample_counts_.sum())
    assert n_counted == len(shift.sample) // 2
    assert weighter.tree_.tree_.n_node_samples[0] == len(shift.sample) - n_counted
    assert (weighter.weights_ > 0).all()


def test_an_honest_trees_empty_leaves_are_uncovered():
    # 20 labels that separate the rows into leaves of one; half of them hold no counted row.
    values = np.arange(40.0).reshape(-1, 1)
    labels = np.repeat(np.arange(20.0), 2)
    weighter = TreeWeights(honest=True, min_samples_leaf=1, total="population")
    with pytest.warns(OverlapWarning, match="nearest sample row") as caught:
        weighter.fit(values, labels, population=values)
    assert 0 < weighter.uncovered_ < 1
    assert caught[0].message.share == weighter.uncovered_
    assert weighter.population_counts_.sum() == 40
    assert (weighter.weights_ > 0).all()


def test_frequency_weights_count_distinct_points():
    sample = pd.DataFrame({"sex": ["f", "m", "m", "m"], "age": [1, 1, 2, 2]})
    population = pd.DataFrame({"age": [1, 1, 1, 2, 1, 2], "sex": ["f", "f", "f", "m", "m", "m"]})
    weighter = FrequencyWeights(total="population").fit(sample, population=population)
    assert weighter.weights_.tolist() == [3, 1, 1, 1]
    assert weighter.weigh(sample[::-1]).tolist() == [1, 1, 1, 3]


def test_missing_values_are_a_point_of_their_own():
    sample = pd.DataFrame({"a": [1.0, np.nan, np.nan], "b": ["x", None, "x"]})
    population = pl.DataFrame({"a": [1.0, None, None, None], "b": ["x", None, None, "x"]})
    weighter = FrequencyWeights(total="population").fit(sample, population=population)
    assert weighter.weights_.tolist() == [1, 2, 1]


class TestUncovered:
    sample = pd.DataFrame({"town": ["a", "a", "b"], "age": [1.0, 1.0, 9.0]})
    population = pd.DataFrame({"town": ["a", "b", "c", "c"], "age": [1.0, 9.0, 8.0, 1.0]})

    def fit(self, empty, weighter=FrequencyWeights):
        return weighter(empty=empty, total="population").fit(
            self.sample, [0.0, 0.0, 1.0], population=self.population
        )

    def test_merged_rows_count_with_their_nearest_sample_row(self):
        with pytest.warns(OverlapWarning, match=r"50\.0% of the population.*nearest"):
            weighter = self.fit("merge")
        assert weighter.uncovered_ == 0.5
        # (c, 8) is nearest to (b, 9) and (c, 1) to (a, 1): two rows each.
        assert weighter.weights_.tolist() == [1, 1, 2]

    def test_dropped_rows_count_nowhere(self):
        with pytest.warns(OverlapWarning, match="left out"):
            weighter = self.fit("drop")
        assert weighter.uncovered_ == 0.5
        assert weighter.population_counts_.sum() == 2
        assert weighter.weights_.sum() == pytest.approx(4)
        assert weighter.weights_ == pytest.approx([1, 1, 2])

    def test_raising(self):
        with pytest.raises(OverlapError, match=r"50\.0% of the population") as caught:
            self.fit("raise")
        assert caught.value.share == 0.5

    @pytest.mark.parametrize("weighter", [FrequencyWeights, HistogramWeights, ClusterWeights])
    def test_a_category_that_only_the_population_has_is_uncovered_for_all(self, weighter):
        with pytest.warns(OverlapWarning):
            assert self.fit("merge", weighter).uncovered_ == 0.5

    def test_so_it_is_for_a_tree(self):
        weighter = TreeWeights(min_samples_leaf=1, empty="drop")
        with pytest.warns(OverlapWarning):
            weighter.fit(self.sample, [0.0, 0.0, 1.0], population=self.population)
        assert weighter.uncovered_ == 0.5

    def test_new_rows_out_of_reach(self):
        new = pd.DataFrame({"town": ["c", "a"], "age": [9.0, 1.0]})
        with pytest.warns(OverlapWarning), pytest.warns(UnseenValueWarning):
            assert self.fit("merge").weigh(new).tolist() == [2, 1]
        with pytest.warns(OverlapWarning), pytest.warns(UnseenValueWarning):
            assert self.fit("drop").weigh(new) == pytest.approx([0, 1])
        covered = FrequencyWeights(empty="raise").fit(self.sample, population=self.sample)
        with pytest.raises(OverlapError, match="1 of 2 rows"):
            covered.weigh(new)

    def test_little_is_let_pass_without_a_warning(self):
        population = pd.concat([self.sample] * 67 + [self.population.iloc[[2]]])
        weighter = FrequencyWeights().fit(self.sample, population=population)
        assert weighter.uncovered_ == pytest.approx(1 / 202)

    def test_nothing_covered_and_everything_dropped(self):
        weighter = FrequencyWeights(empty="drop")
        with pytest.raises(OverlapError, match=r'empty="drop".*weight zero'):
            weighter.fit(np.zeros((3, 1)), population=np.ones((3, 1)))

    def test_disjoint_supports_still_give_finite_weights(self):
        weighter = HistogramWeights(buckets={0: list(range(10))})
        with pytest.warns(OverlapWarning, match=r"100\.0%"):
            weighter.fit(np.zeros((3, 1)), population=np.full((5, 1), 7.5))
        assert weighter.uncovered_ == 1
        assert weighter.weights_.tolist() == [1, 1, 1]


class TestTreeLabels:
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0]])

    @pytest.mark.parametrize(
        ("labels", "kind"),
        [
            (np.linspace(0, 1, 8), "DecisionTreeRegressor"),
            (list("aabbccdd"), "DecisionTreeClassifier"),
            ([True] * 4 + [False] * 4, "DecisionTreeClassifier"),
            (pd.Series([1, 1, 2, 2, 3, 3, 4, 4]), "DecisionTreeClassifier"),
            (pd.Series(list("aabbccdd"), dtype="category"), "DecisionTreeClassifier"),
            (np.random.default_rng(0).normal(size=(8, 2)), "DecisionTreeRegressor"),
            (pl.Series([1.5] * 4 + [2.5] * 4), "DecisionTreeRegressor"),
        ],
        ids=["floats", "text", "booleans", "classes", "categories", "two outputs", "polars"],
    )
    def test_the_kind_of_tree_follows_the_labels(self, labels, kind):
        weighter = TreeWeights(min_samples_leaf=1).fit(self.X, labels, population=self.X)
        assert type(weighter.tree_).__name__ == kind
        assert weighter.weights_ == pytest.approx(np.ones(8))

    def test_many_whole_numbers_are_a_quantity(self):
        X = np.arange(50.0).reshape(-1, 1)
        weighter = TreeWeights().fit(X, np.arange(50), population=X)
        assert type(weighter.tree_).__name__ == "DecisionTreeRegressor"
        weighter = TreeWeights(task="classification").fit(X, np.arange(50) // 2, population=X)
        assert type(weighter.tree_).__name__ == "DecisionTreeClassifier"

    def test_fractions_are_no_classes(self):
        with pytest.raises(ParameterError, match="classification tree could not be grown"):
            TreeWeights(task="classification", min_samples_leaf=1).fit(
                self.X, np.linspace(0, 1, 8), population=self.X
            )


def test_a_tree_follows_missing_values(shift):
    random = np.random.default_rng(2)
    X, U = shift.sample.copy(), shift.population.copy()
    labels = shift.labels.copy()
    gaps = random.uniform(size=len(X)) < 0.3
    X[gaps, 0] = np.nan
    labels[gaps] += 10  # so that the tree has reason to send gaps one way
    U[: len(U) // 2, 0] = np.nan
    weighter = TreeWeights(total="population").fit(X, labels, population=U)
    assert weighter.uncovered_ == 0
    assert weighter.weights_[gaps].sum() == pytest.approx(len(U) // 2, rel=0.02)


def test_float32_borders_are_routed_as_scikit_learn_routes_them():
    sample = np.array([[0.1], [0.2], [0.3], [0.4]])
    weighter = TreeWeights(min_samples_leaf=1, total="population")
    weighter.fit(sample, [0.0, 1.0, 2.0, 3.0], population=sample)
    borders = weighter.tree_.tree_.threshold
    border = borders[borders > 0][0]
    near = np.nextafter(border, [-1, border, 1]).reshape(-1, 1)
    leaves = weighter.tree_.apply(near)
    cells, _ = weighter.locator_.locate(pa.record_batch({"x0": near[:, 0]}))
    assert np.array_equal(cells, leaves)


def test_design_weights_on_both_sides():
    sample = np.array([[0.0], [0.0], [1.0]])
    population = np.array([[0.0], [1.0]])
    weighter = FrequencyWeights(total="population").fit(
        sample, population=Population(population, weight=[3.0, 7.0]), sample_weight=[1.0, 2.0, 5.0]
    )
    # Cell 0 holds 3 of the population and 1 + 2 of the sample; cell 1 holds 7 and 5.
    assert weighter.weights_ == pytest.approx([1, 2, 7])
    assert weighter.weigh(sample) == pytest.approx([1, 1, 7 / 5])


def test_rows_of_zero_design_weight_stay_at_zero():
    weighter = FrequencyWeights(total="population").fit(
        np.array([[0.0], [0.0], [1.0]]),
        population=np.array([[0.0], [1.0]]),
        sample_weight=[0.0, 2.0, 1.0],
    )
    assert weighter.weights_.tolist() == [0, 1, 1]


def test_nan_in_the_population_where_the_sample_has_none():
    with pytest.warns(OverlapWarning, match=r"33\.3%"):
        weighter = TreeWeights(min_samples_leaf=1).fit(
            np.array([[0.0], [1.0]]), [0.0, 1.0], population=np.array([[0.0], [np.nan], [1.0]])
        )
    assert weighter.uncovered_ == pytest.approx(1 / 3)


class TestLeafSizeByTheBound:
    def fit(self, shift, **parameters):
        weighter = TreeWeights(min_samples_leaf="bound", **parameters)
        return weighter.fit(shift.sample, shift.labels, population=shift.population)

    def test_it_is_one_of_the_sizes_tried_and_the_least_sum(self, shift):
        weighter = self.fit(shift)
        sums = {size: sum(parts) for size, parts in weighter.leaf_sizes_.items()}
        assert weighter.min_samples_leaf_ == min(sums, key=sums.get)
        assert list(sums)[:3] == [4, 8, 16]
        assert max(sums) * 4 <= len(shift.sample)

    def test_the_weights_are_those_of_that_size(self, shift):
        weighter = self.fit(shift)
        same = TreeWeights(min_samples_leaf=weighter.min_samples_leaf_)
        same.fit(shift.sample, shift.labels, population=shift.population)
        np.testing.assert_array_equal(weighter.weights_, same.weights_)
        np.testing.assert_array_equal(weighter.weigh(shift.sample), same.weights_)
        assert weighter.tree_.get_n_leaves() == same.tree_.get_n_leaves()

    def test_what_the_counts_leave_open_falls_with_the_size(self, shift):
        open_ = [parts[0] for parts in self.fit(shift).leaf_sizes_.values()]
        assert open_ == sorted(open_, reverse=True)

    def test_a_population_that_can_be_read_once_is_enough(self, shift):
        chunks = (shift.population[start : start + 500] for start in range(0, 3000, 500))
        weighter = TreeWeights(min_samples_leaf="bound")
        once = weighter.fit(shift.sample, shift.labels, population=chunks).weights_
        np.testing.assert_array_equal(once, self.fit(shift).weights_)

    def test_honest_trees_and_tiny_samples(self, shift):
        assert self.fit(shift, honest=True, random_state=0).min_samples_leaf_ >= 4
        weighter = TreeWeights(min_samples_leaf="bound")
        weighter.fit(shift.sample[:3], shift.labels[:3], population=shift.population)
        assert weighter.min_samples_leaf_ == 3

    def test_even_selection_asks_for_large_leaves_and_steep_for_smaller_ones(self):
        random = np.random.default_rng(0)
        population = random.uniform(size=(20_000, 1))
        sizes = []
        for probability in (0.5, 0.05 + 0.9 * (population[:, 0] * 8 % 1 > 0.5)):
            sample = population[random.uniform(size=20_000) < probability]
            weighter = TreeWeights(min_samples_leaf="bound")
            sizes.append(
                weighter.fit(sample, sample[:, 0], population=population).min_samples_leaf_
            )
        assert sizes[1] < sizes[0]

    def test_refitting_forgets_the_sizes(self, shift):
        weighter = self.fit(shift).set_params(min_samples_leaf=10)
        weighter.fit(shift.sample, shift.labels, population=shift.population)
        assert weighter.min_samples_leaf_ == 10
        assert not hasattr(weighter, "leaf_sizes_")

    def test_other_words_are_refused(self, shift):
        with pytest.raises(ParameterError, match="min_samples_leaf"):
            TreeWeights(min_samples_leaf="best").fit(
                shift.sample, shift.labels, population=shift.population
            )
