from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.optimize import minimize

from unskew.numerics.label_shift import (
    adjusted,
    by_class,
    fit_calibration,
    most_likely_shares,
    solve_confusion,
)


def probabilities(n=500, k=3, seed=0):
    random = np.random.default_rng(seed)
    return random.dirichlet(np.full(k, 0.5), n), random.uniform(0.5, 2, n)


class TestMostLikelyShares:
    @pytest.mark.parametrize("k", [2, 3, 8])
    def test_it_is_the_maximiser(self, k):
        """Against a direct solver on the simplex."""
        p, weight = probabilities(k=k)
        prior = np.random.default_rng(1).dirichlet(np.full(k, 5.0))
        found = most_likely_shares(p, weight, prior)

        def loss(free):
            shares = np.exp(free) / np.exp(free).sum()
            return -weight @ np.log(p @ (shares / prior)) / weight.sum()

        best = minimize(loss, np.zeros(k), method="BFGS", options={"gtol": 1e-10})
        expected = np.exp(best.x) / np.exp(best.x).sum()
        np.testing.assert_allclose(found.shares, expected, atol=1e-5)
        assert found.shares.sum() == pytest.approx(1)

    def test_it_is_a_fixed_point_of_em(self):
        p, weight = probabilities()
        prior = np.array([0.5, 0.3, 0.2])
        found = most_likely_shares(p, weight, prior)
        posterior = adjusted(p, found.shares / prior)
        np.testing.assert_allclose(weight @ posterior / weight.sum(), found.shares, atol=1e-8)
        assert found.gap < 1e-8

    def test_the_gap_bounds_what_others_reach(self):
        p, weight = probabilities()
        prior = np.full(3, 1 / 3)
        found = most_likely_shares(p, weight, prior, tolerance=1e-2)

        def value(shares):
            return weight @ np.log(p @ (shares / prior)) / weight.sum()

        best = most_likely_shares(p, weight, prior)
        assert 0 <= value(best.shares) - value(found.shares) <= found.gap

    def test_a_class_that_is_not_there(self):
        p = np.array([[0.9, 0.1], [0.8, 0.2], [0.95, 0.05]])
        found = most_likely_shares(p, np.ones(3), np.array([0.5, 0.5]))
        np.testing.assert_allclose(found.shares, [1, 0], atol=1e-6)

    def test_of_classes_that_cannot_be_told_apart_the_shares_stay_in_proportion(self):
        p, weight = probabilities(k=3)
        twice = np.column_stack([p[:, 0], p[:, 1], p[:, 2] * 0.25, p[:, 2] * 0.75])
        prior = np.array([0.5, 0.2, 0.075, 0.225])
        found = most_likely_shares(twice, weight, prior)
        merged = most_likely_shares(p, weight, np.array([0.5, 0.2, 0.3]))
        assert found.shares[:2] == pytest.approx(merged.shares[:2], abs=1e-6)
        assert found.shares[2:] == pytest.approx(
            merged.shares[2] * np.array([0.25, 0.75]), rel=0.05
        )

    def test_hundred_classes_that_overlap(self):
        """EM needs thousands of steps here, as the likelihood is nearly flat."""
        random = np.random.default_rng(0)
        k, centres = 100, random.normal(size=(100, 5)) * 0.5
        shares = random.dirichlet(np.full(k, 5.0))
        points = centres[random.choice(k, 4000, p=shares)] + random.normal(size=(4000, 5))
        density = np.exp(-0.5 * ((points[:, None] - centres) ** 2).sum(axis=2))
        posterior = density / density.sum(axis=1, keepdims=True)
        start = time.process_time()
        found = most_likely_shares(posterior, np.ones(4000), np.full(k, 1 / k))
        assert time.process_time() - start < 2.0
        assert found.gap < 1e-9
        assert found.shares.sum() == pytest.approx(1)


class TestLinear:
    matrix = np.array([[0.35, 0.05, 0.02], [0.05, 0.20, 0.03], [0.02, 0.03, 0.25]])

    def test_exact_for_a_known_confusion_matrix(self):
        truth = np.array([0.2, 1.0, 2.5])
        np.testing.assert_allclose(solve_confusion(self.matrix, self.matrix @ truth), truth)

    def test_one_where_there_is_no_shift(self):
        means = self.matrix.sum(axis=1)
        np.testing.assert_allclose(solve_confusion(self.matrix, means), 1)

    def test_by_class(self):
        values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        found = by_class(values, np.array([0, 1, 1]), np.array([1.0, 1.0, 2.0]))
        np.testing.assert_allclose(found, [[0.25, 3.25], [0.5, 4.0]])


class TestCalibration:
    @pytest.mark.parametrize("k", [2, 4])
    def test_it_finds_the_distortion(self, k):
        random = np.random.default_rng(0)
        p = random.dirichlet(np.ones(k), 40_000)
        labels = (random.uniform(size=(len(p), 1)) > np.cumsum(p, axis=1)).sum(axis=1)
        bias = np.linspace(0.5, -0.5, k)
        distorted = np.exp(2.0 * np.log(p) + bias)
        distorted /= distorted.sum(axis=1, keepdims=True)
        calibrated = fit_calibration(distorted, labels, np.ones(len(p)))(distorted)
        assert np.abs(calibrated - p).max() < 0.03

    def test_the_mean_of_calibrated_probabilities_is_the_share_of_each_class(self):
        p, weight = probabilities()
        labels = np.random.default_rng(2).integers(0, 3, len(p))
        calibrated = fit_calibration(p, labels, weight)(p)
        shares = np.bincount(labels, weight) / weight.sum()
        np.testing.assert_allclose(weight @ calibrated / weight.sum(), shares, atol=1e-4)

    def test_perfect_predictions_stay_finite(self):
        p = np.eye(2)[[0, 1, 0, 1]]
        calibrated = fit_calibration(p, np.array([0, 1, 0, 1]), np.ones(4))(p)
        assert np.isfinite(calibrated).all()
        assert (calibrated.argmax(axis=1) == [0, 1, 0, 1]).all()


def test_elkans_formula():
    """p′ = p·r/(p·r + 1 − p), r = [π′/(1 − π′)]·[(1 − π)/π]."""
    p, old, new = 0.3, 0.5, 0.1
    r = new / (1 - new) * (1 - old) / old
    found = adjusted(np.array([[1 - p, p]]), np.array([(1 - new) / (1 - old), new / old]))
    assert found[0, 1] == pytest.approx(p * r / (p * r + 1 - p))
