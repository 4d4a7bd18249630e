"""Kernel matrices, whole, on demand and of low rank, against their entries."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.numerics.kernel_matrix import KernelMatrix
from unskew.numerics.kernels import GaussianKernel
from unskew.numerics.low_rank import LowRankMatrix


def test_held_and_on_demand_matrices_agree():
    points = np.random.default_rng(0).normal(size=(300, 4))
    kernel = GaussianKernel(1.5)
    held, lean = (KernelMatrix(kernel, points, ridge=0.1, memory=m) for m in (2**30, 0))
    assert held.held is not None
    assert lean.held is None
    vector = np.random.default_rng(1).normal(size=300)
    distances = ((points[:, None] - points) ** 2).sum(axis=2)
    exact = np.exp(-distances / (2 * 1.5**2)) + 0.1 * np.eye(300)
    rows, columns = np.array([3, 50, 7]), np.array([50, 3, 200, 1])
    for matrix in (held, lean):
        assert matrix.exact_product(vector) == pytest.approx(exact @ vector, abs=1e-11)
        assert matrix.quick_product(vector) == pytest.approx(exact @ vector, abs=1e-4)
        expected = exact[np.ix_(rows, columns)]
        assert matrix.block(rows, columns, exact=True) == pytest.approx(expected, abs=1e-13)
        assert matrix.block(rows, columns, exact=False) == pytest.approx(expected, abs=1e-6)


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
