"""How near weights can come, against closed forms and the whole linear program."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.numerics import calibration
from unskew.numerics.calibration import farthest_mean, smallest_imbalance


def test_one_feature_out_of_reach():
    features = np.array([[1.0], [2.0], [5.0]])
    zero, one = np.zeros(3), np.ones(3)
    assert smallest_imbalance(features, zero, one, np.zeros(1)).slack == pytest.approx(1.0)
    assert smallest_imbalance(features, zero, one, np.array([0.25])).slack == pytest.approx(0.75)
    # With a share of at most a half, the nearest rows are the two first.
    assert smallest_imbalance(features, zero, one / 2, np.zeros(1)).slack == pytest.approx(1.5)
    assert smallest_imbalance(features - 2.0, zero, one, np.zeros(1)).slack == pytest.approx(0.0)
    assert farthest_mean(features, 0, -1.0, zero, one) == pytest.approx(1.0)


@pytest.mark.parametrize("largest_share", [1.0, 0.01])
def test_rows_are_added_until_none_helps(monkeypatch, largest_share):
    random = np.random.default_rng(0)
    features = random.normal(size=(600, 6))
    features[:, 0] += 2.5
    bounds = np.zeros(600), np.full(600, largest_share)
    whole = smallest_imbalance(features, *bounds, np.zeros(6))
    monkeypatch.setattr(calibration, "MAX_ENTRIES", 100)
    parts = smallest_imbalance(features, *bounds, np.zeros(6))
    assert parts.slack == pytest.approx(whole.slack, rel=1e-9)
    if largest_share == 1.0:  # every row lies beyond the target, in that direction
        assert (features @ parts.direction).min() == pytest.approx(parts.slack, rel=1e-7)


@pytest.mark.parametrize("far", [1e8, 1e16, 1e40])
def test_a_target_far_beyond_all_rows(far):
    random = np.random.default_rng(0)
    features = random.normal(size=(200, 5))
    features[:, 1] -= far
    found = smallest_imbalance(features, np.zeros(200), np.ones(200), np.zeros(5))
    assert found.slack == pytest.approx(-features[:, 1].max(), rel=1e-7)
    assert found.direction.argmin() == 1
    assert (features @ found.direction).min() == pytest.approx(found.slack, rel=1e-7)
