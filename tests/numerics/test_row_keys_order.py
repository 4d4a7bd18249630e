"""The order by several keys is that of NumPy's lexsort, and distinct rows are those of unique."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.numerics.row_keys import distinct_points, order_by


@pytest.mark.parametrize("seed", range(20))
def test_the_order_is_that_of_lexsort(seed):
    random = np.random.default_rng(seed)
    rows = int(random.integers(0, 40))
    keys = [random.integers(0, 3, rows).astype(float) for _ in range(random.integers(1, 5))]
    if rows:
        keys[0][0] = keys[-1][rows // 2] = np.nan
    keys.append(random.integers(0, 2, rows))
    assert np.array_equal(order_by(keys), np.lexsort(keys))


@pytest.mark.parametrize("seed", range(20))
def test_distinct_points_are_those_of_unique(seed):
    random = np.random.default_rng(seed)
    shape = int(random.integers(1, 60)), int(random.integers(1, 4))
    points = random.normal(size=shape) if seed % 3 == 0 else random.integers(0, 3, shape) - 1.0
    distinct, place = distinct_points(points)
    expected, expected_place = np.unique(points, axis=0, return_inverse=True)
    assert np.array_equal(distinct, expected)
    assert np.array_equal(place, expected_place.reshape(-1))
