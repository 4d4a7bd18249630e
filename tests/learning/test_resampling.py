from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew.learning.trainer import multiplicities, rejection

weight_lists = st.lists(st.floats(0, 1e6), min_size=1, max_size=40).filter(lambda w: sum(w) > 1e-3)


@given(weight_lists, st.integers(1, 500), st.integers(0, 2**31))
def test_multiplicities_round_to_a_neighbour_and_sum_to_the_size(weights, size, seed):
    vector = np.array(weights)
    counts = multiplicities(vector, size, np.random.RandomState(seed))
    asked = vector * size / vector.sum()
    assert counts.sum() == size
    assert (counts >= 0).all()
    assert (np.abs(counts - asked) < 1 + 1e-6).all()


def test_multiplicities_are_right_on_average():
    weights = np.array([0.05, 0.3, 1.65, 2.0])
    draws = [multiplicities(weights, 4, np.random.RandomState(seed)) for seed in range(4000)]
    assert np.mean(draws, axis=0) == pytest.approx(weights, abs=0.03)


def test_rejection_accepts_in_proportion():
    weights = np.array([0.0, 1.0, 2.0, 4.0])
    draws = [rejection(weights, np.random.RandomState(seed)) for seed in range(4000)]
    assert np.mean(draws, axis=0) == pytest.approx(weights / 4, abs=0.03)
    assert np.all([draw[3] for draw in draws])
