"""The projection onto a box and a sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew.numerics.quadratic import BoxSimplex, project_box_simplex


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=30),
    st.floats(0.1, 5.0),
    st.floats(0.01, 0.99),
)
def test_projection_is_feasible_and_nearest(point, upper, share):
    vector, bounds = np.array(point), np.full(len(point), upper)
    total = share * bounds.sum()
    projected = project_box_simplex(vector, bounds, total)
    assert projected.sum() == pytest.approx(total, rel=1e-9)
    assert (projected >= 0).all()
    assert (projected <= bounds + 1e-12).all()
    # Nearest: no feasible point makes an obtuse angle, so (v − p)·(z − p) ≤ 0 at its maximiser z.
    order = np.argsort(-(vector - projected))
    filled = np.minimum(np.cumsum(bounds[order]), total)
    vertex = np.zeros(len(point))
    vertex[order] = np.diff(filled, prepend=0)
    assert (vector - projected) @ (vertex - projected) <= 1e-7 * max(1, np.abs(vector).max()) ** 2


def test_settling_leaves_entries_at_their_bounds():
    """Shifting all entries to correct the sum would take them a little off their bounds."""
    program = BoxSimplex(None, np.zeros(4), np.full(4, 5.0), (8.0, 8.0))
    for near in (2.9, 3.1):
        settled = program.settled(np.array([5.1, near, 0.0, -1e-9]))
        assert settled == pytest.approx([5.0, 3.0, 0.0, 0.0])
        assert (settled[[0, 2, 3]] == [5, 0, 0]).all()
    assert program.settled(np.array([9.0, 9.0, 0.0, 0.0])) == pytest.approx([4, 4, 0, 0])
