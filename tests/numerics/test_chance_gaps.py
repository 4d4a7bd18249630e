"""What chance explains, against exact probabilities and against draws."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from unskew.numerics.empty_boxes import EvenDraw, log_tail


def even(m, r):
    return EvenDraw(np.ones(m), np.full(r, 1 / r))


@pytest.mark.parametrize(("m", "r", "k"), [(50, 400, 5), (1000, 300, 12), (30, 30, 30)])
def test_the_evidence_bounds_the_probability_of_an_empty_region(m, r, k):
    # Which k of the m + r rows lie in the region is fixed; none of the m points is among them.
    exact = hypergeom.logpmf(0, m + r, k, m)
    evidence = even(m, r).evidence(k / r, k / r**2)
    assert -exact >= evidence >= 0.5 * -exact
    assert evidence == pytest.approx(k * np.log(1 + m / r))


def test_uneven_points_reach_less_far():
    # 100 rows carry half of the weight, 900 the other half: a tenth of the population may be one
    # of which only 20 rows are drawn.
    design = np.append(np.full(100, 9.0), np.ones(900))
    draw = EvenDraw(design, np.full(10**6, 1e-6))
    assert draw.points_with(0.1) == pytest.approx(20)
    assert draw.points_with(1.0) == pytest.approx(1000)
    assert draw.evidence(0.1, 0.1 * 1e-6) == pytest.approx(20, rel=0.01)


def test_a_few_heavy_others_prove_as_little_as_a_few():
    mass = np.append(np.full(999, 0.5 / 999), 0.5)
    draw = EvenDraw(np.ones(1000), mass)
    assert draw.evidence(0.5, 0.25) == pytest.approx(np.log(1 + 500))  # one row, no more


def test_counts_stand_for_their_rows():
    counts = np.array([600.0, 300.0, 100.0])
    mass = counts / 1000
    grouped, single = EvenDraw(np.ones(50), mass, mass / 1000), even(50, 1000)
    assert grouped.evidence(0.1, 0.1 / 1000) == pytest.approx(single.evidence(0.1, 0.1 / 1000))
    assert grouped.effective_others == pytest.approx(1000)


@pytest.mark.parametrize(
    ("m", "r", "k", "power"), [(100, 2000, 200, 0.0), (300, 300, 500, 1.0), (800, 100, 400, 0.5)]
)
def test_what_an_even_draw_lacks(m, r, k, power):
    """The expected mass is that of permutations, and the tail is never understated."""
    random = np.random.default_rng(0)
    shares = np.arange(1.0, k + 1) ** -power
    rows = random.choice(k, m + r, p=shares / shares.sum())
    lacked, expected, tails = [], [], []
    for _ in range(200):
        rows = random.permutation(rows)
        points, others = rows[:m], rows[m:]
        lacking = even(m, r).lacking(points, others, k)
        lacked.append((~np.isin(others, points)).mean())
        expected.append(lacking[0] @ lacking[1])
        tails.append(log_tail(*lacking, lacked[-1]))
    assert np.ptp(expected) < 1e-9  # it depends on both sets together only
    assert np.mean(lacked) <= expected[0] + 3 * np.std(lacked) / np.sqrt(200)
    assert np.mean(lacked) >= 0.9 * expected[0]
    for level in (0.3, 0.1):
        assert np.mean(np.exp(tails) <= level) <= level
    # Chernoff's inequality for independent values loses up to half of the deviation.
    assert log_tail(*lacking, expected[0] + 8 * np.std(lacked)) < np.log(0.005)
