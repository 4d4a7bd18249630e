"""Trimmed weights: closed forms and limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew import effective_sample_size, trim_weights
from unskew.errors import ParameterError


def test_closed_forms():
    assert trim_weights([1.0, 1.0, 1.0, 9.0], max_weight=2.0) == pytest.approx([2, 2, 2, 6])
    # What the largest loses lifts the second over the limit too.
    assert trim_weights([1.0, 5.0, 6.0], max_weight=1.25) == pytest.approx([2, 5, 5])
    assert trim_weights([3.0, 3.0], max_weight=1.0) == pytest.approx([3, 3])
    assert trim_weights([1.0, 0.0, 0.3, 7.7], max_weight=4 / 3) == pytest.approx([3, 0, 3, 3])
    trimmed, report = trim_weights(
        [1.0, 1.0, 1.0, 9.0], max_weight=2.0, X=[0, 0, 0, 1], report=True
    )
    assert report.n_cut == 1
    assert report.moved == pytest.approx(0.25)
    assert report.shift == pytest.approx(0.25 / np.std([0, 0, 0, 1]))
    assert report.effective_after == pytest.approx(effective_sample_size(trimmed))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.01, 1000), min_size=2, max_size=30),
    st.floats(1.0, 5.0),
    st.floats(1.0, 3.0),
)
def test_limits_are_kept_and_the_total_stays(weights, max_weight, design_effect):
    trimmed = trim_weights(weights, max_weight=max_weight)
    assert trimmed.sum() == pytest.approx(sum(weights))
    assert trimmed.max() <= max_weight * trimmed.mean() * (1 + 1e-9)
    assert (np.diff(trimmed[np.argsort(weights)]) >= -1e-9 * trimmed.max()).all()  # in order
    by_effect = trim_weights(weights, design_effect=design_effect)
    assert len(weights) / effective_sample_size(by_effect) <= design_effect * (1 + 1e-6)


def test_what_cannot_be_reached():
    with pytest.raises(ParameterError, match="max_weight must be at least 1"):
        trim_weights([1.0], max_weight=0.5)
    with pytest.raises(ParameterError, match="with 2 weights of zero it is at least 2"):
        trim_weights([1.0, 1.0, 0.0, 0.0], max_weight=1.5)
    with pytest.raises(ParameterError, match="design_effect=1.5 cannot be reached"):
        trim_weights([1.0, 9.0, 0.0, 0.0], design_effect=1.5)
