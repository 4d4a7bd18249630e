"""The learners that evaluate the weights.

A learner takes a sample, its labels and the test rows, and returns a function from weights to
predictions: what does not depend on the weights is then done once for all methods. Any estimator of
scikit-learn can be added to ``LEARNERS``:

    LEARNERS["ridge"] = estimator(Ridge())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR

from unskew.experiments import low_rank_svr
from unskew.experiments.methods import Array, kernel_width

Trained = Callable[[Array], Array]
Learner = Callable[[Array, Array, Array], Trained]

CACHE_MEGABYTES = 1000

RANK_TOLERANCE = 1e-7
"""The largest error of an entry of the kernel matrix; predictions are then nearer to the optimum
than those of LIBSVM, which stops at a violation of 1e-3."""

ROWS_A_RANK = 30
"""How many rows a rank must stand for: with fewer, LIBSVM is faster."""


def paper_svr(sample: Array, labels: Array, test: Array) -> Trained:
    """Return the paper's SVR: C = 1, ε = 0.1, Gaussian kernel with σ = √(d/2), by LIBSVM."""
    return gaussian_svr(sample, labels, test, width=kernel_width(sample.shape[1]))


def gaussian_svr(sample: Array, labels: Array, test: Array, *, width: float) -> Trained:
    """Return ``SVR(C=1, epsilon=0.1)`` with a kernel that is computed once for all weights.

    Where the kernel matrix has a low rank, it is never made: see ``low_rank_svr``.
    """
    gamma = 1.0 / (2.0 * width**2)
    factor = low_rank_svr.factor_kernel(
        sample, gamma=gamma, tolerance=RANK_TOLERANCE, max_rank=len(sample) // ROWS_A_RANK
    )
    if factor is not None:
        return _on_factor(factor, labels, factor.of_rows(test))
    kernel, test_kernel = rbf_kernel(sample, gamma=gamma), rbf_kernel(test, sample, gamma=gamma)

    def predict(weights: Array) -> Array:
        # A row of weight zero has no part in the solution. LIBSVM drops such rows by itself, but
        # then scikit-learn's predict takes the wrong columns of a kernel that is given as a matrix.
        kept = np.flatnonzero(weights)
        among, against = kernel, test_kernel
        if len(kept) < len(weights):
            among, against = kernel[np.ix_(kept, kept)], test_kernel[:, kept]
        svr = SVR(kernel="precomputed", C=1.0, epsilon=0.1, cache_size=CACHE_MEGABYTES)
        svr.fit(among, labels[kept], sample_weight=weights[kept])
        return np.asarray(svr.predict(against))

    return predict


def _on_factor(factor: low_rank_svr.Factor, labels: Array, features: Array) -> Trained:
    def predict(weights: Array) -> Array:
        kept = np.flatnonzero(weights)
        among = factor.L if len(kept) == len(weights) else factor.L[kept]
        v, b = low_rank_svr.fit(among, labels[kept], weights[kept])
        return np.asarray(features @ v + b)

    return predict


def estimator(prototype: Any) -> Learner:
    """Return a learner that trains clones of a scikit-learn estimator."""

    def learner(sample: Array, labels: Array, test: Array) -> Trained:
        def predict(weights: Array) -> Array:
            fitted = clone(prototype).fit(sample, labels, sample_weight=weights)
            return np.asarray(fitted.predict(test))

        return predict

    return learner


LEARNERS: dict[str, Learner] = {"svr": paper_svr}
