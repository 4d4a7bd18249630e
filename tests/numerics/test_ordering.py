"""The order by several keys is that of NumPy's lexsort."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.numerics.ordering import order_by


@pytest.mark.parametrize("seed", range(20))
def test_the_order_is_that_of_lexsort(seed):
    random = np.random.default_rng(seed)
    rows = int(random.integers(0, 40))
    keys = [random.integers(0, 3, rows).astype(float) for _ in range(random.integers(1, 5))]
    if rows:
        keys[0][0] = keys[-1][rows // 2] = np.nan
    keys.append(random.integers(0, 2, rows))
    assert np.array_equal(order_by(keys), np.lexsort(keys))
