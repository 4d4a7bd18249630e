r"""A sharper bound for linear models over the counts of cells: first order, and a remainder.

Let :math:`H_0` be the curvature at the fitted model and :math:`\bar H` the average curvature on the
way to the model of other weights, so that :math:`\bar H \Delta = -g`. In coordinates in which
:math:`H_0` is the identity, :math:`\bar H = 1 + E`,

.. math:: \Delta = -g - E \Delta, \qquad g = b + \sum_C t_C v_C,

where t are the relative errors of the counts and b is what does not depend on them. So a score
moves by at most its first order, :math:`|x^\top b| + \max_t |\sum_C t_C\, x^\top v_C|`, which is
different for each row, and the remainder :math:`\lVert E \rVert\, \lVert \Delta \rVert\, \lVert x
\rVert`. The part of E that comes from the weights is :math:`\sum_C t_C A_C` with
:math:`A_C = \sum_{i \in C} W_i k_i x_i x_i^\top`, of which, since :math:`\sum_C c_C t_C^2 \le r`,

.. math:: \Bigl\lVert \sum_C t_C A_C \Bigr\rVert^2 \le r\,\lambda_{\max}\Bigl(\sum_C A_C^2 / c_C
          \Bigr);

the part that comes from the curvature of the loss is at most :math:`\lambda_{\max}(\sum_i W_i
\kappa_i x_i x_i^\top)`, where :math:`\kappa_i` is by how much its average can differ from that at
the fitted score, as far as the score can move. That is known from the bound without this one, and
then from this one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unskew.numerics.joint_region import worst_norm, worst_norm_of
from unskew.numerics.typing import FloatArray
from unskew.theory.curvature import gram, inverse_root, top
from unskew.theory.flips import Ellipsoid
from unskew.theory.regions import CellRegion

if TYPE_CHECKING:
    from unskew.theory.linear_moves import LinearSystem, Moves

ROUNDS = 4
"""In which a smaller reach makes the remainder smaller. Any number gives a valid bound."""

MOST_WORK = 2e9
"""Of the products of the cells' matrices, beyond which only their limits are used."""


def first_order(system: LinearSystem, region: CellRegion, known: Moves) -> Moves:
    """Return the sharper bound, or the one that is known if that is smaller."""
    model, errors = system.model, region.errors
    features, weights = model.features, model.weights
    here = weights * model.loss.curvature(system.z, np.zeros(len(system.z)))
    root = inverse_root(gram(features, here) + np.diag(model.penalties))
    if root is None:
        return known
    # 1) The first order, in coordinates in which the curvature is one.
    rows = system.rows.rooted(root)
    sums = rows.sums(region.factors)
    left = root @ system.left
    along, fixed = region.along(rows)
    centre = left + fixed
    pull, dominant = worst_norm_of(errors, sums)
    pull += float(np.linalg.norm(centre))
    mapped = features @ root.T
    lengths = np.linalg.norm(mapped, axis=1)
    # 2) How far the model can be at all, in the same norm.
    farthest = float(np.linalg.norm(known.ball.along @ np.linalg.inv(root), 2))
    # 3) The remainder, which falls with the reach.
    by_weights = _of_weights(region, mapped, here)
    reach = known.reach
    first = Ellipsoid(along @ root, root.T @ centre, root, 0.0).reach(features)
    rest = np.inf
    for _ in range(ROUNDS):
        bending = weights * region.most * model.loss.bending(system.z, reach)
        change = by_weights + (top(gram(mapped, bending)) if bending.any() else 0.0)
        least = pull / (1 - change) if change < 1 else np.inf
        rest = change * min(farthest, least)
        smaller = np.minimum(reach, first + rest * lengths)
        done = not bending.any() or (smaller > 0.98 * reach).all()
        reach = smaller
        if done:
            break
    spread = root @ system.squares @ root.T
    widest = math.sqrt(top(spread))
    average = worst_norm(errors, sums @ spread @ sums.T)[0]
    average += math.sqrt(float(centre @ spread @ centre)) + rest * widest
    sharper = Ellipsoid(along @ root, root.T @ centre, root, rest).without_rest(system.squares)
    known = replace(known, ellipsoids=(*known.ellipsoids, sharper), reach=reach)
    if average >= known.on_average:
        return known
    return replace(
        known,
        on_average=average,
        norm=min(known.norm, (pull + rest) * float(np.linalg.norm(root, 2))),
        left=math.sqrt(float(left @ spread @ left)),
        dominant=dominant,
    )


def _of_weights(region: CellRegion, mapped: FloatArray, here: FloatArray) -> float:
    """Return a bound on the change of the curvature by the weights alone."""
    errors, cells = region.errors, region.cells.of_row[region.rows]
    factor = here * region.cells.factor[region.rows]
    fixed = top(gram(mapped, here * np.abs(region.fixed))) if region.fixed.any() else 0.0
    at_limits = top(gram(mapped, factor * errors.size[cells]))
    n_cells, d = len(errors.size), mapped.shape[1]
    if n_cells * d**3 > MOST_WORK:
        return fixed + at_limits
    together = np.zeros((d, d))
    order = np.argsort(cells, kind="stable")
    ends = np.searchsorted(cells[order], np.arange(n_cells + 1))
    for cell in np.flatnonzero(np.isfinite(errors.stiffness)):
        own = order[ends[cell] : ends[cell + 1]]
        matrix = gram(mapped[own], factor[own])
        together += matrix @ matrix / errors.stiffness[cell]
    return fixed + min(at_limits, math.sqrt(errors.radius * top(together)))
