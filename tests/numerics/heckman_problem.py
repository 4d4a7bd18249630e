"""A selection problem, for tests of its likelihoods."""

from __future__ import annotations

import numpy as np

from unskew.numerics.heckman import Basis, SelectionProblem


def problem(*, n=400, rho=0.6, seed=0, weight=None, classes=False):
    """Return rows with an outcome that is a number, or whether that is above 0.5."""
    random = np.random.default_rng(seed)
    z = np.column_stack([np.ones(n), random.normal(size=(n, 2))])
    errors = random.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)
    selected = z @ [0.2, 0.7, 1.0] + errors[:, 0] > 0
    x = z[selected][:, :2]
    y = x @ [1.0, 2.0] + 1.5 * errors[selected, 1]
    y = (y > 0.5).astype(float) if classes else y
    weight = np.ones(n) if weight is None else weight
    return SelectionProblem(Basis.from_matrix(z), Basis.from_matrix(x), selected, y, weight)
