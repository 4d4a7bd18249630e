"""Features of calibration that are chosen because the outcome depends on them."""

import numpy as np
import pytest

from unskew import CalibrationWeights, Population, estimate
from unskew.weighters.feature_choice import RIDGE, OutcomeRegression


def rows(n_rows=300, seed=0):
    random = np.random.default_rng(seed)
    features = random.normal(size=(n_rows, 5))
    y = features @ [1.0, 0.0, 0.5, 0.0, 0.0] + random.normal(size=n_rows)
    return features, y[:, None], random.uniform(0.5, 2, n_rows)


def test_the_gain_is_the_score_statistic_of_adding_features():
    features, y, weights = rows()
    shares = weights / weights.sum()
    found = OutcomeRegression(y, features, shares, np.array([True, True, False, False, False]))
    root = np.sqrt(shares)[:, None]

    def squares(columns):
        matrix = root * np.column_stack([np.ones(len(y)), features[:, columns]])
        beta = np.linalg.lstsq(matrix, root * y, rcond=None)[0]
        return float(((root * y - matrix @ beta) ** 2).sum())

    few, effective = squares([0, 1]), 1 / (shares @ shares)
    for added in ([2], [3], [2, 4]):
        own = np.isin(np.arange(5), added)
        expected = effective * (few - squares([0, 1, *added])) / few / len(added)
        assert found.gain(own) == pytest.approx(expected)
    assert found.gain(np.array([True, False, False, False, False])) == 0.0  # one of the base


def test_held_out_errors_are_those_of_fits_without_the_fold():
    features, y, weights = rows(100)
    shares = weights / weights.sum()
    base = np.array([True, False, False, False, False])
    errors = OutcomeRegression(y, features, shares, base).held_out_errors(
        np.array([2, 3]), [0, 1, 2], 5
    )
    standard = (y - shares @ y) / np.sqrt(shares @ (y - shares @ y) ** 2)
    constant = (shares @ standard**2).item()  # the errors leave the squares of y out
    for count, error in enumerate(errors):
        columns = np.column_stack([np.ones(100), features[:, [0, 2, 3][: count + 1]]])
        total = 0.0
        for fold in range(5):
            test = np.arange(100) % 5 == fold
            inner = columns[~test].T @ (columns[~test] * shares[~test, None])
            inner[1:, 1:] += RIDGE * np.eye(count + 1)
            beta = np.linalg.solve(
                inner, columns[~test].T @ (shares[~test, None] * standard[~test])
            )
            total += (shares[test] @ (standard[test] - columns[test] @ beta) ** 2).item()
        assert error + constant == pytest.approx(total)


def draw(seed, *, m=400):
    """Draw a sample selected by x0, whose y is a square: selection alone need not show it."""
    random = np.random.default_rng(seed)
    population, pool = random.normal(size=(1000, 3)), random.normal(size=(20 * m, 3))
    chance = 1 / (1 + np.exp(1 - pool[:, 0]))
    pool = pool[random.uniform(size=len(pool)) < chance * m / chance.sum()]
    return pool, pool[:, 1] ** 2 + 0.3 * random.normal(size=len(pool)), population


def test_an_estimate_matches_what_the_outcome_depends_on():
    X, y, population = draw(0)
    plain = CalibrationWeights(overlap="ignore").fit(X, population=Population(population))
    assert "x1²" not in plain.features_
    found = estimate(X, y, population=population, weighter=CalibrationWeights(overlap="ignore"))
    assert "x1²" in found._basis.weighed.weighter.features_
    weights = found._basis.weighed.weights
    match = np.average(X[:, 1] ** 2, weights=weights)
    assert match == pytest.approx((population[:, 1] ** 2).mean(), abs=1e-6)
    labelled = CalibrationWeights(overlap="ignore").fit(X, y, population=Population(population))
    assert "x1²" not in labelled.features_  # weights alone do not look at labels


def test_an_outcome_of_noise_adds_hardly_any_features():
    added = []
    for seed in range(10):
        X, y, population = draw(seed)
        noise = np.random.default_rng([1, seed]).normal(size=len(y))
        weighter = CalibrationWeights(overlap="ignore")
        found = estimate(X, noise, population=population, weighter=weighter)
        plain = weighter.fit(X, population=Population(population))
        added.append(len(found._basis.weighed.weighter.features_) - len(plain.features_))
    assert np.mean(added) <= 3


def test_a_constant_outcome_changes_nothing():
    X, _, population = draw(0)
    plain = CalibrationWeights(overlap="ignore").fit(X, population=Population(population))
    found = estimate(
        X, np.ones(len(X)), population=population, weighter=CalibrationWeights(overlap="ignore")
    )
    assert found._basis.weighed.weighter.features_ == plain.features_


def test_classes_choose_features_together():
    X, y, population = draw(0)
    classes = np.where(y > 1, "much", np.where(y > 0.3, "some", "none"))
    found = estimate(
        X,
        classes,
        population=population,
        statistic="proportion",
        weighter=CalibrationWeights(overlap="ignore"),
    )
    features = found["much"]._basis.weighed.weighter.features_
    assert any(name.startswith("x1") and name != "x1" for name in features)


def test_a_column_that_is_constant_in_the_sample_comes_last():
    """More columns than may be kept: what no weights can match is not among them."""
    random = np.random.default_rng(0)
    population = random.normal(size=(500, 12))
    population[:, 5] = random.uniform(size=500) < 0.02
    X = random.normal(0.2, 1.0, size=(100, 12))
    X[:, 5] = 0.0
    weighter = CalibrationWeights(overlap="ignore").fit(X, population=Population(population))
    assert "x5" not in weighter.features_
    assert len(weighter.features_) == 10


def with_a_jump(seed, jump):
    """Draw rows of which those above zero come in eight times as often; y jumps there, or not."""
    random = np.random.default_rng(seed)
    pool, population = random.normal(size=(6000, 2)), random.normal(size=(3000, 2))
    pool = pool[random.uniform(size=6000) < np.where(pool[:, 0] > 0, 0.16, 0.02)]
    y = jump * (pool[:, 0] > 0) + pool[:, 1] + random.normal(size=len(pool))
    return pool, y, population


def test_an_estimate_matches_the_shares_beside_a_jump_of_the_outcome():
    """Knots at the sample's quantiles are where the sample is: a bias of 0.16 was left."""
    left = []
    for seed in range(20):
        X, y, population = with_a_jump(seed, 2.0)
        found = estimate(X, y, population=population, weighter=CalibrationWeights(overlap="ignore"))
        left.append(found.value - 1.0)
    assert abs(np.mean(left)) < 0.1
    assert any(name.startswith("x0=below") for name in found.weighter.features_)


def test_the_jump_is_found_to_a_few_rows():
    """Cuts at every fortieth of the sample are six rows apart, one in nine of the lower half."""
    cuts = []
    for seed in range(20):
        X, y, population = with_a_jump(seed, 4.0)
        found = estimate(X, y, population=population, weighter=CalibrationWeights(overlap="ignore"))
        bands = [name for name in found.weighter.features_ if name.startswith("x0=below ")]
        cuts += [float(name.removeprefix("x0=below ")) for name in bands]
    assert len(cuts) >= 18
    assert np.median(np.abs(cuts)) < 0.03


def test_steps_are_rarely_found_where_there_is_no_jump():
    found = 0
    for seed in range(20):
        X, y, population = with_a_jump(seed, 0.0)
        one = estimate(X, y, population=population, weighter=CalibrationWeights(overlap="ignore"))
        found += any("=" in name for name in one.weighter.features_)
    assert found <= 3
