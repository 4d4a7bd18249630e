"""The answer in plain words, by thresholds that are told with it."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from unskew.diagnostics.diagnosis import (
    Bias,
    Comparison,
    FeatureBalance,
    Status,
    Verdict,
    WeightSummary,
)
from unskew.overlap import LIMIT, Overlap

__all__ = ["THRESHOLDS", "is_biased", "reach_verdict"]

THRESHOLDS = {
    "chance of finding bias where there is none": 0.05,
    "uncovered share above which weights cannot help": LIMIT,
    "standardised difference that is left small": 0.1,
    "area under the curve that is left small": 0.55,
    "effective share of the sample below which weights are costly": 0.5,
}
LEVEL, _, SMALL_DIFFERENCE, SMALL_AREA, COSTLY = THRESHOLDS.values()


def is_biased(bias: Bias) -> bool:
    """Whether one of the two tests finds bias; each takes half of the chance to err."""
    return min(bias.mmd.before.p_value, bias.classifier.before.p_value) < LEVEL / 2


def reach_verdict(
    bias: Bias,
    overlap: Overlap,
    weights: WeightSummary | None,
    *,
    expected_share: float,
    sample_rows: int,
    population_rows: int,
    n_means: int,
) -> Verdict:
    """Return the verdict.

    Parameters
    ----------
    bias, overlap, weights
        What was found.
    expected_share : float
        The effective share of the sample that the classifier's own odds would leave, as a forecast
        where no weights are given.
    sample_rows, population_rows : int
    n_means : int
        How many means were compared: one for each number and each category.
    """
    found = _sentence_of_tests(bias, sample_rows, population_rows)
    reach = _sentence_of_reach(overlap)
    if overlap.uncovered > LIMIT:
        headline = (
            f"Not correctable here: {_percent(overlap.uncovered)} of the population is out of the "
            "sample's reach."
        )
        rules = tuple(f"{rule}." for rule in overlap.rules[:3])
        advice = (
            "No weights make the sample stand for these rows: collect labels there, or leave them "
            "out of what you conclude."
        )
        return Verdict("not correctable", headline, (*rules, found, advice))
    if weights is None:
        return _without_weights(bias, found, reach, expected_share)
    # How far the largest of K differences of means strays, in standard deviations of a row.
    error = np.sqrt(1 / weights.effective_sample_size + 1 / population_rows)
    noise = float(norm.isf(LEVEL / 2 / n_means) * error)
    return _with_weights(bias, found, reach, weights, noise)


def _without_weights(bias: Bias, found: str, reach: str, expected_share: float) -> Verdict:
    if not is_biased(bias):
        return Verdict("no bias found", "No bias found.", (found, _sentence_of_power(bias), reach))
    worst = _sentence_of_worst(bias, after=False)
    cost = (
        f"They would keep about {_percent(expected_share)} of the effective sample, going by the "
        "odds of a classifier that tells the two apart."
    )
    if expected_share < COSTLY:
        return Verdict(
            "costly",
            "The sample is biased; weights can correct it, at the cost of about "
            f"{_percent(1 - expected_share)} of the effective sample.",
            (found, worst, reach),
        )
    headline = "The sample is biased, and weights can correct it."
    return Verdict("correctable", headline, (found, worst, reach, cost))


def _with_weights(
    bias: Bias, found: str, reach: str, weights: WeightSummary, noise: float
) -> Verdict:
    kept, lost = _percent(weights.effective_share), _percent(1 - weights.effective_share)
    size = (
        f"The effective sample is {weights.effective_sample_size:,.0f} rows ({kept}); the largest "
        f"hundredth of the weights carries {_percent(weights.top_share)} of the total."
    )
    now = _sentence_of_change(bias)
    worst = _sentence_of_worst(bias, after=True)
    status: Status
    if _bias_is_left(bias, noise):
        headline = "The weights leave bias behind."
        return Verdict("not corrected", headline, (found, now, worst, size, reach))
    if not is_biased(bias):
        headline = "No bias found, so weights have nothing to correct" + (
            f"; these cost {lost} of the effective sample." if lost != "0 %" else "."
        )
        return Verdict("no bias found", headline, (found, _sentence_of_power(bias), size, reach))
    if weights.effective_share < COSTLY:
        status = "costly"
        headline = f"The weights correct the bias, at the cost of {lost} of the effective sample."
    else:
        status = "correctable"
        headline = f"The weights correct the bias and keep {kept} of the effective sample."
    return Verdict(status, headline, (found, now, worst, size, reach))


def _bias_is_left(bias: Bias, noise: float) -> bool:
    # What the sample lacks altogether no weights bring; that is told by the overlap.
    after = [f.after.mendable for f in bias.features if f.after and f.after.mendable is not None]
    area = bias.classifier.after
    return max(after, default=0.0) > SMALL_DIFFERENCE + noise or (
        area is not None and area.low is not None and area.low > SMALL_AREA
    )


def _sentence_of_tests(bias: Bias, sample_rows: int, population_rows: int) -> str:
    area = bias.classifier.before
    if area.low is None or area.high is None:
        rows, side = min((sample_rows, "sample"), (population_rows, "population"))
        return f"With {rows:,} {side} rows there are too few for a classifier to be tried on them."
    return (
        f"A classifier tells a sample row from a population row with an AUC of {_area(area)}, "
        f"p {_p(area.p_value)}; the distance between the two (MMD) is "
        f"{bias.mmd.before.statistic:.3f}, p {_p(bias.mmd.before.p_value)}."
    )


def _sentence_of_power(bias: Bias) -> str:
    area = bias.classifier.before
    if area.low is None or area.high is None:
        return "So small a sample can hide a large bias."
    # What would be found nine times in ten at half the level, one-sided.
    seen = 0.5 + (area.high - area.low) / (2 * 1.96) * (1.96 + 1.28)
    return f"A bias with an AUC below about {min(seen, 1.0):.2f} could go unseen with so many rows."


def _sentence_of_change(bias: Bias) -> str:
    after, mmd = bias.classifier.after, bias.mmd.after
    if after is None or mmd is None or after.low is None:
        return "The sample is too small to judge the weights by a classifier."
    return (
        f"With the weights the AUC is {_area(after)} and the MMD {mmd.statistic:.3f} "
        f"(from {bias.mmd.before.statistic:.3f})."
    )


def _sentence_of_worst(bias: Bias, *, after: bool) -> str:
    told = []
    for feature in _worst(bias, after=after)[:3]:
        difference = feature.after if after else feature.before
        assert difference is not None
        assert difference.mean is not None
        value = f" = {difference.category}" if difference.category else ""
        told.append(f"{feature.name}{value} ({_signed(difference.mean)} standard deviations)")
    if not told:
        return "No column has values on both sides."
    when = "still differ most" if after else "differ most"
    return f"The columns that {when}: {', '.join(told)}."


def _worst(bias: Bias, *, after: bool) -> list[FeatureBalance]:
    def size(feature: FeatureBalance) -> float:
        difference = feature.after if after else feature.before
        if difference is None or difference.mean is None:
            return -1.0
        return abs(difference.mean)

    return sorted((f for f in bias.features if size(f) >= 0), key=size, reverse=True)


def _sentence_of_reach(overlap: Overlap) -> str:
    if overlap.uncovered == 0:
        return "No part of the population was found to be out of the sample's reach."
    return str(overlap)


def _area(area: Comparison) -> str:
    return f"{area.statistic:.2f} ({area.low:.2f} to {area.high:.2f})"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"
