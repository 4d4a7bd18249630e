import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from unskew.diagnostics.shift_tests import (
    N_RESAMPLES,
    classifier_two_sample_test,
    discrepancy,
    flipped,
    kernel_matrix,
    swapped,
)
from unskew.numerics.ratio_loss import weighted_auc


def sides_of(m, r):
    """Return the masses of m rows of the sample and r others of the population."""
    mine = (np.arange(m + r) < m).astype(float)
    return mine, 1 - mine


class TestMMD:
    def test_the_statistic_is_the_distance_between_the_mean_features(self):
        random = np.random.default_rng(0)
        points, others = random.normal(size=(40, 2)), random.normal(1, size=(60, 2))
        kernel = kernel_matrix(np.concatenate([points, others]), seed=0)
        K = kernel.astype(float)
        a, b = random.uniform(size=40), random.uniform(size=60)
        a, b = a / a.sum(), b / b.sum()
        squared = a @ K[:40, :40] @ a - 2 * a @ K[:40, 40:] @ b + b @ K[40:, 40:] @ b
        sides = np.append(a, np.zeros(60)), np.append(np.zeros(40), b)
        found = discrepancy(kernel, *sides, flipped, 0)
        assert found.statistic == pytest.approx(np.sqrt(squared), rel=1e-3)

    def test_categories_count_as_one_hot_columns_do(self):
        random = np.random.default_rng(0)
        points, codes = random.normal(size=(80, 2)), random.integers(0, 300, size=(80, 3))
        codes[:40] %= 3
        one_hot = [codes[:, [j]] == np.unique(codes[:, j]) for j in range(3)]
        sides = sides_of(30, 50)
        found = discrepancy(kernel_matrix(points, codes, seed=0), *sides, swapped, 0)
        expected = kernel_matrix(np.hstack([points, *one_hot]), seed=0)
        other = discrepancy(expected, *sides, swapped, 0)
        assert found.statistic == pytest.approx(other.statistic, rel=1e-5)
        assert found.p_value == pytest.approx(other.p_value, abs=0.005)

    def test_permutation_p_values_are_uniform_under_one_distribution(self):
        p_values = []
        for seed in range(150):
            draws = np.random.default_rng(seed).normal(size=(90, 3))
            kernel = kernel_matrix(draws, seed=seed)
            p_values.append(discrepancy(kernel, *sides_of(30, 60), swapped, seed).p_value)
        assert stats.kstest(p_values, "uniform").pvalue > 0.01

    def test_wild_bootstrap_holds_its_level_for_given_weights(self):
        # Known probabilities of selection, inverse weights: the weighted sample is right.
        found = 0
        for seed in range(150):
            random = np.random.default_rng(seed)
            rows = random.normal(size=(600, 2))
            chance = 1 / (1 + np.exp(-rows[:, 0]))
            chosen = random.uniform(size=600) < chance
            both = np.concatenate([rows[chosen], random.normal(size=(300, 2))])
            mine, theirs = sides_of(int(chosen.sum()), 300)
            mine[mine > 0] = 1 / chance[chosen]
            kernel = kernel_matrix(both, seed=seed)
            found += discrepancy(kernel, mine, theirs, flipped, seed).p_value < 0.05
        assert stats.binomtest(found, 150, 0.05, alternative="greater").pvalue > 0.01

    def test_a_shift_is_found(self):
        random = np.random.default_rng(0)
        sides = sides_of(200, 300)
        rows = random.normal(size=(500, 2)) + 0.5 * sides[0][:, None]
        kernel = kernel_matrix(rows, seed=0)
        for resample in (swapped, flipped):
            assert discrepancy(kernel, *sides, resample, 0).p_value == 1 / (1 + N_RESAMPLES)

    def test_equal_rows_differ_by_nothing(self):
        kernel = kernel_matrix(np.ones((12, 1)), seed=0)
        comparison = discrepancy(kernel, *sides_of(5, 7), swapped, 0)
        assert comparison.statistic == pytest.approx(0, abs=1e-3)
        assert comparison.p_value == 1.0


