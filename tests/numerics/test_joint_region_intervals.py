from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from unskew.numerics.joint_region import binomial_divergence, clopper_pearson, sidak


@pytest.mark.parametrize(("successes", "trials"), [(0, 7), (7, 7), (3, 11), (250, 1000)])
def test_limits_are_those_of_scipys_exact_test(successes, trials):
    lower, upper = clopper_pearson(np.array([successes * 1.0]), np.array([trials * 1.0]), 0.1)
    exact = stats.binomtest(successes, trials).proportion_ci(0.9, method="exact")
    assert lower[0] == pytest.approx(exact.low, abs=1e-12)
    assert upper[0] == pytest.approx(exact.high, abs=1e-12)


@pytest.mark.parametrize("probability", [0.03, 0.2, 0.5, 0.91])
def test_coverage_is_at_least_what_is_asked(probability):
    counts = np.arange(31.0)
    lower, upper = clopper_pearson(counts, np.full(31, 30.0), 0.1)
    inside = (lower <= probability) & (probability <= upper)
    assert stats.binom.pmf(counts, 30, probability)[inside].sum() >= 0.9


def test_independent_intervals_miss_together_as_asked():
    assert (1 - sidak(0.03, 40)) ** 40 == pytest.approx(0.97, abs=1e-14)


def test_divergence_is_the_likelihood_ratio():
    successes, trials = np.array([0.0, 3.0, 8.0]), np.array([8.0, 8.0, 8.0])
    q = np.array([0.2, 0.5, 0.7])
    likelihood = stats.binom.logpmf(successes, 8, successes / 8) - stats.binom.logpmf(
        successes, 8, q
    )
    np.testing.assert_allclose(binomial_divergence(successes, trials, q), likelihood, atol=1e-12)
