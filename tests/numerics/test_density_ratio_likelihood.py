"""KLIEP's coefficients are the optimum, and the duality gap bounds how far they are from it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from unskew.numerics.density_ratio import solve_kliep
from unskew.numerics.kernels import GaussianKernel


def bases(bandwidth, d=1, n_centres=15, seed=0):
    random = np.random.default_rng(seed)
    sample, population = random.normal(size=(120, d)), random.normal(0.7, 1, (90, d))
    kernel = GaussianKernel(bandwidth)
    mine, theirs, centres = (
        kernel.prepare(rows) for rows in (sample, population, population[:n_centres])
    )
    return kernel.block(mine, centres), kernel.block(theirs, centres)


@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("d", [1, 3])
def test_against_a_general_solver(bandwidth, d):
    mine, theirs = bases(bandwidth, d)
    weight, means = np.arange(90) % 3 + 1.0, mine.mean(axis=0)
    shares = weight / weight.sum()
    found = solve_kliep(theirs, weight, means)

    def negative(p):
        return -shares @ np.log(np.maximum(theirs @ (p / means), 1e-300))

    reference = minimize(
        negative,
        np.full(15, 1 / 15),
        jac=lambda p: -(shares / (theirs @ (p / means))) @ theirs / means,
        bounds=[(0, 1)] * 15,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert found.converged
    assert found.coefficients @ means == pytest.approx(1)
    assert (found.coefficients >= 0).all()
    assert found.objective == pytest.approx(shares @ np.log(theirs @ found.coefficients))
    assert found.objective >= -reference.fun - 1e-8
    assert found.objective == pytest.approx(-reference.fun, abs=1e-4)


def test_the_gap_bounds_the_distance_from_the_optimum():
    mine, theirs = bases(0.4, n_centres=60)
    means = mine.mean(axis=0)
    best = solve_kliep(theirs, np.ones(90), means).objective
    for steps in range(4):
        early = solve_kliep(theirs, np.ones(90), means, max_iterations=steps)
        assert not early.converged or early.gap <= 1e-8
        assert -1e-8 <= best - early.objective <= early.gap + 1e-8


def test_many_equal_columns_and_rows_that_nothing_reaches():
    mine, theirs = bases(0.5)
    twice = solve_kliep(np.hstack([theirs, theirs]), np.ones(90), np.tile(mine.mean(axis=0), 2))
    once = solve_kliep(theirs, np.ones(90), mine.mean(axis=0))
    assert twice.objective == pytest.approx(once.objective, abs=1e-7)
    further = np.vstack([theirs, np.zeros((10, 15))])
    assert solve_kliep(further, np.ones(100), mine.mean(axis=0)).objective == pytest.approx(
        once.objective, abs=1e-7
    )
    nothing = solve_kliep(np.zeros((3, 2)), np.ones(3), np.ones(2))
    assert not nothing.converged
    assert not nothing.coefficients.any()


def test_values_next_to_zero_count_as_zero():
    """Their inverses would be infinite; the other rows have the likelihood of two cells."""
    basis = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1e-310], [0.0, 1.0], [1e-310, 1e-305]])
    found = solve_kliep(basis, np.ones(5), np.array([0.5, 0.5]))
    assert found.converged
    assert found.coefficients == pytest.approx([1.5, 0.5], abs=1e-6)
    assert not solve_kliep(basis, np.ones(5), np.array([1e-300, 0.0])).coefficients.any()