class TestAreaUnderTheCurve:
    def test_it_is_scikit_learns(self):
        random = np.random.default_rng(0)
        scores, weight = random.normal(size=200).round(1), random.uniform(size=200)
        positive = random.uniform(size=200) < 0.4
        expected = roc_auc_score(positive, scores, sample_weight=weight)
        found = weighted_auc(scores, weight * positive, weight * ~positive)[0]
        assert found == pytest.approx(expected)

    def test_standard_errors_are_those_of_a_simulation(self):
        areas, errors, null_errors, shuffled = [], [], [], []
        for seed in range(400):
            random = np.random.default_rng(seed)
            positive = np.arange(150) < 50
            scores = random.normal(size=150) + positive
            weight = random.uniform(0.5, 2, size=150)
            sides = weight * positive, weight * ~positive
            area, error, null_error = weighted_auc(scores, *sides)
            areas.append(area)
            errors.append(error)
            null_errors.append(null_error)
            shuffled.append(weighted_auc(random.permutation(scores), *sides)[0])
        assert np.std(areas) == pytest.approx(np.mean(errors), rel=0.1)
        assert np.std(shuffled) == pytest.approx(np.mean(null_errors), rel=0.1)

    @pytest.mark.parametrize("family", ["trees", "smooth"])
    def test_both_families_find_a_shift_and_no_bias_where_there_is_none(self, family):
        random = np.random.default_rng(0)
        is_sample = np.arange(900) < 300
        even = random.normal(size=(900, 3))
        shifted = even + 0.8 * is_sample[:, None] * np.array([1, 0, 0])
        options = {"categories": np.zeros(3, dtype=bool), "seed": 0}
        sides = sides_of(300, 600)
        found, _ = classifier_two_sample_test(family, shifted, *sides, **options)
        # Two normals at distance d have an area of Φ(d / √2) between them.
        best = stats.norm.cdf(0.8 / np.sqrt(2))
        assert best - 0.06 < found.statistic < best + 0.03
        assert found.low < found.statistic < found.high
        assert found.p_value < 1e-6
        nothing, _ = classifier_two_sample_test(family, even, *sides, **options)
        assert nothing.p_value > 0.01  # a model judged on rows that it had seen would be sure

    @pytest.mark.parametrize("family", ["trees", "smooth"])
    def test_equal_rows_tie(self, family):
        random = np.random.default_rng(0)
        towns = [random.choice(2, 800, p=[0.8, 0.2]), random.choice(3, 1000, p=[0.5, 0.47, 0.03])]
        town = np.concatenate(towns)
        rows = town[:, None].astype(float) if family == "trees" else np.eye(3)[town]
        options = {"categories": np.array([True]), "seed": 0}
        found, log_odds = classifier_two_sample_test(family, rows, *sides_of(800, 1000), **options)
        for one in range(3):  # one score for each of the three folds that are scored
            assert len(np.unique(log_odds[(town == one) & np.isfinite(log_odds)])) <= 3
        mine, theirs = (np.bincount(side, minlength=3) / len(side) for side in towns)
        area = mine[0] * theirs[1:].sum() + mine[1] * theirs[2] + mine @ theirs / 2
        assert found.statistic == pytest.approx(area, abs=0.03)

    def test_a_row_is_scored_by_models_of_earlier_folds_alone(self):
        random = np.random.default_rng(3)
        # On this the level rests; docs/report.md has what was measured.
        rows, sides = random.normal(size=(300, 2)), sides_of(100, 200)
        options = {"categories": np.zeros(2, dtype=bool), "seed": 0}
        _, before = classifier_two_sample_test("smooth", rows, *sides, **options)
        scored = np.flatnonzero(np.isfinite(before))
        assert len(scored) == 180  # the first two folds of five train only
        moved = rows.copy()
        moved[scored[0]] += 0.5
        _, after = classifier_two_sample_test("smooth", moved, *sides, **options)
        changed = np.isfinite(before) & (before != after)
        assert changed[scored[0]]
        # A fold of 60 is judged before its rows train, so the other 59 keep their scores.
        assert (~changed[scored]).sum() >= 59

    def test_too_few_rows_give_no_result(self):
        found, _ = classifier_two_sample_test(
            "trees", np.zeros((4, 1)), np.arange(4) < 1, np.ones(4), categories=[False], seed=0
        )
        assert np.isnan(found.statistic)
        assert found.p_value == 1.0
