"""The next step where a verdict is not good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unskew.diagnostics.diagnosis import Bias, Verdict
from unskew.diagnostics.thresholds import THRESHOLDS
from unskew.population.doubtful_columns import Doubt
from unskew.weighters.next_step import NextStep, leave_out

_GOOD = ("no bias found", "correctable")
_MOST_EVEN = "AutoWeights"
_BALANCE_EVERY_COLUMN = (_MOST_EVEN, "DensityRatioWeights")


def with_next_step(
    verdict: Verdict,
    bias: Bias,
    *,
    weighted: bool,
    method: str | None,
    smoothed_by: Sequence[str] = (),
    overfitted: bool = False,
    doubts: Sequence[Doubt] = (),
) -> Verdict:
    """Return the verdict with what to do next, where it is not good.

    Parameters
    ----------
    verdict, bias
        Of the diagnosis.
    weighted : bool
        Whether there are weights.
    method : str or None
        The weighter that made the weights, if it is known.
    smoothed_by : sequence of str
        The weighter's parameters that make its weights more even.
    overfitted : bool
        Whether the weights balance the rows that they were fitted to and no others.
    doubts : sequence of Doubt
        Columns that hardly describe a row.
    """
    status = verdict.status
    if status in _GOOD or (status == "costly" and not weighted and not doubts):
        return verdict
    others = tuple(name for name in _BALANCE_EVERY_COLUMN if name != method)
    if doubts:
        step = leave_out(doubts)
    elif status == "not correctable":
        step = NextStep(
            otherwise="collect data where the sample has no rows, or restrict the population and "
            "your conclusions to the part that it covers"
        )
    elif status == "not corrected" and not overfitted:
        step = NextStep(_what_remains(bias), weighters=others, fewer_columns=True)
    else:
        step = NextStep(
            "more even weights follow single rows less"
            if overfitted
            else "more even weights keep more of the effective sample size",
            settings=tuple(smoothed_by),
            weighters=tuple(name for name in others if name == _MOST_EVEN),
            fewer_columns=True,
        )
    return replace(verdict, next_step=step)


def _what_remains(bias: Bias) -> str:
    sizes = {f.name: f.differences["after"].correctable_difference or 0.0 for f in bias.features}
    worst = sorted((name for name in sizes), key=lambda name: -sizes[name])[:3]
    shown = [
        f"{name} by {sizes[name]:.2f}"
        for name in worst
        if sizes[name] > THRESHOLDS.balanced_difference
    ]
    if not shown:
        return "a classifier still tells sample and population apart"
    return f"still different are {', '.join(shown)} standard deviations"
