from __future__ import annotations

import numpy as np
import pytest

from unskew.numerics.joint_region import choose_granularity, estimation_bound, expected_noise
from unskew.theory import worst_case_distance


def test_the_bound_is_the_worst_distance_over_the_weights_sum():
    sample, population = np.array([30.0, 80.0, 55.0]), np.array([100.0, 200.0, 60.0])
    distance = worst_case_distance(
        population_counts=population, sample_counts=sample, norm="l1", delta=0.05
    )
    total = population.sum() / sample.sum()
    assert estimation_bound(sample, population, 0.05) == pytest.approx(distance / total)


def test_noise_is_what_simulated_counts_have():
    random = np.random.default_rng(0)
    n, q = np.array([400, 900]), np.array([0.5, 0.2])
    errors = random.binomial(n, q, size=(4000, 2)) / n / q - 1
    realised = (np.sqrt((errors**2).mean(axis=0)) * n).sum() / n.sum()
    assert expected_noise(n * q, n.astype(float)) == pytest.approx(realised, rel=0.03)


def test_the_finest_that_the_counts_allow_where_coarser_ones_smooth():
    fine = np.array([1.0, 2.0, 3.0, 4.0])
    middle = np.array([1.5, 1.5, 3.5, 3.5])
    coarse = np.full(4, 2.5)
    found = choose_granularity([0.5, 0.2, 0.1], [0.2, 0.1, 0.05], [fine, middle, coarse])
    assert found.smoothing == pytest.approx((0.0, 0.0, 0.3))
    assert found.chosen == 1


def test_the_coarsest_where_nothing_is_smoothed():
    even = np.ones(4)
    assert choose_granularity([0.5, 0.2, 0.1], [0.2, 0.1, 0.05], [even] * 3).chosen == 2


def test_counts_beyond_the_population_are_taken_as_all_of_it():
    assert estimation_bound(np.array([50.0]), np.array([40.0]), 0.05) < 0.2
    assert expected_noise(np.array([50.0]), np.array([40.0])) == 0
