"""The certificate of a fitted linear model, and what it says for a classifier."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from unskew.numerics.typing import FloatArray
from unskew.theory.bound import Bound
from unskew.theory.linear_models import LinearModel
from unskew.theory.linear_moves import LinearSystem, Moves
from unskew.theory.mean_certificate import why_vacuous
from unskew.theory.regions import Region
from unskew.theory.wording import (
    Known,
    flips,
    has_rows,
    in_blocks,
    relative_remark,
    weighted_spread,
)


def linear_certificate(
    system: LinearSystem,
    region: Region,
    known: Known,
    *,
    population: Any = None,
    refits: int = 10,
    random_state: Any = 0,
) -> Bound:
    """Return the certificate of a linear model for all weights of a region."""
    model, moves = system.model, system.moves(region)
    spread = weighted_spread(system.scores, model.weights)
    value = moves.on_average
    risk = model.loss.change_of_mean(system.z, model.weights, value)
    terms: dict[str, float] = {
        "spread of the predictions": spread,
        "at the sample row that moves most": float(moves.reach.max()),
        "in the norm of the coefficients": moves.size * float(np.linalg.norm(moves.root, 2)),
        "change of the weighted mean loss": risk,
        "part left by the optimiser": value * moves.gap / moves.size if moves.size else 0.0,
    }
    remarks = [*known.remarks, relative_remark(value, spread)]
    if model.classes is not None:
        more, said = flips(
            system.scores,
            moves.reach,
            model.weights,
            lambda: _population_scores(model, moves, population),
            with_population=has_rows(population),
        )
        terms, remarks = {**terms, **more}, [*remarks, said]
    estimate = _refit_spread(system, region, refits, random_state)
    if estimate is not None:
        terms["refit spread (an estimate, no bound)"] = estimate
        remarks.append(
            "As an estimate, not a bound: refits with weights drawn as the data allow move the "
            f"predictions by {estimate:.3g}."
        )
    return Bound(
        value=value,
        terms={**terms, **known.terms},
        assumptions=(*_about(model, moves), *known.assumptions),
        reference=f"strong convexity, the curvature of the loss and {known.region}",
        statement=f"{known.headline} the {model.what} (root mean square over the weighted sample)",
        reason=why_vacuous(value, spread) if value > 0 else "",
        remarks=tuple(remarks),
    )


def _population_scores(
    model: LinearModel, moves: Moves, population: Any
) -> Iterator[tuple[FloatArray, FloatArray]]:
    for rows in in_blocks(population):
        features = model.of_rows(rows)
        yield features @ model.coefficients, moves.reach_of(features)


def _refit_spread(
    system: LinearSystem, region: Region, refits: int, random_state: Any
) -> float | None:
    """Return the change of the predictions over draws of the weights, to first order."""
    drawn = region.draws(check_random_state(random_state), refits)
    if drawn is None or system.model.loss.bend is None:
        return None
    change = system.first_order(drawn)
    weights = system.model.weights
    return math.sqrt(float(np.average((change**2).mean(axis=1), weights=weights)))


def _about(model: LinearModel, moves: Moves) -> tuple[str, ...]:
    same = "the perfect weights have the same scale; the penalty, and earlier steps, stay the same"
    if not moves.penalised:
        return (f"{model.name} with the perfect weights is fitted to convergence", same)
    return (
        f"{model.name} with the perfect weights is fitted to convergence",
        same,
        "the intercept of the perfectly weighted model is penalised as the coefficients are, which "
        f"that of {model.name} is not",
    )
