"""The loss of a density ratio, pools, maps of scores and the logistic model of selection."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from unskew.numerics.ratio_loss import (
    LogisticProblem,
    Sided,
    isotonic_map,
    log_ratio_of,
    lowers_loss,
    pool_exponents,
    ratio_loss,
    sigmoid_map,
    without_own_fold,
)
from unskew.numerics.weight_vectors import ratio_cap


def shifted(seed=0, m=300, n=400):
    random = np.random.default_rng(seed)
    return random.normal(0, 1, m), random.normal(0.7, 1, n)


def even(*sides):
    return Sided(*(np.full(len(side), 1 / len(side)) for side in sides))


def test_the_loss_is_that_of_a_balanced_classifier():
    mine, theirs = shifted()
    ratios = Sided(0.7 * mine - 0.245, 0.7 * theirs - 0.245)
    from sklearn.metrics import log_loss

    labels = np.repeat([0, 1], [len(mine), len(theirs)])
    chance = 1 / (1 + np.exp(-np.concatenate(ratios)))
    weight = np.concatenate(even(mine, theirs))
    expected = log_loss(labels, chance, sample_weight=weight)
    assert ratio_loss(ratios, even(mine, theirs)).value == pytest.approx(expected, rel=1e-9)


def test_the_standard_error_of_the_loss_is_its_spread_over_draws():
    found = []
    for seed in range(200):
        mine, theirs = shifted(seed)
        found.append(ratio_loss(Sided(0.7 * mine, 0.7 * theirs), even(mine, theirs)))
    values = np.array([one.value for one in found])
    assert values.std() == pytest.approx(np.mean([one.error for one in found]), rel=0.15)


def test_pool_exponents_minimise_the_loss():
    random = np.random.default_rng(1)
    mine, theirs = shifted(1)
    truth = Sided(0.7 * mine - 0.245, 0.7 * theirs - 0.245)
    noisy = [
        Sided(*(scale * side + random.normal(0, 0.3, len(side)) for side in truth))
        for scale in (1.5, 0.5, -1.0)
    ]
    shares = even(mine, theirs)

    def loss(at):
        sides = (sum(a * one[k] for a, one in zip(at, noisy, strict=True)) for k in (0, 1))
        return ratio_loss(Sided(*sides), shares).value

    found = pool_exponents(noisy, shares)
    reference = minimize(loss, np.full(3, 0.3), bounds=[(0, None)] * 3, tol=1e-12)
    assert loss(found) <= reference.fun + 1e-9
    assert found[2] == 0  # it says the opposite of the truth
    assert found == pytest.approx(reference.x, abs=1e-3)


def test_an_isotonic_map_gives_the_ratio_of_each_level():
    counts = {0.0: (40, 10), 1.0: (30, 30), 2.0: (10, 60)}
    mine = np.repeat(list(counts), [a for a, _ in counts.values()])
    theirs = np.repeat(list(counts), [b for _, b in counts.values()])
    found = isotonic_map(Sided(mine, theirs), even(mine, theirs))(np.array(list(counts)))
    expected = [np.log((b + 0.5) / 100 / ((a + 0.5) / 80)) for a, b in counts.values()]
    assert found == pytest.approx(expected, abs=1e-9)


def test_an_isotonic_map_pools_levels_out_of_order():
    mine, theirs = np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0, 0.0, 1.0, 2.0, 2.0])
    levels = isotonic_map(Sided(mine, theirs), even(mine, theirs)).log_ratios
    assert (np.diff(levels) >= 0).all()
    assert len(levels) == 2


def test_a_sigmoid_map_is_a_logistic_regression_on_the_score():
    mine, theirs = shifted(2)
    shares = even(mine, theirs)
    labels = np.repeat([0, 1], [len(mine), len(theirs)])
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(
        np.concatenate([mine, theirs])[:, None], labels, np.concatenate(shares) * 1000
    )
    at = np.array([-1.0, 0.0, 2.0])
    expected = model.decision_function(at[:, None])
    assert sigmoid_map(Sided(mine, theirs), shares)(at) == pytest.approx(expected, abs=1e-4)


def test_a_noisy_copy_does_not_lower_the_loss():
    mine, theirs = shifted(3)
    truth = Sided(0.7 * mine - 0.245, 0.7 * theirs - 0.245)
    flat = Sided(np.zeros(len(mine)), np.zeros(len(theirs)))
    shares = even(mine, theirs)
    assert lowers_loss(truth, flat, shares)
    assert not lowers_loss(flat, truth, shares)
    assert not lowers_loss(truth, truth, shares)


def selection(seed=0, m=400, n=600, width=4):
    random = np.random.default_rng(seed)
    mine, theirs = random.normal(0.3, 1, (m, width)), random.normal(0, 1, (n, width))
    return (np.column_stack([np.ones(len(side)), side]) for side in (mine, theirs))


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_the_logistic_solution_is_the_minimum(rate, penalty):
    mine, theirs = selection()
    means, share = mine.mean(axis=0), np.full(len(theirs), 1 / len(theirs))

    def objective(beta):
        scores = theirs @ beta
        value = share @ np.logaddexp(0, scores) - rate * means @ beta
        return value + penalty / 2 * beta[1:] @ beta[1:]

    problem = LogisticProblem(theirs, share, means)
    beta, certificate = problem.solve(rate, penalty)
    reference = minimize(objective, np.zeros(len(means)), tol=1e-12)
    assert certificate.converged
    assert certificate.steps <= 15
    assert objective(beta) <= reference.fun + 1e-10
    if penalty == 0:  # without penalty, the weights balance what the model knows
        chances = 1 / (1 + np.exp(-theirs @ beta))
        assert (share * chances) @ theirs == pytest.approx(rate * means, abs=1e-9)


def test_pooled_rows_give_the_ordinary_logistic_regression():
    mine, theirs = selection(1)
    pooled, labels = np.vstack([mine, theirs]), np.repeat([1, 0], [len(mine), len(theirs)])
    share = np.full(len(pooled), 1 / len(pooled))
    beta, _ = LogisticProblem(pooled, share, mine.mean(axis=0)).solve(len(mine) / len(pooled), 0.0)
    model = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky", fit_intercept=False)
    assert beta == pytest.approx(model.fit(pooled, labels).coef_[0], rel=1e-6)


def test_the_ratio_of_the_rate_form():
    scores = np.array([-800.0, 0.0, 800.0])
    assert log_ratio_of(scores, 0.25) == pytest.approx(
        [np.log(0.25) + 800, np.log(0.5), np.log(0.25)]
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_cap_is_the_largest_that_keeps_the_limit(seed):
    random = np.random.default_rng(seed)
    ratios, design = random.lognormal(0, 1.5, 30), random.uniform(0.5, 2, 30)
    limit = random.uniform(1.2, 6)
    cap = ratio_cap(ratios, design, limit)
    cut = np.minimum(ratios, cap)
    assert cap == pytest.approx(limit * np.average(cut, weights=design), rel=1e-9)
    if ratios.max() <= cap:  # the limit of new rows alone
        return
    larger = np.minimum(ratios, cap * 1.001)
    assert larger.max() > limit * np.average(larger, weights=design)


def test_caps_at_the_ends():
    assert ratio_cap(np.array([1.0, 2.0]), np.ones(2), None) == np.inf
    assert ratio_cap(np.ones(3), np.ones(3), 1.0) == pytest.approx(1.0)
    # A limit that no sample row reaches still holds for new rows.
    assert ratio_cap(np.array([1.0, 3.0]), np.ones(2), 10.0) == pytest.approx(20.0)
    assert ratio_cap(np.array([0.0, 0.0, 5.0]), np.ones(3), 2.0) == 5.0


def test_many_features_reach_the_minimum_with_few_hessians():
    random = np.random.default_rng(0)
    features = np.column_stack([np.ones(500), random.normal(size=(500, 250))])
    shares = np.full(500, 1 / 500)
    means = features[random.uniform(size=500) < expit(features[:, 1])].mean(axis=0)
    problem = LogisticProblem(features, shares, means)
    for rate, penalty in ((0.3, 0.1), (0.3, 0.001), (0.9, 0.01)):
        beta, certificate = problem.solve(rate, penalty, tol=1e-9)
        assert certificate.converged
        ridge = np.append(0.0, np.full(250, penalty))
        slope = (shares * expit(features @ beta)) @ features - rate * means + ridge * beta
        assert np.abs(slope).max() < 1e-8


def test_what_is_learned_for_a_fold_does_not_know_its_rows():
    random = np.random.default_rng(0)
    scores, folds = (
        Sided(random.normal(size=12), random.normal(size=20)),
        Sided(np.arange(12) % 3, np.arange(20) % 3),
    )

    def learn(known, shares):
        centre = shares.sample @ known[0].sample
        return lambda given: given[0].map(lambda side: side - centre)

    found = without_own_fold(learn, [scores], even(*scores), folds)
    for number in range(3):
        mean = scores.sample[folds.sample != number].mean()
        for side, given, fold in zip(found, scores, folds, strict=True):
            assert side[fold == number] == pytest.approx(given[fold == number] - mean)


def test_a_fold_outside_of_which_a_side_has_no_rows_gets_what_all_rows_teach():
    scores = Sided(np.array([0.0, 2.0]), np.array([1.0, 3.0]))
    folds = Sided(np.zeros(2, dtype=int), np.array([0, 1]))

    def learn(known, shares):
        return lambda given: given[0].map(lambda side: np.full(len(side), len(known[0].population)))

    found = without_own_fold(learn, [scores], even(*scores), folds)
    assert found.sample.tolist() == [2, 2]
    assert found.population.tolist() == [2, 1]
