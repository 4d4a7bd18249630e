"""Samples that are part of the population, and tests that treat both sides alike."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import unskew
from unskew import Population, diagnose
from unskew.diagnostics.compared_rows import ComparedRows
from unskew.diagnostics.shift_tests import classifier_test, discrepancy_test
from unskew.numerics.row_keys import have_rows_in_common, pair_rows
from unskew.population.reservoir import Reservoir
from unskew.rows.sample import Sample
from unskew.rows.tables import RowBlock, as_rows


def drawn_from(population, selected=None, weight=None, size=20_000):
    reservoir = Reservoir(size)
    batch = as_rows(population, name="population").batch
    ones = np.ones(len(population))
    reservoir.update(RowBlock(batch, ones if weight is None else weight, selected))
    return reservoir


def sides(sample, population, seed=0, family="trees", **options):
    drawn = drawn_from(population, **options)
    drawn.seed = seed
    return ComparedRows.from_reservoir(Sample.from_data(sample), drawn, family=family)


class TestWhichRowsAreShared:
    def test_a_part_of_the_population_is_recognised(self):
        rows = np.random.default_rng(0).normal(size=(300, 3))
        found = sides(rows[100:160], rows)
        assert found.n_shared == 60
        assert len(found.values) == 300
        assert found.population == pytest.approx(np.full(300, 1 / 300))

    def test_in_a_reservoir_of_a_larger_population_too(self):
        rows = np.random.default_rng(0).normal(size=(20_000, 3))
        found = sides(rows[:2000], rows, size=4000)
        assert 330 < found.n_shared < 470  # about 1 in 5

    def test_independent_draws_of_few_values_are_not(self):
        # All 8 combinations of three flags are on both sides by chance.
        for seed in range(20):
            random = np.random.default_rng(seed)
            one, other = random.integers(0, 2, (50, 3)), random.integers(0, 2, (500, 3))
            assert sides(one, other).n_shared == 0

    @pytest.mark.parametrize("mean_count", [0.3, 1.0, 2.0, 6.0])
    def test_nor_of_many_values_that_each_occur_about_once(self, mean_count):
        # Where a value is expected once in the population, most samples' rows are found there.
        for seed in range(20):
            random = np.random.default_rng(seed)
            hashes = [random.integers(0, int(2000 / mean_count), n) for n in (400, 2000)]
            assert not have_rows_in_common(*(h.astype(np.uint64) for h in hashes))

    def test_marks_decide_where_they_are_given(self):
        rows = np.random.default_rng(0).integers(0, 3, size=(200, 2))
        marks = np.arange(200) < 50
        found = sides(rows[:50], rows, selected=marks)
        assert (found.n_shared, len(found.values)) == (50, 200)

    def test_marked_rows_whose_values_were_changed_are_still_the_samples(self):
        rows = np.random.default_rng(0).normal(size=(200, 2))
        found = sides(rows[:50] + 1e-6, rows, selected=np.arange(200) < 50)
        assert (found.n_shared, len(found.values)) == (50, 200)

    def test_a_shared_row_keeps_its_weight_in_the_population(self):
        rows = np.arange(100.0)[:, None]
        weight = np.arange(1.0, 101.0)
        found = sides(rows[:40], rows, weight=weight)
        assert found.population == pytest.approx(weight / weight.sum())

    def test_equal_rows_are_paired_once_each(self):
        mine, theirs = np.array([5, 5, 6], np.uint64), np.array([5, 6, 6, 5, 5], np.uint64)
        pairs = pair_rows(mine, theirs)
        assert sorted(pairs.tolist()) == [-1, -1, 0, 1, 2]
        assert (theirs[pairs >= 0] == mine[pairs[pairs >= 0]]).all()


def subset(seed, slope, n=1000, m=200, d=3):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, d))
    odds = np.exp(slope * rows[:, 0])
    return rows, random.choice(n, m, replace=False, p=odds / odds.sum())


def p_values(pairs, family="trees"):
    """Return the p-values of both tests, as diagnose makes them."""
    found = []
    for seed, (sample, population) in enumerate(pairs):
        both = sides(sample, population, seed, family)
        tests = (discrepancy_test(both), classifier_test(both))
        found.append([test.before.p_value for test in tests])
    return np.array(found)


class TestSampleThatIsPartOfThePopulation:
    def test_p_values_of_a_uniform_sample_are_uniform(self):
        draws = (subset(seed, 0.0, n=400, m=100) for seed in range(60))
        found = p_values(((rows[chosen], rows) for rows, chosen in draws), "smooth")
        for column in found.T:  # their median was 0.9 and more
            assert stats.kstest(column, "uniform").pvalue > 0.01

    def test_bias_is_found_as_often_as_with_other_rows(self):
        draws = [subset(seed, 0.5, n=500, m=100) for seed in range(40)]
        inside = p_values(((rows[chosen], rows) for rows, chosen in draws), "smooth")
        others = (np.random.default_rng(99 + seed).normal(size=(400, 3)) for seed in range(40))
        pairs = zip((rows[chosen] for rows, chosen in draws), others, strict=True)
        apart = p_values(pairs, "smooth")
        assert ((inside < 0.05).mean(axis=0) >= (apart < 0.05).mean(axis=0) - 0.15).all()
        assert (inside[:, 0] < 0.05).mean() > 0.5

    def test_marks_say_what_values_say(self):
        rows, chosen = subset(0, 0.5)
        marks = np.isin(np.arange(len(rows)), chosen)
        found = diagnose(rows[chosen], Population(rows, selected=marks)).bias.mmd
        assert found.before == diagnose(rows[chosen], rows).bias.mmd.before
        assert "as marked" in found.method

    def test_the_statistic_is_the_distance_to_the_whole_population(self):
        # With U = f S + (1 - f) R, the distance of S from U is 1 - f of that from the rest R.
        rows, chosen = subset(0, 1.0)
        rest = np.delete(rows, chosen, axis=0)
        whole = diagnose(rows[chosen], rows).bias.mmd.before
        parts = diagnose(rows[chosen], rest).bias.mmd.before
        assert whole.statistic == pytest.approx(0.8 * parts.statistic, rel=0.02)

    def test_the_whole_population_as_a_sample_differs_by_nothing(self):
        rows = np.random.default_rng(0).normal(size=(300, 3))
        found = diagnose(rows[::-1], rows)
        assert found.verdict.status == "no bias found"
        assert found.bias.mmd.before.statistic == pytest.approx(0, abs=1e-3)
        assert (found.bias.classifier.before.statistic, found.bias.mmd.before.p_value) == (0.5, 1.0)

    def test_what_is_assumed_is_said(self):
        rows, chosen = subset(0, 0.0)
        assert "200 of the population rows examined" in diagnose(rows[chosen], rows).bias.mmd.method
        apart = diagnose(rows[:200] + 1.0, rows)
        assert "drawn apart" in apart.bias.classifier.method


def texts(random, n_categories, n_rows):
    names = np.array([f"c{k:05}" for k in range(n_categories)])
    return pd.DataFrame({"t": names[random.integers(0, n_categories, n_rows)]})


class TestManyCategories:
    @pytest.mark.parametrize("n_categories", [200, 5000])
    def test_unbiased_draws_are_rejected_at_the_nominal_rate(self, n_categories):
        # All of 40 draws were rejected; the benchmark has 500.
        pairs = [
            [texts(random, n_categories, n) for n in (150, 400)]
            for random in map(np.random.default_rng, range(40))
        ]
        rejected = (p_values(pairs) < 0.05).sum(axis=0)
        assert (rejected <= stats.binom.ppf(0.995, 40, 0.05)).all()

    def test_categories_of_a_few_rows_do_not_silence_the_classifier(self):
        # The trees found no split, and every row had the same score: a p-value of exactly 1.
        random = np.random.default_rng(0)
        pairs = [[texts(random, 200, n) for n in (50, 200)] for _ in range(5)]
        assert (p_values(pairs)[:, 1] < 1).all()

    def test_the_side_of_a_row_decides_nothing_in_its_encoding(self):
        random = np.random.default_rng(0)
        one, other = texts(random, 300, 200), texts(random, 300, 200)
        one["x"], other["x"] = random.normal(5, 2, 200), random.normal(0, 1, 200)
        there, back = sides(one, other), sides(other, one)
        swapped = np.concatenate([np.arange(200, 400), np.arange(200)])
        assert (there.categories(np.arange(400)) == back.categories(swapped)).all()
        assert there.points(np.arange(400)) == pytest.approx(back.points(swapped))

    def test_a_category_of_one_side_alone_is_a_category(self):
        one, other = pd.DataFrame({"t": ["a", "b"]}), pd.DataFrame({"t": ["c", None, "d", "a"]})
        codes = sides(one, other).categories(np.arange(6))[:, 0]
        assert len(set(codes)) == 5
        assert codes[0] == codes[5]

    def test_shifted_frequencies_are_found(self):
        random = np.random.default_rng(0)
        names = np.array([f"c{k:03}" for k in range(200)])
        weight = np.repeat([1.0, 3.0], 100) / 400
        sample = pd.DataFrame({"t": names[random.choice(200, 800, p=weight)]})
        population = pd.DataFrame({"t": names[random.integers(0, 200, 3000)]})
        for judge in ("trees", "smooth"):
            found = diagnose(sample, population, judge=judge)
            assert found.bias.mmd.before.p_value < 0.01
            assert found.bias.classifier.before.p_value < 0.01


class TestColumnsWithoutValues:
    @pytest.mark.parametrize("nothing", [None, np.nan, pd.NaT])
    @pytest.mark.parametrize("judge", ["trees", "smooth"])
    def test_a_column_that_is_missing_everywhere_is_named(self, nothing, judge):
        random = np.random.default_rng(0)
        sample, population = (
            pd.DataFrame({"a": random.normal(size=n), "e": [nothing] * n}) for n in (60, 200)
        )
        found = diagnose(sample, population, judge=judge)
        assert found.verdict.status == "no bias found"
        assert "so not compared: e." in str(found)
        assert found.to_markdown()
        assert found.to_html(static=True)

    def test_a_column_that_only_one_row_fills(self):
        random = np.random.default_rng(0)
        for row in range(5):
            sample = pd.DataFrame({"a": random.normal(size=40), "e": np.nan})
            sample.loc[row * 8, "e"] = 1.0
            population = pd.DataFrame({"a": random.normal(size=100), "e": [np.nan] * 100})
            assert diagnose(sample, population).to_json()


class TestOverfittedWeights:
    def test_weights_that_follow_single_rows_are_named(self):
        random = np.random.default_rng(0)
        sample, population = random.normal(size=(400, 5)), random.normal(size=(2000, 5))
        weighter = unskew.KernelMeanMatching(ridge=0.0).fit(sample, population=population)
        found = diagnose(sample, population, weighter)
        after = found.bias.classifier.after
        assert after.high < 0.5
        assert after.p_value < 0.01  # two-sided
        assert found.verdict.status == "not corrected"
        ranked = np.sort(weighter.weights_)[::-1].cumsum() / weighter.weights_.sum()
        half = 1 + int((ranked < 0.5).sum())
        assert found.weights.half_rows == half
        share = round(100 * found.weights.effective_share)
        assert found.verdict.headline == (
            f"The weights are overfitted: {share} % effective sample, {half} rows carry half the "
            "weight."
        )
        assert "a larger ridge" in found.verdict.next_step.settings
        assert "below 0.5 means" in found.bias.classifier.method
        regular = unskew.KernelMeanMatching(ridge=3.0).fit(sample, population=population)
        assert diagnose(sample, population, regular).verdict.status == "no bias found"

    def test_a_weighter_of_new_rows_is_judged_on_rows_held_out(self):
        random = np.random.default_rng(0)
        rows = random.normal(size=(4000, 3))
        sample = rows[random.uniform(size=4000) < 1 / (1 + np.exp(-1.5 * rows[:, 0]))][:1000]
        population = random.normal(size=(3000, 3))
        labels = random.normal(size=1000)  # so that its leaves are random
        tree = unskew.TreeWeights(min_samples_leaf=30).fit(sample, labels, population=population)
        known = diagnose(sample, population, tree, y=labels).bias.classifier
        assert "held out" in known.method
        assert "y" in diagnose(sample, population, tree).bias.classifier.method
        given = diagnose(sample, population, tree.weights_).bias.classifier
        assert given.before == known.before
        assert given.after != known.after

    def test_of_a_large_sample_as_many_rows_are_judged_as_is_said(self, monkeypatch):
        monkeypatch.setattr(unskew.diagnostics.weights, "JUDGED_ROWS", 500)
        random = np.random.default_rng(0)
        sample, population = random.normal(0.5, 1, (4000, 2)), random.normal(size=(3000, 2))
        weighter = unskew.CalibrationWeights().fit(sample, population=population)
        fitted = []
        fit = unskew.CalibrationWeights.fit

        def counting(self, X, *rest, **options):
            fitted.append(len(X))
            return fit(self, X, *rest, **options)

        monkeypatch.setattr(unskew.CalibrationWeights, "fit", counting)
        found = diagnose(sample, population, weighter)
        assert "each fifth of 500 sample rows, drawn uniformly," in found.bias.classifier.method
        assert sum(fitted) == 4 * 500
        assert not found.bias_left

    @pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
    def test_leaves_of_single_rows_fit_no_others(self):
        # Weights that are the population's counts of each row's own surroundings.
        random = np.random.default_rng(1)
        sample, population = random.normal(1.0, 1, (300, 8)), random.normal(size=(3000, 8))
        labels = random.normal(size=300)
        tree = unskew.TreeWeights(min_samples_leaf=1).fit(sample, labels, population=population)
        found = diagnose(sample, population, tree, y=labels)
        assert found.verdict.status in ("not corrected", "not correctable")

    def test_right_weights_are_not_called_overfitted(self):
        overfitted = 0
        for seed in range(8):
            random = np.random.default_rng(seed)
            rows = random.normal(size=(800, 3))
            chance = 1 / (1 + np.exp(-2.5 * rows[:, 0]))
            chosen = random.uniform(size=800) < chance
            found = diagnose(rows[chosen], rows, 1 / chance[chosen], random_state=seed)
            overfitted += "overfitted" in found.verdict.headline
        assert overfitted <= 1


class TestManyColumns:
    def test_memory_is_that_of_the_columns_not_of_their_categories(self):
        # 40 columns of 64 one-hot columns each are 20 MB for 1,000 rows, and there were several.
        random = np.random.default_rng(0)
        names = np.array([f"k{k:03}" for k in range(100)])
        sample, population = (
            pd.DataFrame({f"c{j}": names[random.integers(0, 100, n)] for j in range(40)})
            for n in (100, 1000)
        )
        for judge in ("trees", "smooth"):
            diagnose(sample[:20], population[:50], judge=judge)  # what is imported on the way
            tracemalloc.start()
            diagnose(sample, population, judge=judge)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 40e6
