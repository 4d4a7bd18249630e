from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from unskew.errors import InputError, ParameterError
from unskew.numerics.kernel_matrix import (
    gaussian_product,
    largest_eigenvalue,
    smallest_eigenvalue,
)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(300, 4))


@pytest.mark.parametrize("steps", [1, 3, 100])
def test_the_largest_eigenvalue_is_between_the_limits_however_early_it_stops(rows, steps):
    K = rbf_kernel(rows, gamma=0.25)
    true = np.linalg.eigvalsh(K)[-1]
    bracket = largest_eigenvalue(K, max_steps=steps)
    assert bracket.lower <= true <= bracket.upper
    if steps == 100:
        assert bracket.upper - bracket.lower <= 1e-6 * true


def test_the_matrix_need_not_be_formed(rows):
    held = largest_eigenvalue(rbf_kernel(rows, gamma=0.25))
    free = largest_eigenvalue(gaussian_product(rows, 0.25), size=len(rows))
    np.testing.assert_allclose(free[:2], held[:2], rtol=1e-9)


def test_the_smallest_eigenvalue_is_between_the_limits(rows):
    for gamma in (0.25, 3.0):
        K = rbf_kernel(rows, gamma=gamma)
        true = np.linalg.eigvalsh(K)[0]
        bracket = smallest_eigenvalue(K)
        assert bracket.lower <= true + bracket.floor
        assert true - bracket.floor <= bracket.upper


def test_duplicate_rows_have_nothing_above_the_floor(rows):
    K = rbf_kernel(np.vstack([rows, rows[:1]]), gamma=3.0)
    bracket = smallest_eigenvalue(K)
    assert bracket.lower == 0
    assert bracket.upper <= 2 * bracket.floor


def test_a_small_block_proves_that_nothing_is_left():
    smooth = np.linspace(0, 1, 2000)[:, None]
    bracket = smallest_eigenvalue(rbf_kernel(smooth, gamma=1.0))
    assert bracket.lower == 0
    assert bracket.upper <= 2 * bracket.floor


def test_bad_matrices_are_refused():
    with pytest.raises(InputError, match="square"):
        largest_eigenvalue(np.ones((2, 3)))
    with pytest.raises(InputError, match="negative"):
        largest_eigenvalue(np.array([[1.0, -0.5], [-0.5, 1.0]]))
    with pytest.raises(InputError, match="finite"):
        smallest_eigenvalue(np.array([[np.nan]]))
    with pytest.raises(ParameterError, match="size"):
        largest_eigenvalue(lambda vector: vector)
