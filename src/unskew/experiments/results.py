"""From single draws to means, standard deviations, paired differences and intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from unskew.experiments.paper import TABLE_1
from unskew.experiments.plan import Plan, choose_directions
from unskew.experiments.protocol import Case, Outcome
from unskew.experiments.records import Kept

Row = dict[str, Any]
CONFIDENCE = 0.95


class Report(NamedTuple):
    """Everything that is written of a run: each becomes a JSON file of its name."""

    results: list[Row]
    differences: list[Row]
    averages: list[Row]
    run: Row


def report_on(plan: Plan, kept: Kept) -> Report:
    """Summarise the draws of a plan."""
    return Report(
        results=results(plan, kept.outcomes),
        differences=differences(plan, kept.outcomes),
        averages=averages(plan, kept.outcomes),
        run=about(plan, kept),
    )


def results(plan: Plan, outcomes: Mapping[Case, Outcome]) -> list[Row]:
    """Return one object for each set, scaling, total, mechanism and method.

    ``nmse_mean`` and ``nmse_sd`` are over ``draws`` draws, of the chosen direction where the
    mechanism is logistic; ``m`` is the mean sample size and ``ess`` the mean effective sample size.
    """
    rows = []
    for name, scaling, mechanism, number, drawn in _panels(plan, outcomes):
        for total in plan.totals:
            for method in plan.methods:
                errors = _errors(drawn, method, total)
                printed = None
                if total == "paper" and mechanism == "logistic" and name in TABLE_1:
                    printed = TABLE_1[name].nmse.get(method)
                rows.append(
                    {
                        "set": name,
                        "scaling": scaling,
                        "total": total,
                        "mechanism": mechanism,
                        "method": method,
                        "nmse_mean": float(errors.mean()),
                        "nmse_sd": _spread(errors),
                        "draws": len(drawn),
                        "m": round(float(np.mean([each.m for each in drawn]))),
                        "n": drawn[0].n,
                        "n_test": drawn[0].n_test,
                        "ess": float(np.mean([each.methods[method].ess for each in drawn])),
                        "paper_nmse_mean": printed.mean if printed else None,
                        "paper_nmse_sd": printed.sd if printed else None,
                        "direction": number,
                    }
                )
    return rows


def differences(plan: Plan, outcomes: Mapping[Case, Outcome]) -> list[Row]:
    """Return how each method's error differs from Unweighted's in the same draw.

    ``low`` and ``high`` bound Student's 95 % interval of the mean over draws; ``better`` counts the
    draws with a smaller error.
    """
    return [
        {
            "set": name,
            "scaling": scaling,
            "total": total,
            "mechanism": mechanism,
            "method": method,
            "against": "Unweighted",
            **_interval(_errors(drawn, method, total) - _errors(drawn, "Unweighted", total)),
        }
        for name, scaling, mechanism, _, drawn in _panels(plan, outcomes)
        for total in plan.totals
        for method in plan.methods
        if method != "Unweighted"
    ]


def averages(plan: Plan, outcomes: Mapping[Case, Outcome]) -> list[Row]:
    """Return the means over all directions of the logistic selection, under the first scaling.

    The unit is the direction: ``nmse_sd`` and the interval of the difference from Unweighted are
    over the means of the directions.
    """
    if "logistic" not in plan.mechanisms or not plan.averaging_draws:
        return []
    n_draws = min(plan.averaging_draws, plan.choosing_draws)
    scaling = plan.scalings[0]
    rows = []
    for data in plan.sets:
        drawn = [
            _drawn(outcomes, data.name, scaling, "logistic", number, n_draws)
            for number in range(plan.directions)
        ]
        for total in plan.averaging_totals:
            base = _direction_means(drawn, "Unweighted", total)
            for method in plan.all_methods:
                means = _direction_means(drawn, method, total)
                rows.append(
                    {
                        "set": data.name,
                        "scaling": scaling,
                        "total": total,
                        "method": method,
                        "directions": plan.directions,
                        "draws_per_direction": n_draws,
                        "nmse_mean": float(means.mean()),
                        "nmse_sd": _spread(means),
                        "against": "Unweighted",
                        **_interval(means - base),
                    }
                )
    return rows


def _direction_means(drawn: Sequence[Sequence[Outcome]], method: str, total: str) -> np.ndarray:
    return np.array([_errors(each, method, total).mean() for each in drawn])


def about(plan: Plan, kept: Kept) -> Row:
    """Return how a run was made: settings, sizes, chosen directions, time, warnings."""
    spent: Counter[str] = Counter()
    warned: Counter[str] = Counter()
    for outcome in kept.outcomes.values():
        spent.update(outcome.seconds)
        warned.update(outcome.warnings)
    return {
        "settings": plan.settings,
        "draws": plan.draws,
        "directions": plan.directions,
        "choosing_draws": plan.choosing_draws,
        "averaging_draws": min(plan.averaging_draws, plan.choosing_draws),
        "sources": {data.name: Path(data.source).name for data in plan.sets},
        "calls": kept.calls,
        "seconds": {part: round(seconds, 1) for part, seconds in spent.most_common()},
        "warnings": dict(warned),
    }


def _panels(
    plan: Plan, outcomes: Mapping[Case, Outcome]
) -> Iterator[tuple[str, str, str, int | None, list[Outcome]]]:
    """Yield each set, scaling and mechanism with its direction and draws."""
    chosen = choose_directions(plan, outcomes)
    for data in plan.sets:
        for mechanism in plan.mechanisms:
            logistic = mechanism == "logistic"
            for scaling in plan.scalings if logistic else plan.scalings[:1]:
                number = chosen[data.name, scaling] if logistic else None
                drawn = _drawn(outcomes, data.name, scaling, mechanism, number, plan.draws)
                yield data.name, scaling, mechanism, number, drawn


def _drawn(
    outcomes: Mapping[Case, Outcome],
    name: str,
    scaling: str,
    mechanism: str,
    number: int | None,
    n_draws: int,
) -> list[Outcome]:
    return [outcomes[Case(name, scaling, mechanism, number, draw)] for draw in range(n_draws)]


def _errors(drawn: Sequence[Outcome], method: str, total: str) -> np.ndarray:
    return np.array([each.methods[method].nmse[total] for each in drawn])


def _spread(values: np.ndarray) -> float | None:
    return float(values.std(ddof=1)) if len(values) > 1 else None


def _interval(change: np.ndarray) -> Row:
    n_draws = len(change)
    mean = float(change.mean())
    margin = None
    if n_draws > 1:
        quantile = stats.t.ppf((1 + CONFIDENCE) / 2, n_draws - 1)
        margin = float(quantile * change.std(ddof=1) / np.sqrt(n_draws))
    return {
        "difference": mean,
        "low": None if margin is None else mean - margin,
        "high": None if margin is None else mean + margin,
        "better": int((change < 0).sum()),
        "of": n_draws,
    }
