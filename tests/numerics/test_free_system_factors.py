"""Cholesky factors against NumPy's, and against the matrix that they factor."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.numerics import free_system
from unskew.numerics.free_system import factorise_lower


def kernel_matrix(size, bandwidth, ridge, dtype):
    """A Gaussian kernel matrix with a ridge; what is above the diagonal must not be used.

    A signalling NaN stands there, as may be in memory that was never written: any sum with it is an
    invalid operation.
    """
    points = np.random.default_rng(size).normal(size=(size, 3))
    squares = np.square(points[:, None] - points).sum(axis=2)
    matrix = np.exp(-squares / (2 * bandwidth**2)) + ridge * np.eye(size)
    block = matrix.astype(dtype)
    bits, kind = (0x7FA00000, np.uint32) if dtype == np.float32 else (0x7FF4 << 48, np.uint64)
    block.view(kind)[np.triu_indices(size, 1)] = bits
    return matrix, block


@pytest.fixture(params=[1, 2, 3], ids="{} threads".format)
def in_parts(request, monkeypatch):
    """Factor small matrices as large ones are: 128 columns at a time."""
    monkeypatch.setattr(free_system, "_ONE_THREAD", 0)
    monkeypatch.setattr(free_system, "available_cores", lambda: request.param)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 127, 128, 129, 256, 300])
def test_the_factor_is_that_of_numpy(size, dtype):
    matrix, block = kernel_matrix(size, 0.5, 0.1, dtype)
    assert factorise_lower(block)
    tolerance = float(200 * np.finfo(dtype).eps)
    assert np.tril(block) == pytest.approx(np.linalg.cholesky(matrix), abs=tolerance)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("ridge", [1e-3, 1e-4])
def test_single_precision_where_the_matrix_is_far_from_regular(ridge):
    """The square of the factor is the matrix up to rounding, whatever its condition."""
    matrix, block = kernel_matrix(300, 5.0, ridge, np.float32)
    assert np.linalg.cond(matrix) > 0.5 * 300 / ridge
    assert factorise_lower(block)
    factor = np.tril(block).astype(np.float64)
    assert np.abs(factor @ factor.T - matrix).max() < 30 * np.finfo(np.float32).eps


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("place", [0, 100, 249])
def test_a_matrix_that_is_not_positive_definite(place):
    _, block = kernel_matrix(250, 0.5, 0.1, np.float64)
    block[place, place] = -1.0
    assert not factorise_lower(block)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [300, 1100])  # on one thread, and on several
def test_as_it_is_used(size, dtype):
    matrix, block = kernel_matrix(size, 0.5, 0.1, dtype)
    assert factorise_lower(block)
    factor = np.tril(block).astype(np.float64)
    assert np.abs(factor @ factor.T - matrix).max() < 30 * np.finfo(dtype).eps
