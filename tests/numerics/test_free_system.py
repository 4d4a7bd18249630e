"""Systems of one set of rows after another against a dense solution."""

from __future__ import annotations

import numpy as np
import pytest
from tests.numerics.programs import Dense, kernel_program

from unskew.numerics import free_system
from unskew.numerics.free_system import FreeSystem


def dense_solution(matrix, rows, proximity, right, total):
    size = len(rows)
    block = matrix[np.ix_(rows, rows)] + proximity * np.eye(size)
    if total is None:
        return np.linalg.solve(block, right), 0.0
    bordered = np.block([[block, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
    solved = np.linalg.solve(bordered, np.append(right, total))
    return solved[:-1], solved[-1]


@pytest.mark.parametrize("total", [None, 50.0])
@pytest.mark.parametrize("accuracy", [1e-2, 1e-4])
@pytest.mark.parametrize("many_rows", [50, 1500])  # beyond, conjugate gradients are tried first
def test_sets_that_follow_each_other(total, accuracy, many_rows, monkeypatch):
    """However a set is solved: by conjugate gradients, a factor of its own or an earlier one."""
    matrix, linear = kernel_program(0, 300, 10, 1.0)
    monkeypatch.setattr(free_system, "_MANY_ROWS", many_rows)
    # Conjugate gradients stop at the accuracy or at 1e-4 of the right side, whichever is larger; a
    # factor is as good as single precision.
    by_factor = many_rows == 1500
    tolerance = 1e-5 if by_factor else 2 * max(accuracy, 1e-4 * linear.max())
    system = FreeSystem(Dense(matrix), 1e-3)
    random = np.random.default_rng(0)
    free = random.uniform(size=300) < 0.8
    for _ in range(6):
        rows = np.flatnonzero(free)
        expected, multiplier = dense_solution(matrix, rows, 1e-3, linear[rows], total)
        system.move_to(rows)
        found, mu = system.solve(linear[rows], total, accuracy=accuracy)
        left_over = linear[rows] - matrix[np.ix_(rows, rows)] @ found - 1e-3 * found - mu
        assert np.abs(left_over).max() <= tolerance
        assert found == pytest.approx(expected, abs=3 * tolerance)
        assert mu == pytest.approx(multiplier, abs=tolerance)
        if total is not None:
            assert found.sum() == pytest.approx(total, abs=1e-3)
        free[random.permutation(300)[:6]] ^= True


def test_a_factor_serves_the_sets_nearby():
    """A set that differs by few entries asks for their columns, not for its whole block."""
    matrix, linear = kernel_program(1, 300, 4, 1.0)
    dense = Dense(matrix)
    system = FreeSystem(dense, 1e-3)
    whole_blocks = []
    for more in (0, 4, 8, 60):
        rows = np.arange(more, 200 + more // 2)
        system.move_to(rows)
        before = dense.large_blocks
        found, _ = system.solve(linear[rows], 9.0, accuracy=1e-4)
        expected, _ = dense_solution(matrix, rows, 1e-3, linear[rows], 9.0)
        assert found == pytest.approx(expected, abs=1e-2 * np.abs(expected).max())
        whole_blocks.append(dense.large_blocks - before)
    assert whole_blocks == [1, 0, 1, 1]


def test_conjugate_gradients_keep_their_block_for_the_sets_nearby(monkeypatch):
    """Rows that come are added to the block, rows that go take no part; far sets get their own."""
    matrix, linear = kernel_program(0, 500, 10, 1.0)
    monkeypatch.setattr(free_system, "_MANY_ROWS", 50)
    dense = Dense(matrix)
    system = FreeSystem(dense, 1e-3)
    whole_blocks = []
    for first, last in ((0, 400), (0, 410), (15, 420), (15, 405), (100, 500)):
        rows = np.arange(first, last)
        before = dense.large_blocks
        system.move_to(rows)
        found, _ = system.solve(linear[rows], None, accuracy=1e-2)
        expected, _ = dense_solution(matrix, rows, 1e-3, linear[rows], None)
        assert found == pytest.approx(expected, abs=2e-2 * np.abs(expected).max())
        whole_blocks.append(dense.large_blocks - before)
    assert whole_blocks == [1, 0, 0, 0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_a_constant_on_the_right_costs_no_more_steps(seed, monkeypatch):
    """With a total, a constant is only a part of μ: conjugate gradients need no factor for it."""
    matrix, linear = kernel_program(seed, 300, 10, 1.0)
    monkeypatch.setattr(free_system, "_MANY_ROWS", 50)
    rows = np.arange(250)
    right = linear[rows] + 3 * linear.max()
    expected, multiplier = dense_solution(matrix, rows, 1e-3, right, 50.0)
    dense = Dense(matrix)
    system = FreeSystem(dense, 1e-3)
    system.move_to(rows)
    found, mu = system.solve(right, 50.0, accuracy=1e-4)
    tolerance = 2e-4 * right.max()  # where conjugate gradients stop
    assert found == pytest.approx(expected, abs=3 * tolerance)
    assert mu == pytest.approx(multiplier, abs=tolerance)
    assert dense.large_blocks == 1


def test_what_single_precision_cannot_factor():
    matrix = np.ones((30, 30))
    system = FreeSystem(Dense(matrix), 1e-8)
    system.move_to(np.arange(30))
    found, _ = system.solve(np.ones(30), 30.0, accuracy=1e-6)
    assert system.exact
    assert found == pytest.approx(np.ones(30))
