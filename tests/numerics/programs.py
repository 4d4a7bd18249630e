"""Programs to solve, and a matrix to state them with."""

from __future__ import annotations

import numpy as np


class Dense:
    """A matrix that is given; it counts the large square blocks that are asked for."""

    def __init__(self, values):
        self.values, self.size = values, len(values)
        self.large_blocks = 0

    def quick_product(self, vector):
        return (self.values.astype(np.float32) @ vector.astype(np.float32)).astype(float)

    def exact_product(self, vector):
        return self.values @ vector

    def block(self, rows, columns, *, exact, lower=False):
        self.large_blocks += min(len(rows), len(columns)) > 100
        block = self.values[np.ix_(rows, columns)].astype(np.float64 if exact else np.float32)
        if lower:
            block[np.triu_indices(len(block), 1)] = np.nan  # which nobody may read
        return block


def random_program(seed, size, rank=None):
    """Return a positive semi-definite matrix and a linear term."""
    random = np.random.default_rng(seed)
    factor = random.normal(size=(size, rank or size))
    return factor @ factor.T, random.normal(size=size) * size


def kernel_program(seed, size, columns, bandwidth):
    """Return the program of kernel mean matching with a shifted population."""
    random = np.random.default_rng(seed)
    rows, others = random.normal(size=(size, columns)), random.normal(size=(2 * size, columns))
    others[:, 0] += 1

    def kernel(left, right):
        squares = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T
        return np.exp(-np.maximum(squares, 0) / (2 * bandwidth**2))

    return kernel(rows, rows), size * kernel(rows, others).mean(axis=1)
