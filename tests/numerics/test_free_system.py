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
@pytest.mark.parametrize("iterated", [False, True])
def test_sets_that_follow_each_other(total, iterated, monkeypatch):
    matrix, linear = kernel_program(0, 500, 10, 1.0)
    if iterated:
        monkeypatch.setattr(free_system, "_MANY_ROWS", 50)
    system = FreeSystem(Dense(matrix), 1e-3)
    random = np.random.default_rng(0)
    free = random.uniform(size=500) < 0.8
    for _ in range(6):
        rows = np.flatnonzero(free)
        expected, multiplier = dense_solution(matrix, rows, 1e-3, linear[rows], total)
        guess = np.full(len(rows), (total or 0.0) / len(rows))
        system.move_to(rows)
        found, mu = system.solve(linear[rows], total, guess=guess, accuracy=1e-4)
        assert found == pytest.approx(expected, abs=2e-3 * np.abs(expected).max())
        assert mu == pytest.approx(multiplier, abs=1e-2)
        free[random.permutation(500)[:9]] ^= True
    assert (system._factored is None) == iterated


def test_a_factor_is_kept_as_long_as_it_serves():
    matrix, linear = kernel_program(1, 300, 4, 1.0)
    system = FreeSystem(Dense(matrix), 1e-3)
    rows = np.arange(200)
    factors = []
    for more in (0, 4, 8, 60):
        system.move_to(np.arange(more, 200 + more // 2))
        rows = np.arange(more, 200 + more // 2)
        found, _ = system.solve(linear[rows], 9.0, guess=np.zeros(len(rows)), accuracy=1e-4)
        expected, _ = dense_solution(matrix, rows, 1e-3, linear[rows], 9.0)
        assert found == pytest.approx(expected, abs=1e-2 * np.abs(expected).max())
        factors.append(system._factored)
    assert factors[0] is factors[1] is not factors[3]


def test_what_single_precision_cannot_factor():
    matrix = np.ones((30, 30))
    system = FreeSystem(Dense(matrix), 1e-8)
    system.move_to(np.arange(30))
    found, _ = system.solve(np.ones(30), 30.0, guess=np.ones(30), accuracy=1e-6)
    assert system.exact
    assert found == pytest.approx(np.ones(30))
