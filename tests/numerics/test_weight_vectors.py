from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew
from unskew import effective_sample_size
from unskew.errors import InputError
from unskew.numerics.weight_vectors import scale_to_total

positive = st.floats(1e-6, 1e6)


def test_effective_sample_size_of_known_weights():
    assert effective_sample_size(np.ones(7)) == 7
    assert effective_sample_size([3, 1]) == pytest.approx(16 / 10)
    assert effective_sample_size([5, 0, 0]) == 1


@given(st.lists(positive, min_size=1, max_size=30), positive)
def test_effective_sample_size_ignores_the_scale_and_stays_in_its_range(weights, factor):
    size = effective_sample_size(weights)
    assert 1 - 1e-12 <= size <= len(weights) + 1e-9
    assert effective_sample_size(np.array(weights) * factor) == pytest.approx(size)


def test_effective_sample_size_is_the_variance_ratio():
    # Var of the weighted mean of unit-variance draws is Σw² / (Σw)², that is 1 / ESS.
    weights = np.array([1.0, 2.0, 5.0])
    draws = np.random.default_rng(0).normal(size=(200_000, 3)) @ (weights / weights.sum())
    assert 1 / draws.var() == pytest.approx(effective_sample_size(weights), rel=0.02)


def test_huge_and_tiny_weights_do_not_overflow():
    assert effective_sample_size([1e300, 1e300]) == 2
    assert effective_sample_size([1e-300, 1e-300]) == 2


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([], "empty"),
        ([0.0, 0.0], "zero on every row"),
        ([1.0, -1.0], "negative; got -1.0 at position 1"),
        ([1.0, np.nan], "finite; got nan at position 1"),
        ([np.inf], "finite; got inf"),
        ([[1.0]], "shape"),
        (["a"], "numbers"),
    ],
)
def test_bad_weights_are_named(weights, message):
    with pytest.raises(InputError, match=message):
        effective_sample_size(weights)


def test_weights_that_sum_to_the_total_keep_every_bit():
    weights = np.array([7 / 3, 7 / 3, 7 / 3])
    assert scale_to_total(weights, 7.0) == 1.0


def test_the_public_names_can_all_be_imported():
    namespace: dict = {}
    exec("from unskew import *", namespace)
    assert set(unskew.__all__) <= set(namespace)
    assert sorted(unskew.__all__) == unskew.__all__
    for name in unskew.__all__:
        assert getattr(unskew, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'TreeWeight'"):
        _ = unskew.TreeWeight
