"""The verdict, with the next step where it is not good."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unskew.diagnostics.diagnosis import Bias, Verdict
from unskew.diagnostics.held_out import effective_without
from unskew.diagnostics.relation import unrelated_columns
from unskew.diagnostics.thresholds import THRESHOLDS, Thresholds
from unskew.diagnostics.verdict import Forecast, reach_verdict
from unskew.diagnostics.weights import WeightSummary
from unskew.numerics.typing import FloatArray
from unskew.overlap import Overlap
from unskew.population.reservoir import Reservoir
from unskew.rows.column_names import listing
from unskew.rows.doubtful_columns import Doubt
from unskew.rows.sample import Sample
from unskew.weighters.base import Traits
from unskew.weighters.next_step import NextStep, leave_out

_CORRECT = {
    "means": ("AutoWeights", "CalibrationWeights"),
    "joint distribution": ("AutoWeights", "ClassifierWeights", "DensityRatioWeights"),
}
"""What corrects each kind of bias, the most promising first."""
_MOST_EVEN = ("AutoWeights",)
_TAKE_MARGINS = ("CalibrationWeights",)
WORTH = 1.1
"""By which factor the effective sample size must grow for columns to be left out."""
_NOTABLE = 0.01
"""The uncovered share from which collecting data is worth a word."""


@dataclass(frozen=True)
class Circumstances:
    """What the next step depends on, beside the verdict.

    Attributes
    ----------
    bias, overlap
        Of the diagnosis.
    weighted : bool
        Whether there are weights.
    weighter : object
        The weighter that made them, if it is known.
    doubts : sequence of Doubt
        Columns that hardly describe a row.
    unrelated : sequence of str
        Columns to which the labels show no relation.
    together : str
        How columns differ together where their means agree, in words.
    only_margins : bool
        Whether only margins of the population are known.
    limits : Thresholds
    sample_rows, effective_rows : float
    effective_without : callable, optional
        Gives the effective sample size to expect without some columns, and by which factor it
        grows, where there are weights.
    """

    bias: Bias
    overlap: Overlap | None = None
    weighted: bool = True
    weighter: Any = None
    doubts: Sequence[Doubt] = ()
    unrelated: Sequence[str] = ()
    together: str = ""
    only_margins: bool = False
    limits: Thresholds = THRESHOLDS
    sample_rows: float = 0
    effective_rows: float = 0
    effective_without: Callable[[Sequence[str]], tuple[float, float]] | None = None

    def other(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return those of the weighters that could be used and have not made the weights."""
        usable = [name for name in names if not self.only_margins or name in _TAKE_MARGINS]
        return tuple(name for name in usable if name != type(self.weighter).__name__)

    def not_yet_set(self, settings: Sequence[str]) -> tuple[str, ...]:
        """Return the settings, such as 'calibrate_to="means"', that the weighter does not have."""
        parts = ((text, *text.partition("=")[::2]) for text in settings)
        return tuple(
            text
            for text, name, value in parts
            if not value or str(getattr(self.weighter, name, None)) != value.strip('"')
        )


def advised_verdict(
    sample: Sample,
    population_rows: int,
    limits: Thresholds,
    compared: tuple[Bias, Overlap, Forecast],
    summary: WeightSummary | None,
    weighter: Any,
    doubts: Sequence[Doubt],
    y: Any,
    after: FloatArray | None,
    drawn: Reservoir,
) -> Verdict:
    """Reach the verdict, with what to do next."""
    bias, overlap, forecast = compared
    verdict = reach_verdict(
        bias,
        overlap,
        summary,
        forecast=forecast,
        sample_rows=len(sample),
        population_rows=population_rows,
        limits=limits,
    )
    used = sample.design if after is None else after
    circumstances = Circumstances(
        bias,
        overlap,
        weighted=after is not None,
        weighter=weighter,
        doubts=doubts,
        unrelated=() if verdict.cause is None else unrelated_columns(y, sample, used),
        together=forecast.together,
        limits=limits,
        sample_rows=len(sample),
        effective_rows=0.0 if summary is None else summary.effective_sample_size,
        effective_without=None
        if after is None
        else partial(effective_without, weighter, sample, y, drawn),
    )
    return with_next_step(verdict, circumstances)


