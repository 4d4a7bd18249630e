"""Gradient steps against the exact solver."""

from __future__ import annotations

import numpy as np
import pytest
from tests.numerics.programs import Dense, random_program

from unskew.numerics.quadratic import BoxSimplex, solve_by_exchange, solve_by_gradient_steps


def test_it_agrees_with_the_exact_solver():
    matrix, linear = random_program(5, 60, 80)
    program = BoxSimplex(Dense(matrix), linear, np.full(60, 5.0), (60.0, 60.0))
    found, certificate = solve_by_gradient_steps(program, tolerance=0.1)
    _, exact = solve_by_exchange(program, tolerance=1e-6)
    assert certificate.converged
    assert 0 <= certificate.objective - exact.objective <= certificate.gap
    assert found.sum() == pytest.approx(60)


def test_the_iteration_limit_is_kept_and_told():
    matrix, linear = random_program(4, 80)
    program = BoxSimplex(Dense(matrix), linear, np.full(80, 5.0), (80.0, 80.0))
    found, certificate = solve_by_gradient_steps(program, tolerance=1e-12, max_iterations=3)
    assert certificate.iterations == 3
    assert not certificate.converged
    assert certificate.gap > 0
    assert found.sum() == pytest.approx(80)
