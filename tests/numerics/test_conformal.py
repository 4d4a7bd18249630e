"""Weighted conformal quantiles against their definition, and against order statistics."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.numerics.conformal import CrossedScores, ScoreDistribution, adaptive_scores


def by_definition(values, weights, own, coverage):
    """inf{t: the mass of values up to t is at least c (W + w)}, tried at every value."""
    wanted = coverage * (weights.sum() + own) * (1 - 1e-10)
    enough = [t for t in np.unique(values) if weights[values <= t].sum() >= wanted]
    return enough[0] if enough and weights.sum() > 0 else np.inf


@pytest.mark.parametrize("n_rows", [1, 2, 9, 19, 20, 99, 1000])
@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.55, 0.9, 0.95, 0.99])
def test_equal_weights_give_the_order_statistic_of_plain_conformal_prediction(n_rows, coverage):
    scores = np.random.default_rng(0).permutation(np.arange(1.0, n_rows + 1))
    place = int(np.ceil(round(coverage * (n_rows + 1), 9)))
    expected = float(place) if place <= n_rows else np.inf
    for scale in (1.0, 0.3, 1e-200, 1e200):  # weights are known up to their scale
        found = ScoreDistribution.from_scores(scores, np.full(n_rows, scale))
        assert found.quantile(coverage, np.array([scale]))[0] == expected


def test_quantiles_in_groups_are_those_of_each_group_alone():
    random = np.random.default_rng(1)
    for _ in range(50):
        n_rows, n_groups = random.integers(1, 30), random.integers(1, 5)
        scores = random.normal(size=n_rows).round(1)  # with ties
        weights = random.exponential(size=n_rows) * (random.uniform(size=n_rows) < 0.8)
        groups = random.integers(-1, n_groups, size=n_rows)
        distribution = ScoreDistribution.from_scores(scores, weights, groups, int(n_groups))
        own, asked = random.exponential(size=8), random.integers(-1, n_groups, size=8)
        coverage = random.uniform(0.05, 0.95)
        found = distribution.quantile(coverage, own, asked)
        for place in range(8):
            inside = (groups == asked[place]) & (asked[place] >= 0)
            expected = by_definition(scores[inside], weights[inside], own[place], coverage)
            assert found[place] == expected
        reached = distribution.finite_up_to(own, asked)
        assert (np.isinf(found) == (reached < coverage)).all()


def test_crossed_quantiles_are_those_of_all_values_together():
    random = np.random.default_rng(2)
    for trial in range(60):
        n_folds, n_new = random.integers(1, 5), 5
        data = []
        for _ in range(n_folds):
            n_rows = random.integers(1, 15)
            weights = random.exponential(size=n_rows) * (random.uniform(size=n_rows) < 0.8)
            data.append((random.normal(size=n_rows).round(1), weights))
        crossed = CrossedScores([ScoreDistribution.from_scores(*fold) for fold in data])
        centres = random.normal(size=(n_folds, n_new)).round(1 if trial % 2 else 9)
        scales = (
            random.uniform(0.1, 2, size=(n_folds, n_new)) if trial % 3 else np.ones((n_folds, 1))
        )
        scales = np.broadcast_to(scales, (n_folds, n_new))
        own, coverage = 3 * random.exponential(size=n_new), random.uniform(0.05, 0.95)
        found = crossed.quantile(coverage, own, centres, scales)
        weights = np.concatenate([fold[1] for fold in data])
        for row in range(n_new):
            parts = [
                centres[k, row] + scales[k, row] * scores for k, (scores, _) in enumerate(data)
            ]
            # Values that are equal but for rounding are one.
            values = np.concatenate(parts).round(9)
            expected = by_definition(values, weights, own[row], coverage)
            assert found[row] == pytest.approx(expected, abs=1e-8)


def test_crossed_quantiles_of_one_fold_are_plain_ones():
    random = np.random.default_rng(3)
    fold = ScoreDistribution.from_scores(random.normal(size=40), random.exponential(size=40))
    centres, scales = random.normal(size=(1, 100)), random.uniform(0.5, 2, size=(1, 100))
    own = 5 * random.exponential(size=100)
    found = CrossedScores([fold]).quantile(0.8, own, centres, scales)
    expected = centres[0] + scales[0] * fold.quantile(0.8, own)
    assert found == pytest.approx(expected)
    assert np.isinf(found).any()
    assert not np.isinf(found).all()


def test_the_adaptive_score_is_uniform_where_the_probabilities_are_right():
    random = np.random.default_rng(4)
    chances = random.dirichlet(np.ones(4), size=20_000)
    labels = (chances.cumsum(axis=1) > random.uniform(size=(20_000, 1))).argmax(axis=1)
    scores = adaptive_scores(chances)[np.arange(20_000), labels]
    assert np.abs(np.sort(scores) - np.linspace(0, 1, 20_000)).max() < 0.015
    again = adaptive_scores(chances[5:6] + 1e-13)
    assert again == pytest.approx(adaptive_scores(chances)[5:6], abs=1e-9)
