"""Kernel matrices, whole, on demand and of low rank, against their entries."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.numerics.kernel_matrix import KernelMatrix, LowRankMatrix
from unskew.numerics.kernels import GaussianKernel


def gaussian_matrix(points):
    distances = ((points[:, None] - points) ** 2).sum(axis=2)
    return np.exp(-distances / (2 * 1.5**2)) + 0.1 * np.eye(len(points))


@pytest.mark.parametrize(("n_held", "memory"), [(300, 2**30), (70, 4 * 300 * 280), (0, 0)])
def test_rows_that_are_held_and_rows_that_are_not(n_held, memory):
    points = np.random.default_rng(0).normal(size=(300, 4))
    matrix = KernelMatrix(GaussianKernel(1.5), points, ridge=0.1, memory=memory)
    exact = gaussian_matrix(points)
    vector = np.random.default_rng(1).normal(size=300)
    rows, columns = np.array([3, 50, 7]), np.array([50, 3, 200, 1])
    assert matrix.exact_product(vector) == pytest.approx(exact @ vector, abs=1e-11)
    assert matrix.n_held == 0
    assert matrix.quick_product(vector) == pytest.approx(exact @ vector, abs=1e-4)
    assert matrix.n_held == n_held
    expected = exact[np.ix_(rows, columns)]
    assert matrix.block(rows, columns, exact=True) == pytest.approx(expected, abs=1e-13)
    assert matrix.block(rows, columns, exact=False) == pytest.approx(expected, abs=1e-6)


def test_rows_that_are_needed_take_the_place_of_others():
    """Sets of vectors and blocks, of which no two fit together."""
    random = np.random.default_rng(2)
    points = random.normal(size=(300, 4))
    matrix = KernelMatrix(GaussianKernel(1.5), points, ridge=0.1, memory=4 * 300 * 280)
    exact = gaussian_matrix(points)
    for size in (40, 80, 90, 30, 150, 100):
        rows = np.sort(random.permutation(300)[:size])
        vector = np.zeros(300)
        vector[rows] = random.normal(size=size)
        assert matrix.quick_product(vector) == pytest.approx(exact @ vector, abs=1e-4)
        assert matrix.n_held <= 70
        square = matrix.block(rows, rows, exact=False, lower=True)
        expected = exact[np.ix_(rows, rows)]
        assert np.tril(square) == pytest.approx(np.tril(expected), abs=1e-6)


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
