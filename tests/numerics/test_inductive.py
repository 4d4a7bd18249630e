"""Weight functions: their constraints, their optimum, and which columns count."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from unskew.numerics.inductive import InductiveProblem, column_stretches
from unskew.numerics.kernels import GaussianKernel, WithMeans


def problem(kernel, m=60, n_centres=8, seed=0):
    random = np.random.default_rng(seed)
    points, others = random.normal(size=(m, 1)), random.normal(1, 1, (80, 1))
    means = kernel.block(kernel.prepare(points), kernel.prepare(others)).mean(axis=1)
    return InductiveProblem(kernel, points, means, np.ones(m), np.arange(n_centres)), means


@pytest.mark.parametrize("bound", [1000.0, 2.0])
def test_the_function_is_the_optimum_of_its_program(bound):
    """Against a general solver on the coefficients themselves."""
    kernel = GaussianKernel(1.0)
    inductive, means = problem(kernel)
    smoothing = 1e-3
    found, certificate = inductive.solve(smoothing, bound)
    basis, m = inductive.basis, len(inductive.basis)
    gram = kernel.block(*[kernel.prepare(inductive.points)] * 2)
    quadratic = basis.T @ gram @ basis / m**2
    penalty = basis[:8] * np.trace(quadratic) / np.trace(basis[:8])
    linear = basis.T @ means / m

    def objective(a):
        return 0.5 * a @ (quadratic + smoothing * penalty) @ a - linear @ a

    reference = minimize(
        objective,
        np.full(8, 1 / basis.sum(axis=1).mean()),
        jac=lambda a: (quadratic + smoothing * penalty) @ a - linear,
        hess=lambda a: quadratic + smoothing * penalty,
        method="trust-constr",
        constraints=[LinearConstraint(basis, 0, bound), LinearConstraint(basis.mean(axis=0), 1, 1)],
        options={"gtol": 1e-10, "xtol": 1e-12, "maxiter": 5000},
    )
    values = basis @ found.coefficients
    assert certificate.converged
    assert objective(found.coefficients) <= reference.fun + 1e-4 * abs(reference.fun)
    assert values.min() >= -1e-5
    assert values.max() <= bound * (1 + 1e-5)
    assert found.weigh(inductive.points).mean() == pytest.approx(1, abs=1e-6)


def test_the_means_of_the_columns_are_matched_first():
    random = np.random.default_rng(1)
    points, others = random.normal(size=(500, 3)), random.normal([0.7, 0, 0], 1, (800, 3))
    inner = GaussianKernel(2.0)
    kernel = WithMeans(inner, n_columns=3, strength=10.0)
    own = inner.block(inner.prepare(points), inner.prepare(others)).mean(axis=1)
    means = kernel.means(own, points, others.mean(axis=0))
    both = kernel.block(kernel.prepare(points), kernel.prepare(others)).mean(axis=1)
    assert means == pytest.approx(both)
    inductive = InductiveProblem(kernel, points, means, np.ones(500), np.arange(200))
    found, _ = inductive.solve(1e-7, 1000.0)
    weighted = np.average(points, axis=0, weights=found.weigh(points))
    assert weighted == pytest.approx(others.mean(axis=0), abs=0.01)


def test_columns_that_do_not_differ_do_not_count():
    random = np.random.default_rng(2)
    points, others = random.normal(size=(600, 4)), random.normal(size=(400, 4))
    others[:, 1] += 1
    others[:, 2] *= 1.5
    stretches = column_stretches(points, np.ones(600), others, np.ones(400))
    assert stretches.max() == stretches[1] == 1
    assert 0.3 < stretches[2] < 1
    assert (stretches[[0, 3]] == 0).all()
    same = column_stretches(points, np.ones(600), points[::-1], np.ones(600))
    assert (same == 1).all()
    constant = np.zeros((600, 2))
    assert np.isfinite(column_stretches(constant, np.ones(600), constant, np.ones(600))).all()
