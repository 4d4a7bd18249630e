from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal, norm

from unskew.numerics.heckman import log_bivariate_ndtr


def test_it_is_that_of_scipy():
    random = np.random.default_rng(0)
    a, b = 2 * random.normal(size=(2, 200))
    a[:20], b[10:30] = 0.0, 0.0
    r = np.tanh(1.5 * random.normal(size=200))
    found = np.exp(log_bivariate_ndtr(a, b, r))
    for place in range(200):
        covariance = [[1, r[place]], [r[place], 1]]
        expected = multivariate_normal.cdf([a[place], b[place]], cov=covariance)
        assert found[place] == pytest.approx(expected, abs=1e-12)


def test_at_zero_it_is_an_arcsine():
    r = np.array([-0.9, 0.0, 0.3, 0.99])
    found = np.exp(log_bivariate_ndtr(np.zeros(4), np.zeros(4), r))
    np.testing.assert_allclose(found, 0.25 + np.arcsin(r) / (2 * np.pi), rtol=1e-12)


def test_independent_numbers_multiply_far_out_too():
    a, b = np.array([-20.0, 3.0, -8.0]), np.array([-5.0, -30.0, 0.5])
    found = log_bivariate_ndtr(a, b, np.zeros(3))
    np.testing.assert_allclose(found, log_ndtr(a) + log_ndtr(b), rtol=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "r"), [(-6, -6, -0.5), (-10, 3, 0.2), (5, -40, -0.3), (-3, -3.5, -0.95)]
)
def test_far_out_it_is_an_integral(a, b, r):
    """Of φ(t) Φ((b − rt)/√(1−r²)) up to a, by another quadrature."""

    def height(t):
        return norm.logpdf(t) + log_ndtr((b - r * t) / np.sqrt(1 - r**2))

    grid = np.linspace(a - 60, a, 60_001)
    top = grid[np.argmax(height(grid))]
    highest = height(top)
    edges = np.clip([top - 8, top - 1, top - 0.1, top, top + 0.1, top + 1, top + 8], None, a)
    total = sum(
        quad(lambda t: np.exp(height(t) - highest), low, high, epsabs=0, epsrel=1e-10)[0]
        for low, high in pairwise(edges)
        if high > low
    )
    found = log_bivariate_ndtr(np.array([a]), np.array([b]), np.array([r]))[0]
    assert found == pytest.approx(highest + np.log(total), abs=1e-7)
