"""Intervals of biased estimates, and of shares."""

import numpy as np
import pytest
from scipy.stats import binom, norm, t

from unskew.numerics.design_variance import half_width, heavy_tail, share_interval, skewed_ends


@pytest.mark.parametrize(("bias", "degrees"), [(0.0, 5.0), (0.4, 5.0), (2.0, np.inf)])
def test_an_interval_holds_a_biased_estimate(bias, degrees):
    # By the distribution of |T + b|; twice the error and the bias have twice the width.
    half = half_width(1.0, degrees, 0.9, bias)
    assert t.cdf(half - bias, degrees) - t.cdf(-half - bias, degrees) == pytest.approx(0.9)
    assert half_width(2.0, degrees, 0.9, 2 * bias) == pytest.approx(2 * half)
    assert half_width(0.0, degrees, 0.9, bias) == bias


@pytest.mark.parametrize("share", [0.003, 0.2, 0.5, 0.97])
def test_the_ends_solve_wilsons_equation(share):
    n, times = 80.0, 1.96
    for end in share_interval(share, times * np.sqrt(share * (1 - share) / n), times, 10.0):
        assert (share - end) ** 2 == pytest.approx(times**2 * end * (1 - end) / n, rel=1e-9)


def test_all_rows_or_none_have_the_interval_of_the_effective_size():
    low, high = share_interval(1.0, 0.0, 2.0, 36.0)
    assert (low, high) == (pytest.approx(0.9), 1.0)
    assert share_interval(0.0, 0.0, 2.0, 36.0) == (0.0, pytest.approx(0.1))
    assert share_interval(1 + 1e-12, 1e-14, 2.0, 36.0)[0] == pytest.approx(0.9)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_exact_coverage(share):
    # Over all counts that n rows can have; value ± 1.96 standard errors holds 2 % in 70.1 %.
    n, counts = 60, np.arange(61)
    chances, times = binom.pmf(counts, n, share), norm.ppf(0.975)
    ends = np.array(
        [share_interval(k / n, times * np.sqrt(k * (n - k) / n**3), times, n) for k in counts]
    )
    inside = (ends[:, 0] <= share) & (share <= ends[:, 1])
    assert 0.93 <= chances @ inside <= 0.98


@pytest.mark.parametrize("skewness", [0.05, 0.3, -0.3, 0.8])
def test_skewed_ends_are_where_halls_transformation_is_normal(skewness):
    def transformed(t):
        return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6

    down, up = skewed_ends(2.0, skewness)
    long, sign = (up, -1.0) if skewness > 0 else (down, 1.0)
    assert transformed(sign * long) == pytest.approx(sign * 2.0)
    assert min(down, up) == 2.0  # never nearer than without
    assert skewed_ends(2.0, -skewness) == pytest.approx((up, down))


def test_tails_without_a_variance_are_seen_and_others_are_not():
    def seen(draw, n_rows):
        random = np.random.default_rng(0)
        return np.mean([heavy_tail(draw(random, n_rows)) for _ in range(200)])

    for n_rows in (1000, 3000):
        assert seen(lambda random, n: random.normal(size=n) + random.pareto(1.2, n), n_rows) >= 0.9
        assert seen(lambda random, n: -random.pareto(1.5, n), n_rows) >= 0.75
    for n_rows in (20, 60, 300, 1000):
        assert seen(lambda random, n: random.normal(size=n), n_rows) == 0.0
        assert seen(lambda random, n: random.gamma(2.0, size=n), n_rows) == 0.0
        assert seen(lambda random, n: random.poisson(0.3, n).astype(float), n_rows) == 0.0
        assert seen(lambda random, n: (random.uniform(size=n) < 0.02) * 1.0, n_rows) == 0.0
        # Skewed intervals hold here.
        assert seen(lambda random, n: random.pareto(2.5, n), n_rows) <= 0.08
        assert seen(lambda random, n: random.lognormal(0, 1.1, n), n_rows) <= 0.08
