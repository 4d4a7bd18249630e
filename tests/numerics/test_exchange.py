"""The exact solver against closed forms, a reference solver and its own certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, linprog, minimize
from tests.numerics.programs import Dense, kernel_program, random_program

from unskew.numerics import free_system
from unskew.numerics.quadratic import BoxSimplex, solve_by_exchange


def solve(matrix, linear, upper, total, **options):
    size = len(linear)
    program = BoxSimplex(Dense(matrix), linear, np.broadcast_to(upper, size).astype(float), total)
    return solve_by_exchange(program, **options)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 25),
    st.sampled_from([0.5, 2.0, 100.0]),
    st.sampled_from([0.0, 0.3]),
)
def test_solutions_agree_with_a_reference_solver(seed, size, bound, slack):
    matrix, linear = random_program(seed, size)
    upper = max(bound, 1.0)
    total = size * (1 - slack), size * min(1 + slack, upper)
    found, certificate = solve(matrix, linear, upper, total, tolerance=1e-6)
    reference = minimize(
        lambda x: 0.5 * x @ matrix @ x - linear @ x,
        np.ones(size),
        jac=lambda x: matrix @ x - linear,
        hess=lambda x: matrix,
        bounds=[(0, upper)] * size,
        constraints=[LinearConstraint(np.ones((1, size)), *total)],
        method="trust-constr",
        options={"gtol": 1e-10, "xtol": 1e-12, "maxiter": 3000},
    )
    scale = max(1.0, abs(reference.fun))
    assert certificate.converged
    assert certificate.objective <= reference.fun + 1e-6 * scale
    assert certificate.objective == pytest.approx(0.5 * found @ matrix @ found - linear @ found)
    assert certificate.bound_residual <= 1e-9
    assert certificate.sum_residual <= 1e-9


def test_the_gap_bounds_the_distance_from_the_optimum():
    """Wolfe's gap is a linear program, which another solver can check."""
    for seed in range(20):
        matrix, linear = random_program(seed, 12)
        total = (10.0, 14.0)
        _, optimum = solve(matrix, linear, 3.0, total, tolerance=1e-8)
        crude, certificate = solve(matrix, linear, 3.0, total, tolerance=1e9)
        gradient = matrix @ crude - linear
        sums = np.vstack([np.ones(12), -np.ones(12)])
        best = linprog(gradient, A_ub=sums, b_ub=[total[1], -total[0]], bounds=[(0, 3)] * 12)
        assert certificate.gap == pytest.approx(gradient @ crude - best.fun, rel=1e-6, abs=1e-6)
        assert certificate.objective - optimum.objective <= certificate.gap + 1e-6


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 40), st.floats(1.0, 3.0))
def test_the_certificate_is_that_of_the_point_returned(seed, size, bound):
    matrix, linear = random_program(seed, size)
    found, certificate = solve(matrix, linear, bound, (size, size), tolerance=1e-6)
    gradient = matrix @ found - linear
    order = np.argsort(gradient)
    least = np.zeros(size)
    least[order] = np.diff(np.minimum(np.arange(1, size + 1) * bound, size), prepend=0)
    scale = max(1.0, abs(certificate.objective))
    assert certificate.gap == pytest.approx(gradient @ (found - least), abs=1e-9 * scale)
    assert certificate.gap <= 1e-5 * scale
    assert certificate.converged


def test_two_entries_by_hand():
    # min ½(x² + y²) − 3x with x + y = 2 and x ≤ 1.8: x wants 2.5, so it stops at its bound.
    found, certificate = solve(np.eye(2), np.array([3.0, 0.0]), 1.8, (2, 2), tolerance=1e-9)
    assert found == pytest.approx([1.8, 0.2])
    assert certificate.converged


@pytest.mark.parametrize("rank", [1, 3])
def test_singular_matrices(rank):
    matrix, _ = random_program(0, 40, rank)
    found, certificate = solve(matrix, matrix @ np.ones(40), 10.0, (40, 40), tolerance=1e-4)
    assert certificate.converged
    assert np.isfinite(found).all()


@pytest.mark.parametrize("bandwidth", [0.1, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("columns", [1, 8])
@pytest.mark.parametrize("bound", [1.5, 1000.0])
def test_kernels_from_narrow_to_wide(bandwidth, columns, bound):
    matrix, linear = kernel_program(1, 400, columns, bandwidth)
    found, certificate = solve(matrix, linear, bound, (400, 400), tolerance=1e-3)
    gradient = matrix @ found - linear
    assert certificate.converged
    rises, falls = gradient[found < bound * (1 - 1e-9)], gradient[found > 1e-8]
    assert falls.max() - rises.min() <= 1e-3
    assert found.sum() == pytest.approx(400, rel=1e-12)


def test_conjugate_gradients_and_factors_agree(monkeypatch):
    """A narrow kernel has many free entries, which conjugate gradients take on from a size on."""
    matrix, linear = kernel_program(2, 700, 12, 1.5)
    by_factor, _ = solve(matrix, linear, 1000.0, (700, 700), tolerance=1e-4)
    monkeypatch.setattr(free_system, "_MANY_ROWS", 200)
    found, certificate = solve(matrix, linear, 1000.0, (700, 700), tolerance=1e-4)
    assert certificate.converged
    assert certificate.violation <= 1e-4
    assert found == pytest.approx(by_factor, abs=1e-2)


def test_the_iteration_limit_is_kept_and_told():
    matrix, linear = kernel_program(4, 300, 8, 2.0)
    found, certificate = solve(matrix, linear, 1000.0, (300, 300), tolerance=1e-3, max_iterations=3)
    assert certificate.iterations == 3
    assert not certificate.converged
    assert certificate.gap > 0
    assert found.sum() == pytest.approx(300)