def with_next_step(verdict: Verdict, given: Circumstances) -> Verdict:
    """Return the verdict with what to do next, where it is not good."""
    doubtful = given.doubts and verdict.status != "no bias found"
    if verdict.cause is None and not doubtful:
        return verdict
    if given.doubts:
        step = leave_out(given.doubts)
    elif verdict.cause == "overlap":
        step = NextStep(
            "no method makes up for rows that the sample lacks",
            otherwise="collect data where the sample has no rows, or restrict the population and "
            "your conclusions to the part that it covers",
        )
    elif verdict.cause == "overfitted":
        step = _more_even("more even weights follow single rows less", given)
    elif verdict.cause == "cost":
        step = _cheaper(given)
    else:
        step = _better(str(verdict.cause), given)
    return replace(verdict, next_step=step)


def _more_even(reason: str, given: Circumstances) -> NextStep:
    return NextStep(
        reason,
        settings=getattr(given.weighter, "traits", Traits()).smoothed_by,
        weighters=given.other(_MOST_EVEN) if given.weighted else (),
        fewer_columns=True,
    )


def _cheaper(given: Circumstances) -> NextStep:
    """Return how to lose less of the effective sample size."""
    biased = _different(given.bias, "before", THRESHOLDS.balanced_difference)
    needless = tuple(name for name in given.unrelated if name in biased)
    if needless and len(needless) < len(given.bias.features) and given.effective_without:
        now, (factor, then) = given.effective_rows, given.effective_without(needless)
        enough = THRESHOLDS.min_effective_share * given.sample_rows
        if factor < WORTH and not now < enough <= then:
            gain = (
                f"without {listing(needless)} it would be about {then:,.0f} instead of {now:,.0f}"
            )
            return replace(
                _more_even(f"no column costs much of it: {gain}", given), fewer_columns=False
            )
        it = "it" if len(needless) == 1 else "each"
        return NextStep(
            f"selection is related to {it} and the label, by itself, hardly is; about {then:,.0f} "
            f"effective rows would be left instead of {now:,.0f}, and little less corrected unless "
            f"the label depends on {it} together with other columns",
            leave_out=needless,
        )
    return _more_even(
        "columns that are related to selection and not to the outcome cost effective sample size "
        "and correct nothing",
        given,
    )


def _better(cause: str, given: Circumstances) -> NextStep:
    """Return how to correct what is left."""
    left = _different(given.bias, "after", given.limits.largest_difference)
    if cause == "means":
        shown = [f"{name} by {size:.2f}" for name, size in list(left.items())[:3]]
        reason = f"still different are {', '.join(shown)} standard deviations"
        if left and set(left) <= set(given.unrelated):
            names = listing(list(left)[:3])
            reason += f"; the label has next to no relation to {names}, so that this may do no harm"
    else:
        reason = f"a classifier still separates sample and population; {given.together}"
    overlap, elsewhere = given.overlap, ""
    if overlap is not None and overlap.uncovered >= _NOTABLE and overlap.rules:
        elsewhere = (
            f"collect data where the sample has no rows ({overlap.rules[0].text}), which no method "
            "makes up for"
        )
    return NextStep(
        reason,
        settings=given.not_yet_set(getattr(given.weighter, "traits", Traits()).sharpened_by),
        weighters=given.other(_CORRECT[cause])[:2],
        fewer_columns=given.only_margins,
        otherwise=elsewhere,
    )


def _different(bias: Bias, stage: str, limit: float) -> dict[str, float]:
    """Return the columns that differ by more than a limit and by how much, the largest first."""
    sizes = {
        one.name: one.differences[stage].correctable_difference or 0.0 for one in bias.features
    }
    found = {name: size for name, size in sizes.items() if size > limit}
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))
