"""Draws from Heckman's models, for their tests."""

from __future__ import annotations

import numpy as np
import pandas as pd


def drawn(n, rho, seed):
    """Return columns x and z, the error of the outcome, and who is selected: by x + z."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(n, 2)), columns=["x", "z"])
    errors = random.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)
    return frame, errors[:, 1], frame.x + frame.z + errors[:, 0] > 0


def simulated(n=2000, rho=0.7, seed=0):
    """Return rows, and the outcome 1 + 2x + ε where it is seen."""
    frame, error, seen = drawn(n, rho, seed)
    return frame, (1 + 2 * frame.x + error).where(seen)


def simulated_classes(n=4000, rho=0.7, seed=0):
    """Return rows, and whether x + ε > 0.3, as 0 and 1 where it is seen."""
    frame, error, seen = drawn(n, rho, seed)
    return frame, (frame.x + error > 0.3).astype(float).where(seen)
