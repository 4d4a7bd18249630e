"""An estimate of what refits with other weights would change; it is not a bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lstsq
from sklearn.utils import check_random_state

from unskew.numerics.typing import FloatArray
from unskew.theory.fitted import KernelModel
from unskew.theory.regions import CellRegion


def refit_spread(
    fitted: KernelModel, region: CellRegion, *, refits: int, random_state: Any
) -> float:
    """Return the root mean square change of the predictions over draws of the weights.

    Parameters
    ----------
    fitted : KernelModel
    region : CellRegion
    refits : int
        How many draws.
    random_state : int, RandomState instance or None
    """
    ratios = region.draws(check_random_state(random_state), refits)
    moved = fitted.coefficients[:, None] * (ratios - 1)
    if fitted.squared:
        curvature = fitted.curvature(fitted.weights * region.least)
        change = curvature.moves(moved, fitted.weights[:, None] * ratios)
    else:
        change = _support_vector_moves(fitted, fitted.contributions.K - 1, moved)
    return float(np.sqrt(np.average((change**2).mean(axis=1), weights=fitted.weights)))


def _support_vector_moves(fitted: KernelModel, K: FloatArray, moved: FloatArray) -> FloatArray:
    """Return, to first order, how the predictions of a support vector regression move.

    Support vectors at their bound stay there, so their coefficients follow their weights; those on
    the edge of the tube stay on it.
    """
    limit = fitted.weights / (2 * fitted.penalty)
    free = np.flatnonzero(np.abs(fitted.coefficients) < limit * (1 - 1e-6))
    change = moved.copy()
    change[free] = 0.0
    image = K @ change
    if not len(free):
        return image
    system = np.ones((len(free) + 1, len(free) + 1))
    system[:-1, :-1] = K[np.ix_(free, free)]
    system[-1, -1] = 0.0
    right = -np.vstack([image[free], change.sum(axis=0)])
    solved = lstsq(system, right, cond=1e-8, lapack_driver="gelsy")[0]
    return image + K[:, free] @ solved[:-1] + solved[-1]
