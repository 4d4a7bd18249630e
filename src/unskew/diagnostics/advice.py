"""The next step where a verdict is not good."""

from __future__ import annotations

from collections.abc import Sequence

from unskew.diagnostics.diagnosis import Bias, Status
from unskew.diagnostics.thresholds import THRESHOLDS
from unskew.population.doubtful_columns import Doubt
from unskew.weighters.next_step import NextStep, leave_out

_MOST_EVEN = "DensityRatioWeights"
_BALANCE_EVERY_COLUMN = (_MOST_EVEN, "KernelMeanMatching")
_GOOD = ("no bias found", "correctable")


def next_step(
    status: Status,
    bias: Bias,
    *,
    method: str | None,
    weighted: bool,
    smoothed_by: Sequence[str] = (),
    doubts: Sequence[Doubt] = (),
) -> NextStep | None:
    """Return what to do next; None where the verdict is good.

    Parameters
    ----------
    status, bias
        Of the diagnosis.
    method : str or None
        The weighter that made the weights, if it is known.
    weighted : bool
        Whether there are weights.
    smoothed_by : sequence of str
        The weighter's parameters that make its weights more even.
    doubts : sequence of Doubt
        Columns that hardly describe a row.
    """
    if status in _GOOD or (status == "costly" and not weighted):
        return None
    if doubts:
        return leave_out(doubts)
    if status == "not correctable":
        return NextStep(
            otherwise="collect data where the sample has no rows, or restrict the population and "
            "your conclusions to the part that it covers"
        )
    others = tuple(name for name in _BALANCE_EVERY_COLUMN if name != method)
    if status == "not corrected":
        return NextStep(_what_remains(bias), weighters=others, fewer_columns=True)
    return NextStep(
        "more even weights keep more of the effective sample size",
        settings=tuple(smoothed_by),
        weighters=tuple(name for name in others if name == _MOST_EVEN),
        fewer_columns=True,
    )


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
