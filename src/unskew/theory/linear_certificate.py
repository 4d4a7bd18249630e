"""The certificate of a fitted linear model, and what it says for a classifier."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from unskew.theory.asked import Asked
from unskew.theory.bound import Bound
from unskew.theory.flips import WithinEllipsoid
from unskew.theory.linear_models import LinearModel
from unskew.theory.linear_moves import LinearSystem, Moves
from unskew.theory.linear_refits import Refits, joint_limits
from unskew.theory.linear_refits import refits as refitted
from unskew.theory.mean_certificate import why_vacuous
from unskew.theory.regions import Region
from unskew.theory.wording import (
    FLIPPED,
    FLIPPED_IN_POPULATION,
    Known,
    flipped_remark,
    relative_remark,
    weighted_spread,
)


def linear_certificate(
    system: LinearSystem,
    region: Region,
    known: Known,
    asked: Asked,
    *,
    delta: float = 0.05,
    refits: int = 10,
    random_state: Any = 0,
) -> Bound:
    """Return the certificate of a linear model for all weights of a region."""
    random = check_random_state(random_state)
    if region.drawn:
        found = refitted(system, region, delta, random)
        if found is not None:
            return _of_draws(system, found, known, asked, delta)
    model, moves = system.model, system.moves(region)
    terms = _terms(
        system,
        value=moves.on_average,
        most=float(moves.reach.max()),
        norm=moves.norm,
        left=moves.left,
    )
    remarks: list[str] = []
    if model.classes is not None:
        share, rule = best_rule(system, moves)
        shares = {FLIPPED: share}
        if asked.has_rows:
            shares[FLIPPED_IN_POPULATION] = float(asked.flips(rule, system.read)[0])
        terms |= shares
        remarks.append(flipped_remark(shares))
    estimate = _refit_spread(system, region, refits, random)
    if estimate is not None:
        terms["refit spread (an estimate, no bound)"] = estimate
        remarks.append(
            "As an estimate, not a bound: refits with weights drawn as the data allow move the "
            f"predictions by {estimate:.3g}."
        )
    return _bound(system, known, terms, remarks, moves.on_average, penalised=moves.penalised)


def best_rule(system: LinearSystem, moves: Moves) -> tuple[float, WithinEllipsoid]:
    """Return the share of the weighted sample that could flip, by the rule that bounds it best."""
    given = system.model.features, system.scores, system.model.weights
    rules = [WithinEllipsoid(one, *given) for one in moves.ellipsoids]
    total = float(system.model.weights.sum())
    shares = [float(rule.shares(rule.tally(*given), total)[0]) for rule in rules]
    best = int(np.argmin(shares))
    return shares[best], rules[best]


def _of_draws(
    system: LinearSystem, found: Refits, known: Known, asked: Asked, delta: float
) -> Bound:
    """Return the certificate where draws of the weights are as likely as the perfect ones."""
    model, numbers = system.model, {"average": found.on_average}
    if model.classes is not None:
        sums = found.rule.tally(model.features, system.scores, model.weights)
        numbers[FLIPPED] = sums / model.weights.sum()
        if asked.has_rows:
            numbers[FLIPPED_IN_POPULATION] = asked.flips(found.rule, system.read)
    numbers |= {"most": found.most, "norm": found.norm}
    limits = dict(zip(numbers, joint_limits(list(numbers.values()), delta), strict=True))
    value = limits["average"]
    terms = _terms(system, value=value, most=limits["most"], norm=limits["norm"], left=found.left)
    shares = {name: limits[name] for name in (FLIPPED, FLIPPED_IN_POPULATION) if name in limits}
    estimate = math.sqrt(float(np.mean(found.on_average**2)))
    terms |= {**shares, "refit spread (an estimate, no bound)": estimate}
    remarks = [flipped_remark(shares)] if shares else []
    remarks.append(
        f"All of these hold at once for all but {100 * delta:.6g} % of "
        f"{len(found.on_average)} refits with weights drawn as the data allow."
    )
    return _bound(system, known, terms, remarks, value, penalised=False)


def _terms(
    system: LinearSystem, *, value: float, most: float, norm: float, left: float
) -> dict[str, float]:
    model = system.model
    return {
        "spread of the predictions": weighted_spread(system.scores, model.weights),
        "at the sample row that moves most": most,
        "in the norm of the coefficients": norm,
        "change of the weighted mean loss": model.loss.change_of_mean(
            system.z, model.weights, value
        ),
        "part left by the optimiser": left,
    }


def _bound(
    system: LinearSystem,
    known: Known,
    terms: dict[str, float],
    remarks: list[str],
    value: float,
    *,
    penalised: bool,
) -> Bound:
    model, spread = system.model, terms["spread of the predictions"]
    return Bound(
        value=value,
        terms={**terms, **known.terms},
        assumptions=(*_about(model, penalised), *known.assumptions),
        reference=f"strong convexity, the curvature of the loss and {known.region}",
        statement=f"{known.headline} the {model.what} (root mean square over the weighted sample)",
        reason=why_vacuous(value, spread) if value > 0 else "",
        remarks=(*known.remarks, relative_remark(value, spread), *remarks),
    )


def _refit_spread(
    system: LinearSystem, region: Region, refits: int, random: np.random.RandomState
) -> float | None:
    """Return the change of the predictions over draws of the weights, to first order."""
    drawn = region.draws(random, refits)
    if drawn is None or system.model.loss.bend is None:
        return None
    change = system.move_to_first_order(drawn - 1)
    weights = system.model.weights
    return math.sqrt(float(np.average((change**2).mean(axis=1), weights=weights)))


def _about(model: LinearModel, penalised: bool) -> tuple[str, ...]:
    same = "the perfect weights have the same scale; the penalty, and earlier steps, stay the same"
    if not penalised:
        return (f"{model.name} with the perfect weights is fitted to convergence", same)
    return (
        f"{model.name} with the perfect weights is fitted to convergence",
        same,
        "the intercept of the perfectly weighted model is penalised as the coefficients are, which "
        f"that of {model.name} is not",
    )
