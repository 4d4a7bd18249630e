"""From an estimate to its sensitivity to hidden selection."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unskew.errors import InputError, ParameterError
from unskew.estimation.hidden_selection import MOST_ODDS, Basis, HiddenSelection
from unskew.estimation.left_out import odds_of_columns
from unskew.estimation.sensitivity import ColumnOdds, OddsBounds, Sensitivity, SurveyBias
from unskew.numerics.survey_bias import proxy_moments
from unskew.numerics.typing import FloatArray

if TYPE_CHECKING:
    from unskew.estimation.results import Estimate

PHIS = (0.0, 0.5, 1.0)
FAR_FROM_SOLVED = 1e-6
"""A duality gap that is worth a note, as a share of the range of y."""


def analyse(
    found: Estimate,
    basis: Basis | str | None,
    *,
    odds: ArrayLike,
    threshold: float | None,
    sharp: bool,
    nested: bool | None,
    benchmark: bool,
) -> Sensitivity:
    """Return what :meth:`unskew.Estimate.sensitivity` does."""
    factors, goal = checked_odds(odds), _checked_threshold(threshold, found)
    if not isinstance(basis, Basis):
        raise InputError(
            basis or "This estimate was copied or loaded without its rows. Estimate it again."
        )
    if basis.target.statistic == "quantile":
        raise InputError(
            "The sensitivity of a quantile is not implemented: its bounds are those of a share. "
            'Estimate the share of rows below a number: estimate(X, y < number, ...), a "mean".'
        )
    about = basis.weighed.fit.target.about
    nested = basis.options.finite or about.selected if nested is None else nested
    hidden = HiddenSelection(basis, nested=nested)
    notes: list[str] = []
    if sharp and not hidden.can_keep_balance:
        sharp = False
        notes.append("Groups that were not weighed by do not keep the balance: bounds are plain.")
    breakdown_plain = hidden.breakdown(goal, sharp=False)
    breakdown = hidden.breakdown(goal, sharp=True) if sharp else breakdown_plain
    # The factor one and the breakdown are where the interval's way to the threshold begins and
    # ends; they are dropped afterwards.
    further = [1.0, *([breakdown] if breakdown < MOST_ODDS else [])]
    asked = sorted({*factors, *further})
    clip = found.is_share and found.outcome is None
    rows, gap = _bounds(hidden, asked, sharp=sharp, clip=clip)
    if gap > FAR_FROM_SOLVED * float(np.ptp(hidden.values)):
        notes.append(f"The sharp bounds are too wide by up to {gap:.1g}: the solver stopped early.")
    columns, unable = _odds_of_columns(basis, nested) if benchmark else ((), ())
    weighter = basis.weighed.weighter
    by_columns = weighter._estimates and weighter._corrects_columns
    return Sensitivity(
        value=found.value,
        unweighted=found.unweighted,
        interval=found.interval,
        bounds=tuple(row for row in rows if row.odds in factors),
        threshold=goal,
        breakdown=breakdown,
        breakdown_plain=breakdown_plain,
        breakdown_with_error=_interval_reaches(rows, found.value, goal),
        columns=columns,
        survey_bias=_survey_bias(hidden, found),
        weighed_by=tuple(map(str, weighter.columns_)) if by_columns else (),
        nested=nested,
        level=found.level,
        notes=(*notes, *unable),
        is_share=found.is_share,
        digits=found._digits,
    )


def _odds_of_columns(basis: Basis, nested: bool) -> tuple[tuple[ColumnOdds, ...], tuple[str, ...]]:
    """Return how much columns change odds; once for all groups and classes."""
    if nested not in basis.kept:
        basis.kept[nested] = odds_of_columns(basis.weighed, nested=nested)
    found: tuple[tuple[ColumnOdds, ...], tuple[str, ...]] = basis.kept[nested]
    return found


def checked_odds(odds: ArrayLike) -> list[float]:
    """Return the factors in order, or raise what is wrong with them."""
    try:
        factors = np.atleast_1d(np.asarray(odds, dtype=float))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"odds must be numbers of at least 1; got {odds!r}.") from error
    if factors.ndim != 1 or not len(factors):
        raise ParameterError(f"odds must be a number or a list of numbers; got {odds!r}.")
    wrong = factors[~(np.isfinite(factors) & (factors >= 1.0))]
    if len(wrong):
        raise ParameterError(
            f"odds must be at least 1 and finite: the factor by which odds of selection may be "
            f"off, in either direction; got {wrong[0]:g}."
        )
    if (factors > MOST_ODDS).any():
        raise ParameterError(f"odds must be at most {MOST_ODDS:,.0f}; got {factors.max():g}.")
    return sorted({float(one) for one in factors})


def _checked_threshold(threshold: Any, found: Estimate) -> float:
    if threshold is None:
        return found.unweighted
    if not isinstance(threshold, Real) or not np.isfinite(float(threshold)):
        raise ParameterError(f"threshold must be a number; got {threshold!r}.")
    return float(threshold)


def _bounds(
    hidden: HiddenSelection, odds: list[float], *, sharp: bool, clip: bool
) -> tuple[list[OddsBounds], float]:
    """Return bounds and intervals of each of the odds, and by how much they may be too wide."""

    def pairs(kind: bool) -> tuple[FloatArray, FloatArray, float]:
        ends = hidden.ends(odds, sharp=kind)
        reach = ends.bounds + np.array([-1.0, 1.0]) * hidden.margins(ends)
        return ends.bounds, np.clip(reach, 0.0, 1.0) if clip else reach, ends.gap

    def pair(row: Any) -> tuple[float, float]:
        return float(row[0]), float(row[1])

    plain = pairs(False)
    kept = pairs(True) if sharp else None
    rows = [
        OddsBounds(
            odds=factor,
            plain=pair(plain[0][place]),
            plain_interval=pair(plain[1][place]),
            sharp=None if kept is None else pair(kept[0][place]),
            sharp_interval=None if kept is None else pair(kept[1][place]),
        )
        for place, factor in enumerate(odds)
    ]
    return rows, 0.0 if kept is None else kept[2]


def _interval_reaches(rows: list[OddsBounds], value: float, threshold: float) -> float:
    """Return the odds at which the interval reaches the threshold, between those of the rows."""
    side, sign = (1, 1.0) if value < threshold else (0, -1.0)
    before: tuple[float, float] | None = None
    for row in rows:
        short = sign * (threshold - row.best_interval[side])
        if short <= 0:
            if before is None:
                return 1.0
            part = before[1] / (before[1] - short)
            logs = np.log([before[0], row.odds])
            return float(np.exp(logs[0] + part * (logs[1] - logs[0])))
        before = (row.odds, short)
    return float("inf")


def _survey_bias(hidden: HiddenSelection, found: Estimate) -> SurveyBias | None:
    """Return the indices of a mean of numbers; None of shares, groups, scores and totals."""
    target, weighed = hidden.basis.target, hidden.basis.weighed
    if target.statistic != "mean" or found.is_share or target.groups is not None:
        return None
    balance, design = hidden.balance, weighed.fit.sample.design
    features, means = balance.features, balance.means
    if features is None:
        assert balance.cells is not None
        features = (balance.cells[:, None] == np.arange(len(means))).astype(float)
    if not np.isfinite(means).all():
        return None
    moments = proxy_moments(target.outcome.values[:, 0], design, features, means)
    if moments is None:
        return None
    smub = [moments.standardised_bias(phi) for phi in PHIS]
    mub = [moments.spread * one for one in smub]
    return SurveyBias(moments.correlation, (smub[0], smub[1], smub[2]), (mub[0], mub[1], mub[2]))
