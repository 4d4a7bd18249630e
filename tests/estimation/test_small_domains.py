"""Intervals of few rows, and of heavy tails."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from tests.estimation.helpers import MEANS

from unskew import FrequencyWeights, estimate

pytestmark = pytest.mark.filterwarnings("ignore:The effective sample size")


def drawn(seed, noise):
    """A biased sample whose population's mean is zero, and the population."""
    random = np.random.default_rng(seed)
    pool = random.normal(size=(900, 2))
    X = pool[random.uniform(size=900) < 0.66 / (1 + np.exp(-pool[:, 0]))]
    return X, X[:, 0] + noise(random, len(X)), random.normal(size=(1000, 2))


def test_one_row_has_no_interval():
    X, y, population = drawn(0, lambda random, n: random.normal(size=n))
    groups = np.where(np.arange(len(X)) == 7, "one", "rest")
    found = estimate(X, y, population=population, weighter=MEANS, by=groups)
    one = found["one"]
    assert one.value == pytest.approx(y[7])
    assert one.interval == (-np.inf, np.inf)
    assert np.isnan(one.standard_error)
    assert "no interval" in str(one)
    assert "One row or cluster has no variance" in str(found)
    assert "has no variance" not in str(found["rest"])
    plain = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert plain["interval"] == [None, None]
    share = estimate(X, y > 0, population=population, weighter=MEANS, by=groups)["one"]
    assert share.interval == (0.0, 1.0)


def test_two_rows_have_a_wide_interval():
    # One yes, one no: Wilson's of two rows, whatever a regression makes of their residuals.
    X, y, population = drawn(1, lambda random, n: random.normal(size=n))
    yes = y > 0
    first, second = np.flatnonzero(yes)[3], np.flatnonzero(~yes)[3]
    groups = np.full(len(X), "rest")
    groups[[first, second]] = "two"
    found = estimate(X, yes, population=population, weighter=MEANS, by=groups)["two"]
    assert found.interval[1] - found.interval[0] > 0.7
    mean = estimate(X, y, population=population, weighter=MEANS, by=groups)["two"]
    assert mean.degrees_of_freedom == pytest.approx(1.0, abs=0.01)
    assert mean.interval[1] - mean.interval[0] > 5 * abs(y[first] - y[second])


def test_a_row_alone_in_its_cell_counts_with_its_deviation():
    X = np.array([["a"]] * 40 + [["b"]])
    y = np.r_[np.tile([-1.0, 1.0], 20), 5.0]
    population = np.array([["a"]] * 80 + [["b"]] * 20)
    common = {"population": population, "weighter": FrequencyWeights(), "finite_population": True}
    found = estimate(X, y, **common)
    # Its weight is 0.2 of all, and it stands for 20 of the population.
    alone = 0.2 * (5.0 - found.value) * (1 - 1 / 20) ** 0.5
    assert found.standard_error == pytest.approx(alone, rel=0.05)
    assert "alone in their cell" in str(found)
    assert estimate(X, y, variance="m_estimator", **common).standard_error < 0.2


@pytest.mark.parametrize("share", [False, True])
def test_domains_of_few_rows_are_covered(share):
    covered = {size: [] for size in (3, 5, 8, 20)}
    for seed in range(150):
        X, y, population = drawn(seed, lambda random, n: random.normal(size=n))
        y = (y > 1.0).astype(float) if share else y
        truth = 0.2398 if share else 0.0  # P(N(0, 2) > 1)
        codes = np.repeat(np.arange(5), [3, 5, 8, 20, len(y) - 36])
        found = estimate(X, y, population=population, weighter=clone(MEANS), by=codes)
        for code, size in enumerate(covered):
            low, high = found[code].interval
            covered[size].append(low <= truth <= high)
    # Of 150 intervals that each hold in 95 %, fewer than 134 do in one of 1,000 runs.
    assert all(sum(held) >= 134 for held in covered.values()), covered


def test_intervals_of_skewed_numbers_hold():
    held = []
    for seed in range(150):
        X, y, population = drawn(seed, lambda random, n: random.pareto(2.5, n) - 1 / 1.5)
        found = estimate(X, y, population=population, weighter=clone(MEANS))
        held.append(found.interval[0] <= 0 <= found.interval[1])
        assert found.interval[1] - found.value > found.value - found.interval[0]
    assert sum(held) >= 137  # symmetric intervals hold in 90 %: 137 or more in one run of four


def test_tails_without_a_variance_are_noted():
    noted = 0
    for seed in range(40):
        X, y, population = drawn(seed, lambda random, n: random.pareto(1.2, n))
        found = estimate(X, y, population=population, weighter=clone(MEANS))
        noted += "so heavy a tail" in str(found)
        groups = estimate(X, y, population=population, weighter=clone(MEANS), by=X[:, 1] > 0)
        if "so heavy a tail" in str(groups[True]):
            assert "so heavy a tail ('True')" in str(groups)
        share = estimate(X, y > 20, population=population, weighter=clone(MEANS))
        assert "tail" not in str(share)
    assert noted >= 28
