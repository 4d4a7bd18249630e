r"""Kernel mean matching as it may have been solved in 2008: what the printed column could be.

The program is min ½βᵀKβ - κᵀβ with 0 ≤ β ≤ 1000 and Σβ = m. The paper does not say how it was
solved, nor how exactly. These are trials, not claims.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from scipy.optimize import brentq
from sklearn.metrics.pairwise import rbf_kernel

from unskew import KernelMeanMatching
from unskew.paper.learners import factor_kernel
from unskew.paper.methods import (
    Array,
    BiasedSample,
    TotalWeight,
    Weighting,
    kernel_width,
    population_size,
    sample_size,
)

BOUND = 1000.0
Solver = Callable[[Array, Array], Array]


class Matching:
    """A weighter that solves the program in its own way, given K = L Lᵀ and κ."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver

    def fit(self, X: Array, y: Array, *, population: Array) -> Matching:  # noqa: ARG002
        """Set the weights."""
        gamma = 1.0 / X.shape[1]
        factor = factor_kernel(X, gamma=gamma, tolerance=1e-7, max_rank=len(X))
        assert factor is not None  # no rank is higher than the number of rows
        sums = np.zeros(len(X))
        for start in range(0, len(population), 1000):
            sums += rbf_kernel(X, population[start : start + 1000], gamma=gamma).sum(axis=1)
        self.weights_ = self.solver(factor.L, sums * len(X) / len(population))
        return self


def interior_point(L: Array, kappa: Array, *, steps: int = 100, gap: float = 0.0) -> Array:
    """Return weights after some steps from equal ones, or at a gap relative to the objective."""
    m = len(kappa)
    beta, lower, upper, free = np.ones(m), np.ones(m), np.ones(m), 0.0
    for _ in range(steps):
        gradient = L @ (L.T @ beta) - kappa
        left = BOUND - beta
        distance = float(beta @ lower + left @ upper)
        objective = 0.5 * float(beta @ (gradient - kappa))
        residual = gradient - free - lower + upper
        if distance < gap * abs(objective) and np.abs(residual).max() < gap * np.abs(kappa).max():
            break
        centre = 0.1 * distance / (2 * m)
        diagonal = lower / beta + upper / left
        right = -residual + (centre / beta - lower) - (centre / left - upper)
        solved = _with_diagonal(L, diagonal)
        towards, ones = solved(right), solved(np.ones(m))
        d_free = (m - beta.sum() - towards.sum()) / ones.sum()
        d_beta = towards + d_free * ones
        d_lower = centre / beta - lower - lower / beta * d_beta
        d_upper = centre / left - upper + upper / left * d_beta
        rates = (d_beta / beta, -d_beta / left, d_lower / lower, d_upper / upper)
        length = min(1.0, 0.95 / max(0.95, *(-float(rate.min()) for rate in rates)))
        beta, free = beta + length * d_beta, free + length * d_free
        lower, upper = lower + length * d_lower, upper + length * d_upper
    return beta


def _with_diagonal(L: Array, diagonal: Array) -> Callable[[Array], Array]:
    """Return the solution of (L Lᵀ + diag) x = right, by Woodbury's identity."""
    scaled = L / np.sqrt(diagonal)[:, None]
    system = dsyrk(1.0, scaled.T)
    system[np.diag_indices(len(system))] += 1.0
    factored = cho_factor(system, check_finite=False)

    def solve(right: Array) -> Array:
        inner = cho_solve(factored, L.T @ (right / diagonal), check_finite=False)
        return np.asarray((right - L @ inner) / diagonal)

    return solve


def projected_gradient(L: Array, kappa: Array, *, steps: int) -> Array:
    """Return weights after some projected gradient steps of length 1/λ from equal ones."""
    m = len(kappa)
    beta = np.ones(m)
    largest = float(np.linalg.eigvalsh(L.T @ L)[-1])
    for _ in range(steps):
        moved = beta - (L @ (L.T @ beta) - kappa) / largest

        def excess(shift: float) -> float:
            return float(np.clip(moved - shift, 0.0, BOUND).sum() - m)  # noqa: B023

        beta = np.clip(moved - brentq(excess, moved.min() - BOUND, moved.max()), 0.0, BOUND)
    return beta


def _matched(total: TotalWeight = sample_size, **changes: Any) -> Weighting:
    def weighter(drawn: BiasedSample) -> KernelMeanMatching:
        width = kernel_width(drawn.sample.shape[1])
        slack = changes.get("slack", 0.0)
        if callable(slack):
            slack = slack(len(drawn.sample))
        given = {"ridge": 0.0, **changes, "slack": slack}
        return KernelMeanMatching(
            bandwidth=width, scaling=None, bound=BOUND, method="exact", overlap="ignore", **given
        )

    return Weighting(weighter, total)


class WithoutTheSample:
    """The exact program for the rows of the population that are not in the sample."""

    def fit(self, X: Array, y: Array, *, population: Array) -> WithoutTheSample:
        """Set the weights."""
        known = {row.tobytes() for row in X}
        others = np.array([row.tobytes() not in known for row in population])
        matched = _matched().weighter(BiasedSample(X, y, y, population))
        self.weights_ = matched.fit(X, y, population=population[others]).weights_
        return self


def _solved(solver: Callable[..., Array], **options: Any) -> Weighting:
    return Weighting(lambda _: Matching(lambda L, kappa: solver(L, kappa, **options)))


TRIALS = {
    "gradient to 1e-5": _matched(tolerance=1e-5),
    "weights that sum to n": _matched(population_size),
    "U without S": Weighting(lambda _: WithoutTheSample()),
    "slack (√m-1)/√m": _matched(slack=lambda m: (np.sqrt(m) - 1) / np.sqrt(m)),
    "interior point, gap 1e-3": _solved(interior_point, gap=1e-3),
    "interior point, 5 steps": _solved(interior_point, steps=5),
    "projected gradient, 500 steps": _solved(projected_gradient, steps=500),
}
"""KMM is to a violation of 1e-3 of the gradient, as in LIBSVM; the sample's
rows are among the population's."""
