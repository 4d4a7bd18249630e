from __future__ import annotations

import sys

import numpy as np
import pytest

from unskew.numerics.nearest_points import NearestPoints


@pytest.mark.parametrize("decimals", [0, 6])
def test_with_and_without_scipy_the_nearest_points_are_the_same(decimals, monkeypatch):
    random = np.random.default_rng(0)
    points = np.unique(random.normal(size=(700, 3)).round(decimals), axis=0)  # 0 decimals: ties
    rows = random.normal(size=(400, 3)).round(decimals)
    nearest = NearestPoints(points)
    row, point = nearest.find(rows)
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)  # importing it now fails
    brute_row, brute_point = nearest.find(rows)
    assert np.array_equal(row, brute_row)
    assert np.array_equal(point, brute_point)
    distances = np.linalg.norm(rows[:, None] - points, axis=2)
    assert np.allclose(distances[row, point], distances.min(axis=1)[row], rtol=1e-9)
    assert np.bincount(row, minlength=400).min() >= 1
    if decimals == 0:
        assert len(row) > 400
