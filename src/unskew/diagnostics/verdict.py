"""The verdict in plain words, by the limits in :mod:`unskew.diagnostics.thresholds`."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from unskew.diagnostics.diagnosis import Bias, Comparison, Verdict
from unskew.diagnostics.features import MISSING
from unskew.diagnostics.thresholds import THRESHOLDS, Thresholds
from unskew.diagnostics.weights import WeightSummary
from unskew.overlap import Overlap

LEAST_SHOWN = 0.005
"""Smaller differences would be shown as 0.00."""
NO_DIFFERENCE = "No mean or share differs by 0.01 standard deviations or more."


def is_biased(bias: Bias, overlap: Overlap) -> bool:
    """Whether a test finds bias, or a value that chance does not explain is never in the sample.

    The test of columns one by one has half of the significance level, the others share the rest.
    A value counts only if an even draw of the sample's size would lack it in 1 of 100 cases.
    """
    half = THRESHOLDS.significance_level / 2
    p_value = min(test.before.p_value for test in bias.tests[:2])
    by_column = bias.columns is not None and bias.columns.before.p_value < half
    return by_column or p_value < half / 2 or bool(overlap.unseen)


class Forecast(NamedTuple):
    """What the tests say about weights.

    Attributes
    ----------
    expected_share : float
        The effective share of the sample that weights made from the classifier's odds would keep:
        a forecast where no weights are given.
    overfitted : bool
        Whether the weights balance the rows that they were fitted to and no others.
    together : str
        How columns differ together where a classifier separates the weighted sample from the
        population, in words.
    """

    expected_share: float
    overfitted: bool = False
    together: str = ""


def is_separable(auc: Comparison) -> bool:
    """Whether the AUC is clearly above the limit up to which the two count as balanced."""
    return auc.low is not None and auc.low > THRESHOLDS.balanced_auc


def follows_rows(auc: Comparison, effective_share: float, *, held_out: bool) -> bool:
    """Whether the AUC is so far below 0.5 that the weights follow single rows.

    Rows of one distribution or two have an AUC of 0.5 or more, up to chance. Below lies only what
    the rows that a model learned from say of the others: where weights fitted to a heavy row leave
    its neighbours without weight.
    """
    costly = effective_share < THRESHOLDS.min_effective_share
    limit = 0.5 if costly and not held_out else 1 - THRESHOLDS.balanced_auc
    return auc.high is not None and auc.high < limit


def limits_of(weights: WeightSummary | None, population_rows: int, n_means: int) -> Thresholds:
    """Return the limits with what chance explains of the differences of so many means.

    That is the size that the largest of them reaches by chance, in standard deviations of a row:
    Bonferroni's correction of a normal quantile.
    """
    if weights is None:
        return THRESHOLDS
    error = np.sqrt(1 / weights.effective_sample_size + 1 / population_rows)
    chance = float(norm.isf(THRESHOLDS.significance_level / 2 / n_means) * error)
    return replace(THRESHOLDS, chance_difference=chance)


def reach_verdict(
    bias: Bias,
    overlap: Overlap,
    weights: WeightSummary | None,
    *,
    forecast: Forecast,
    sample_rows: int,
    population_rows: int,
    limits: Thresholds = THRESHOLDS,
) -> Verdict:
    """Return the verdict.

    Parameters
    ----------
    bias, overlap, weights
        The measurements.
    forecast : Forecast
    sample_rows, population_rows : int
    limits : Thresholds
    """
    tests = _test_sentence(bias, sample_rows, population_rows)
    if overlap.uncovered > THRESHOLDS.max_uncovered:
        headline = (
            f"Not correctable: the sample does not cover {_percent(overlap.uncovered)} of the "
            "population."
        )
        rules = tuple(f"{rule}." for rule in overlap.rules[:3])
        limit = "No weights make the sample represent these rows."
        return Verdict("not correctable", headline, (*rules, tests, limit), cause="overlap")
    left_out = (*_left_out_sentences(bias), *overlap.rounded)
    if weights is None:
        found = _without_weights(bias, tests, overlap, forecast.expected_share)
        return replace(found, sentences=(*found.sentences, *left_out))
    found = _with_weights(bias, tests, overlap, weights, limits, forecast.overfitted)
    return replace(found, sentences=(*found.sentences, *left_out))


def _except_for(overlap: Overlap) -> str:
    """Return the end of a sentence that names the values that no sample row has, if there are."""
    if not overlap.unseen:
        return "."
    shown = [f"{rule.text} ({_percent(rule.share)} of the population)" for rule in overlap.unseen]
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return f", except for {', '.join(shown[:3])}{more}: no sample row has that."


def _without_weights(bias: Bias, tests: str, overlap: Overlap, expected_share: float) -> Verdict:
    coverage, end = str(overlap), _except_for(overlap)
    if not is_biased(bias, overlap):
        return Verdict("no bias found", "No bias found.", (tests, _power_sentence(bias), coverage))
    worst = _worst_sentence(bias, after=False)
    if expected_share < THRESHOLDS.min_effective_share:
        headline = (
            "The sample is biased; weights can correct it, at the cost of about "
            f"{_percent(1 - expected_share)} of the effective sample size{end}"
        )
        return Verdict("costly", headline, (tests, worst, coverage), cause="cost")
    cost = (
        f"Weights would keep about {_percent(expected_share)} of the effective sample size, "
        "judging by the classifier's odds."
    )
    headline = f"The sample is biased, and weights can correct it{end}"
    return Verdict("correctable", headline, (tests, worst, coverage, cost))


def _with_weights(
    bias: Bias,
    tests: str,
    overlap: Overlap,
    weights: WeightSummary,
    limits: Thresholds,
    overfitted: bool,
) -> Verdict:
    kept, coverage, end = _percent(weights.effective_share), str(overlap), _except_for(overlap)
    loss = f"{_percent(1 - weights.effective_share)} of the effective sample size"
    size = (
        f"The effective sample size is {weights.effective_sample_size:,.0f} rows ({kept}); the "
        f"largest 1 % of the weights carries {_percent(weights.top_share)} of the total."
    )
    sentences = (tests, _weighted_sentence(bias), _worst_sentence(bias, after=True), size, coverage)
    if overfitted:
        rows = "1 row carries" if weights.half_rows == 1 else f"{weights.half_rows:,} rows carry"
        headline = f"The weights are overfitted: {kept} effective sample, {rows} half the weight."
        meaning = (
            "They fit single rows of the sample instead of how it differs from the population."
        )
        return Verdict("not corrected", headline, (*sentences, meaning), cause="overfitted")
    # Weights cannot create what the sample lacks altogether; the overlap reports that.
    left = max(
        (f.differences["after"].correctable_difference or 0.0 for f in bias.features), default=0.0
    )
    if left > limits.largest_difference:
        headline = "The weights do not remove the bias."
        return Verdict("not corrected", headline, sentences, cause="means")
    if bias.tests[0].after is not None and is_separable(bias.tests[0].after):
        headline = "The weights correct the means, but not the joint distribution."
        return Verdict("not corrected", headline, sentences, cause="joint distribution")
    if not is_biased(bias, overlap):
        headline = "No bias found, so there is nothing for weights to correct"
        if weights.effective_share < 0.9995:
            headline += f"; these cost {loss}"
        reasons = (tests, _power_sentence(bias), size, coverage)
        return Verdict("no bias found", f"{headline}.", reasons)
    if left > limits.balanced_difference:
        end = f"; differences of up to {left:.2f} standard deviations may be chance{end}"
    if weights.effective_share < THRESHOLDS.min_effective_share:
        headline = f"The weights correct the bias, at the cost of {loss}{end}"
        return Verdict("costly", headline, sentences, cause="cost")
    headline = f"The weights correct the bias and keep {kept} of the effective sample size{end}"
    return Verdict("corrected", headline, sentences)


def _test_sentence(bias: Bias, sample_rows: int, population_rows: int) -> str:
    auc, mmd = (test.before for test in bias.tests[:2])
    if auc.low is None:
        rows, side = min((sample_rows, "sample"), (population_rows, "population"))
        return f"{rows:,} {side} rows are too few to train and test a classifier."
    return (
        f"A classifier separates sample rows from population rows with an AUC of {_auc(auc)}, "
        f"p {_p(auc.p_value)}; the maximum mean discrepancy (MMD) is {mmd.statistic:.3f}, "
        f"p {_p(mmd.p_value)}."
    )


def _power_sentence(bias: Bias) -> str:
    auc = bias.tests[0].before
    if auc.low is None or auc.high is None:
        return "A sample this small can hide a large bias."
    # The AUC that the test detects with a power of 90 % (z = 1.28) at half the level, one-sided.
    standard_error = (auc.high - auc.low) / (2 * 1.96)
    detected = min(0.5 + standard_error * (1.96 + 1.28), 1.0)
    return (
        f"With this many rows, a bias with an AUC below about {detected:.2f} could go undetected."
    )


def _weighted_sentence(bias: Bias) -> str:
    classifier, discrepancy = bias.tests[:2]
    auc, mmd = classifier.after, discrepancy.after
    if auc is None or mmd is None or auc.low is None:
        return "The sample is too small to judge the weights by a classifier."
    return (
        f"With the weights the AUC is {_auc(auc)} and the MMD {mmd.statistic:.3f} "
        f"(from {discrepancy.before.statistic:.3f})."
    )


def _worst_sentence(bias: Bias, *, after: bool) -> str:
    # Of each column, the mean or the category that differs most.
    worst: list[tuple[float, str]] = []
    for feature in bias.features:
        values = [(line.after if after else line.before, line.category) for line in feature.lines]
        known = [(value, category) for value, category in values if value is not None]
        if known:
            mean, category = max(known, key=lambda entry: abs(entry[0]))
            if abs(mean) < LEAST_SHOWN:
                continue
            worst.append(
                (mean, feature.name if category is None else f"{feature.name} = {category}")
            )
    if not worst:
        return NO_DIFFERENCE
    shown = [
        f"{name} ({f'{mean:+.2f}'.replace('-', '−')} standard deviations)"
        for mean, name in sorted(worst, key=lambda entry: -abs(entry[0]))[:3]
    ]
    return f"The columns that {'still ' if after else ''}differ most: {', '.join(shown)}."


def _left_out_sentences(bias: Bias) -> tuple[str, ...]:
    empty = [f.name for f in bias.features if f.distribution.labels == (MISSING,)]
    if not empty:
        return ()
    names = ", ".join(empty[:5]) + (f" and {len(empty) - 5} more" if len(empty) > 5 else "")
    return (f"Missing in every row of sample and population, so not compared: {names}.",)


def _auc(auc: Comparison) -> str:
    return f"{auc.statistic:.2f} ({auc.low:.2f} to {auc.high:.2f})"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"
