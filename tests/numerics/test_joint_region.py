"""The joint region: its radius, and what is claimed to be worst in it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln, xlogy

from unskew.numerics.joint_region import (
    binomial_divergence,
    joint_radius,
    log_moment,
    relative_errors,
    worst_norm,
    worst_norm_of,
    worst_squares,
    worst_sum,
)


def moment_stays_below(n: int, tilt: float, level: float) -> bool:
    """Prove sup_q E exp(s n kl) <= level by halving pieces of [0, 1/2] until each is below it.

    The term of count m is C(n, m) e^{s n h(m/n)} (q^m (1 - q)^(n - m))^(1 - s), unimodal in q with
    its maximum at m/n, so that its maximum on a piece is known. By symmetry q <= 1/2 is enough.
    """
    m = np.arange(n + 1)
    peak = xlogy(m, m / n) + xlogy(n - m, 1 - m / n)
    log_factor = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1) + tilt * peak
    borders = np.sin(np.linspace(0, np.pi / 4, 65)) ** 2
    pieces = np.column_stack([borders[:-1], borders[1:]])
    for _ in range(12):
        ends = xlogy(m, pieces[..., None]) + xlogy(n - m, 1 - pieces[..., None])
        inside = (m / n >= pieces[:, :1]) & (m / n <= pieces[:, 1:])
        highest = np.where(inside, peak, ends.max(axis=1))
        above = np.exp(log_factor + (1 - tilt) * highest).sum(axis=1) > level
        if not above.any():
            return True
        left, right = pieces[above].T
        middle = (left + right) / 2
        pieces = np.vstack([np.column_stack([left, middle]), np.column_stack([middle, right])])
    return False


def envelope(tilt: float, n: int) -> float:
    return float(np.exp(log_moment(np.array([tilt]), np.array([n])))[0, 0])


@pytest.mark.parametrize("n", [*range(1, 31), 50, 100, 200])
def test_moments_of_the_divergence_are_below_the_envelope(n):
    for tilt in (0.05, 0.1, 0.2, 0.4, 0.7):
        assert moment_stays_below(n, tilt, envelope(tilt, n)), tilt


@pytest.mark.parametrize("n", [500, 2000, 20_000])
def test_moments_of_large_cells_fall_towards_those_of_poisson_counts(n):
    # Expected counts up to 50 hold the supremum; beyond, chi-squared is near.
    m, means = np.arange(400), np.geomspace(0.01, 50, 300)
    q = means[:, None] / n
    log_mass = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1) + xlogy(m, q)
    log_mass = log_mass + (n - m) * np.log1p(-q)
    divergence = binomial_divergence(m, np.full(len(m), n), np.broadcast_to(q, log_mass.shape))
    poisson = -means[:, None] + xlogy(m, means[:, None]) - gammaln(m + 1)
    limit = xlogy(m, m / means[:, None]) - m + means[:, None]
    for tilt in (0.05, 0.2, 0.7):
        largest = np.exp(log_mass + tilt * divergence).sum(axis=1).max()
        assert largest <= envelope(tilt, n)
        assert largest == pytest.approx(np.exp(poisson + tilt * limit).sum(axis=1).max(), rel=1e-3)


def test_the_envelope_for_large_cells_would_not_do_for_small_ones():
    assert not moment_stays_below(3, 0.5, envelope(0.5, 20))


@pytest.mark.parametrize("delta", [0.1, 0.01])
def test_the_radius_holds_the_divergences_of_all_cells(delta):
    random = np.random.default_rng(0)
    trials = np.repeat([5.0, 30.0, 200.0], 10)
    q = np.tile([0.05, 0.5], 15)
    counts = random.binomial(trials.astype(int), q, size=(4000, 30))
    spent = binomial_divergence(counts, trials, q).sum(axis=1)
    radius = joint_radius(trials, delta)
    assert (spent > radius).mean() <= delta
    assert np.quantile(spent, 1 - delta) > 0.6 * radius  # and it is not idle


@pytest.fixture
def region():
    return relative_errors(
        np.array([20.0, 60.0, 9.0, 40.0]), np.array([50.0, 90.0, 30.0, 40.0]), 0.05
    )


def inside(region, random, size=200_000):
    """Draw errors from the box and keep those within the ellipsoid."""
    t = random.uniform(region.low, region.high, size=(size, len(region.low)))
    t[: size // 2] = np.where(
        random.uniform(size=(size // 2, 1)) < 0.5, region.high, region.low
    ) * (random.uniform(size=(size // 2, len(region.low))) ** 0.2)
    return t[(region.stiffness * t**2).sum(axis=1) <= region.radius]


def test_the_quadratic_is_below_the_divergence_on_the_box(region):
    sample, population = np.array([20.0, 60.0, 9.0, 40.0]), np.array([50.0, 90.0, 30.0, 40.0])
    for t in np.linspace(region.low, region.high, 200):
        cost = binomial_divergence(sample, population, sample / population / (1 + t))
        assert (cost >= region.stiffness * t**2 * (1 - 1e-12) - 1e-12).all()


def test_a_cell_that_was_selected_whole_cannot_weigh_less(region):
    assert region.low[3] == 0


def test_sums_squares_and_norms_are_never_exceeded_and_nearly_reached(region):
    random = np.random.default_rng(0)
    t = inside(region, random)
    factors = np.array([1.0, 2.0, 0.5, 3.0])
    worst = worst_sum(region, factors)
    assert 0.85 * worst <= (np.abs(t) @ factors).max() <= worst
    worst = worst_squares(region, factors)
    assert 0.8 * worst <= (t**2 @ factors).max() <= worst
    vectors = random.normal(size=(4, 3))
    gram = vectors @ vectors.T
    worst, cell = worst_norm(region, gram)
    assert 0.6 * worst <= np.linalg.norm(t @ vectors, axis=1).max() <= worst
    assert 0 <= cell < 4


@pytest.mark.parametrize(("n_cells", "d"), [(30, 4), (4, 9)])
def test_norms_from_vectors_are_those_from_their_inner_products(n_cells, d):
    random = np.random.default_rng(0)
    sample = random.integers(5, 80, size=n_cells).astype(float)
    region = relative_errors(sample, np.rint(sample * random.uniform(1.2, 4, size=n_cells)), 0.05)
    vectors = random.normal(size=(n_cells, d)) * random.uniform(size=(n_cells, 1))
    worst, cell = worst_norm(region, vectors @ vectors.T)
    assert worst_norm_of(region, vectors) == (pytest.approx(worst), cell)


def test_without_a_joint_bound_the_box_is_what_is_left(region):
    from dataclasses import replace

    wide = replace(region, radius=1e9)
    factors = np.array([1.0, 2.0, 0.5, 3.0])
    assert worst_sum(wide, factors) == pytest.approx(factors @ region.size)
    assert worst_squares(wide, factors) == pytest.approx(factors @ region.size**2)


def test_in_the_ellipsoid_alone_the_norm_is_an_eigenvalue(region):
    from dataclasses import replace

    wide = replace(region, low=-1e6 * np.ones(4), high=1e6 * np.ones(4))
    vectors = np.random.default_rng(1).normal(size=(4, 6))
    scaled = vectors / np.sqrt(region.stiffness)[:, None]
    largest = np.linalg.norm(scaled, 2) * np.sqrt(region.radius)
    assert worst_norm(wide, vectors @ vectors.T)[0] == pytest.approx(largest)


def test_many_cells_take_the_short_ladder():
    k = 350
    region = relative_errors(np.full(k, 40.0), np.full(k, 80.0), 0.05)
    worst, _ = worst_norm(region, np.eye(k))
    assert worst == pytest.approx(np.sqrt(region.radius / region.stiffness[0]))
