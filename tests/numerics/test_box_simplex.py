"""The solver against closed forms, a reference solver and its own certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, linprog, minimize

from unskew.numerics.box_simplex import project_box_simplex, solve_box_simplex
from unskew.numerics.kernel_matrix import KernelMatrix
from unskew.numerics.kernels import GaussianKernel
from unskew.numerics.low_rank import LowRankMatrix


class Dense:
    def __init__(self, values):
        self.values, self.size = values, len(values)

    def quick_product(self, vector):
        return (self.values.astype(np.float32) @ vector.astype(np.float32)).astype(float)

    def exact_product(self, vector):
        return self.values @ vector

    def block(self, rows, *, exact):
        return self.values[np.ix_(rows, rows)].astype(np.float64 if exact else np.float32)


def random_program(seed, size, rank=None):
    random = np.random.default_rng(seed)
    factor = random.normal(size=(size, rank or size))
    return factor @ factor.T, random.normal(size=size) * size


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


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 25),
    st.sampled_from([0.5, 2.0, 100.0]),
    st.sampled_from([0.0, 0.3]),
)
def test_solutions_agree_with_a_reference_solver(seed, size, bound, slack):
    matrix, linear = random_program(seed, size)
    upper = np.full(size, max(bound, 1.0))
    total = size * (1 - slack), size * min(1 + slack, upper[0])
    found, certificate = solve_box_simplex(
        Dense(matrix), linear, upper=upper, total=total, tolerance=1e-6
    )
    reference = minimize(
        lambda x: 0.5 * x @ matrix @ x - linear @ x,
        np.ones(size),
        jac=lambda x: matrix @ x - linear,
        hess=lambda x: matrix,
        bounds=[(0, u) for u in upper],
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
        upper, total = np.full(12, 3.0), (10.0, 14.0)
        _, optimum = solve_box_simplex(
            Dense(matrix), linear, upper=upper, total=total, tolerance=1e-8
        )
        crude, certificate = solve_box_simplex(
            Dense(matrix), linear, upper=upper, total=total, tolerance=1e9
        )
        gradient = matrix @ crude - linear
        sums = np.vstack([np.ones(12), -np.ones(12)])
        best = linprog(gradient, A_ub=sums, b_ub=[total[1], -total[0]], bounds=[(0, 3)] * 12)
        assert certificate.gap == pytest.approx(gradient @ crude - best.fun, rel=1e-6, abs=1e-6)
        assert certificate.objective - optimum.objective <= certificate.gap + 1e-6


def test_two_entries_by_hand():
    # min ½(x² + y²) − 3x with x + y = 2 and x ≤ 1.8: x wants 2.5, so it stops at its bound.
    found, certificate = solve_box_simplex(
        Dense(np.eye(2)), np.array([3.0, 0.0]), upper=np.full(2, 1.8), total=(2, 2), tolerance=1e-9
    )
    assert found == pytest.approx([1.8, 0.2])
    assert certificate.converged


@pytest.mark.parametrize("rank", [1, 3])
def test_singular_matrices(rank):
    matrix, _ = random_program(0, 40, rank)
    found, certificate = solve_box_simplex(
        Dense(matrix), matrix @ np.ones(40), upper=np.full(40, 10.0), total=(40, 40), tolerance=1e-4
    )
    assert certificate.converged
    assert np.isfinite(found).all()


def test_a_warm_start_at_the_solution_ends_at_once():
    matrix, linear = random_program(3, 60)
    options = {"upper": np.full(60, 5.0), "total": (60.0, 60.0), "tolerance": 1e-6}
    found, cold = solve_box_simplex(Dense(matrix), linear, **options)
    again, warm = solve_box_simplex(Dense(matrix), linear, start=found, **options)
    assert warm.iterations <= 3 < cold.iterations
    assert again == pytest.approx(found, abs=1e-6)


def test_the_iteration_limit_is_kept_and_told():
    matrix, linear = random_program(4, 80)
    found, certificate = solve_box_simplex(
        Dense(matrix),
        linear,
        upper=np.full(80, 5.0),
        total=(80, 80),
        tolerance=1e-12,
        max_iterations=3,
        exchange=False,
    )
    assert certificate.iterations == 3
    assert not certificate.converged
    assert certificate.gap > 0
    assert found.sum() == pytest.approx(80)


def test_held_and_on_demand_matrices_agree():
    points = np.random.default_rng(0).normal(size=(300, 4))
    kernel = GaussianKernel(1.5)
    held, lean = (KernelMatrix(kernel, points, ridge=0.1, memory=m) for m in (2**30, 0))
    assert held.held is not None
    assert lean.held is None
    vector = np.random.default_rng(1).normal(size=300)
    distances = ((points[:, None] - points) ** 2).sum(axis=2)
    exact = np.exp(-distances / (2 * 1.5**2)) + 0.1 * np.eye(300)
    for matrix in (held, lean):
        assert matrix.exact_product(vector) == pytest.approx(exact @ vector, abs=1e-11)
        assert matrix.quick_product(vector) == pytest.approx(exact @ vector, abs=1e-4)
        rows = np.array([3, 50, 7])
        assert matrix.block(rows, exact=True) == pytest.approx(exact[np.ix_(rows, rows)], abs=1e-13)
        assert matrix.block(rows, exact=False) == pytest.approx(exact[np.ix_(rows, rows)], abs=1e-6)


def test_a_kernel_leaves_its_rows_alone():
    """An array in column order was once changed by taking the kernel of it."""
    kernel = GaussianKernel(1.0)
    prepared = kernel.prepare(np.asfortranarray(np.random.default_rng(0).normal(size=(20, 5))))
    before = prepared.copy()
    first = kernel.block(prepared, prepared)
    assert np.array_equal(prepared, before)
    assert np.array_equal(kernel.block(prepared, prepared), first)


def test_low_rank_products():
    features = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    matrix = LowRankMatrix(features, ridge=0.5)
    vector = np.arange(50.0)
    expected = features @ (features.T @ vector) + 0.5 * vector
    assert matrix.exact_product(vector) == pytest.approx(expected, rel=1e-6)
    assert matrix.quick_product(vector) == pytest.approx(expected, rel=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 40), st.floats(1.0, 3.0))
def test_the_certificate_is_that_of_the_point_returned(seed, size, bound):
    matrix, linear = random_program(seed, size)
    upper = np.full(size, bound)
    found, certificate = solve_box_simplex(
        Dense(matrix), linear, upper=upper, total=(size, size), tolerance=1e-6
    )
    gradient = matrix @ found - linear
    order = np.argsort(gradient)
    least = np.zeros(size)
    least[order] = np.diff(np.minimum(np.cumsum(upper[order]), size), prepend=0)
    scale = max(1.0, abs(certificate.objective))
    assert certificate.gap == pytest.approx(gradient @ (found - least), abs=1e-9 * scale)
    assert certificate.gap <= 1e-5 * scale
    assert certificate.converged
