"""The verdict in plain words, by fixed limits, and what to do next where it is not good.

The verdict is reached from the :class:`Evidence`: what the tests of shift, the balance of the
columns, the overlap and the weights say. There is bias if a test finds it at its part of the
significance level, or if a value that chance does not explain is never in the sample. Weights
correct it if no mean or share differs by more than a limit and a classifier cannot separate the
weighted sample from the population; they are costly if they keep less than half of the effective
sample size. The next step follows from the cause: columns to leave out, weighters and parameters to
try, data to collect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from unskew.diagnostics.diagnosis import (
    MISSING,
    THRESHOLDS,
    Bias,
    Comparison,
    Thresholds,
    Verdict,
    WeightSummary,
)
from unskew.diagnostics.shift_tests import SHIFT_TESTS
from unskew.errors import listing
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.overlap.overlap import Overlap
from unskew.rows.doubtful_columns import Doubt
from unskew.rows.labels import checked_labels
from unskew.rows.sample import Sample
from unskew.weighters.base import Traits
from unskew.weighters.next_step import NextStep, leave_out

LEAST_SHOWN = 0.005
"""Smaller differences would be shown as 0.00."""
ONLY_MARGINS = (
    "Only margins of the population are known: what they do not describe, such as other columns "
    "and combinations of these, is not compared, and no test of rows is possible."
)


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on.

    Attributes
    ----------
    bias : Bias
    overlap : Overlap or None
        None where only margins of the population are known.
    uncovered : float
        The share of the population that has levels of margins that no sample row has.
    weights : WeightSummary or None
    limits : Thresholds
    sample_rows, population_rows : int
    expected_share : float
        The effective share of the sample that weights made from the classifier's odds would keep:
        a forecast where no weights are given.
    overfitted : bool
        Whether the weights balance the rows that they were fitted to and no others.
    together : str
        How columns differ together where a classifier separates the weighted sample from the
        population, in words.
    weighter : object
        What made the weights, if it is known.
    doubts : sequence of Doubt
        Columns that hardly describe a row.
    hints : sequence of str
        What looks like a mistake in what was given.
    unrelated : callable
        Gives the columns to which the labels show no relation.
    effective_without : callable
        Gives by which factor the effective sample size grows without some columns, and to what.
    """

    bias: Bias
    overlap: Overlap | None
    weights: WeightSummary | None
    limits: Thresholds = THRESHOLDS
    sample_rows: int = 0
    population_rows: int = 0
    uncovered: float = 0.0
    expected_share: float = 1.0
    overfitted: bool = False
    together: str = ""
    weighter: Any = None
    doubts: Sequence[Doubt] = ()
    hints: Sequence[str] = ()
    unrelated: Callable[[], tuple[str, ...]] = tuple
    effective_without: Callable[[Sequence[str]], tuple[float, float]] = lambda names: (0.0, 0.0)  # noqa: ARG005


def reach_verdict(found: Evidence) -> Verdict:
    """Return the verdict, with what to do next where it is not good."""
    verdict = _of_margins(found) if found.overlap is None else _of_rows(found, found.overlap)
    verdict = replace(verdict, sentences=(*verdict.sentences, *found.hints))
    doubtful = found.doubts and verdict.status != "no bias found"
    if verdict.cause is None and not doubtful:
        return verdict
    return replace(verdict, next_step=_next_step(verdict.cause, found))


def is_biased(bias: Bias, overlap: Overlap) -> bool:
    """Whether a test finds bias, or a value that chance does not explain is never in the sample.

    The tests share the significance level. A value counts only if an even draw of the sample's size
    would lack it in 1 of 100 cases.
    """
    shares = {test.name: test.share for test in SHIFT_TESTS}
    level = THRESHOLDS.significance_level / sum(shares[test.name] for test in bias.tests)
    rejected = (test.before.p_value < level * shares[test.name] for test in bias.tests)
    return any(rejected) or bool(overlap.unseen)


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


def _of_rows(found: Evidence, overlap: Overlap) -> Verdict:
    """Return the verdict of a sample beside rows of the population."""
    tests = _test_sentence(found)
    if overlap.uncovered > THRESHOLDS.max_uncovered:
        headline = (
            f"Not correctable: the sample does not cover {_percent(overlap.uncovered)} of the "
            "population."
        )
        rules = tuple(f"{rule}." for rule in overlap.rules[:3])
        limit = "No weights make the sample represent these rows."
        return Verdict("not correctable", headline, (*rules, tests, limit), cause="overlap")
    if found.weights is None:
        verdict = _without_weights(found, tests, overlap)
    else:
        verdict = _with_weights(found, tests, overlap, found.weights)
    more = (*_left_out_sentences(found.bias), *overlap.rounded)
    return replace(verdict, sentences=(*verdict.sentences, *more))


def _except_for(overlap: Overlap) -> str:
    """Return the end of a sentence that names the values that no sample row has, if there are."""
    if not overlap.unseen:
        return "."
    shown = [f"{rule.text} ({_percent(rule.share)} of the population)" for rule in overlap.unseen]
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return f", except for {', '.join(shown[:3])}{more}: no sample row has that."


def _without_weights(found: Evidence, tests: str, overlap: Overlap) -> Verdict:
    bias, share, end = found.bias, found.expected_share, _except_for(overlap)
    if not is_biased(bias, overlap):
        reasons = (tests, _power_sentence(bias), str(overlap))
        return Verdict("no bias found", "No bias found.", reasons)
    reasons = (tests, _worst_sentence(found), str(overlap))
    if share < THRESHOLDS.min_effective_share:
        headline = (
            "The sample is biased; weights can correct it, at the cost of about "
            f"{_percent(1 - share)} of the effective sample size{end}"
        )
        return Verdict("costly", headline, reasons, cause="cost")
    cost = (
        f"Weights would keep about {_percent(share)} of the effective sample size, "
        "judging by the classifier's odds."
    )
    headline = f"The sample is biased, and weights can correct it{end}"
    return Verdict("correctable", headline, (*reasons, cost))


def _with_weights(found: Evidence, tests: str, overlap: Overlap, weights: WeightSummary) -> Verdict:
    bias, limits, end = found.bias, found.limits, _except_for(overlap)
    kept, loss = _percent(weights.effective_share), _percent(1 - weights.effective_share)
    size = (
        f"The effective sample size is {weights.effective_sample_size:,.0f} rows ({kept}); the "
        f"largest 1 % of the weights carries {_percent(weights.top_share)} of the total."
    )
    reasons = (tests, _weighted_sentence(bias), _worst_sentence(found), size, str(overlap))
    if found.overfitted:
        rows = "1 row carries" if weights.half_rows == 1 else f"{weights.half_rows:,} rows carry"
        headline = f"The weights are overfitted: {kept} effective sample, {rows} half the weight."
        meaning = (
            "They fit single rows of the sample instead of how it differs from the population."
        )
        return Verdict("not corrected", headline, (*reasons, meaning), cause="overfitted")
    # Weights cannot create what the sample lacks altogether; the overlap reports that.
    left = _largest(bias, "after")
    if left > limits.largest_difference:
        headline = "The weights do not remove the bias."
        return Verdict("not corrected", headline, reasons, cause="means")
    if bias.classifier and bias.classifier.after and is_separable(bias.classifier.after):
        headline = "The weights correct the means, but not the joint distribution."
        return Verdict("not corrected", headline, reasons, cause="joint distribution")
    if not is_biased(bias, overlap):
        headline = "No bias found, so there is nothing for weights to correct"
        if weights.effective_share < 0.9995:
            headline += f"; these cost {loss} of the effective sample size"
        no_reasons = (tests, _power_sentence(bias), size, str(overlap))
        return Verdict("no bias found", f"{headline}.", no_reasons)
    if left > limits.balanced_difference:
        end = f"; differences of up to {left:.2f} standard deviations may be chance{end}"
    if weights.effective_share < THRESHOLDS.min_effective_share:
        headline = "The weights correct the bias, at the cost of"
        headline += f" {loss} of the effective sample size{end}"
        return Verdict("costly", headline, reasons, cause="cost")
    headline = f"The weights correct the bias and keep {kept} of the effective sample size{end}"
    return Verdict("corrected", headline, reasons)


def _of_margins(found: Evidence) -> Verdict:
    """Return what can be said where only margins are known."""
    weights, uncovered, limit = found.weights, found.uncovered, THRESHOLDS.balanced_difference
    lacking = (
        f"At least {100 * uncovered:.1f} % of the population has levels that no sample row has."
    )
    reasons = (_worst_sentence(found), *([lacking] if uncovered else []), ONLY_MARGINS)
    if uncovered > THRESHOLDS.max_uncovered:
        headline = "Levels of the margins are missing from the sample: no weights can replace them."
        return Verdict("not correctable", headline, reasons, cause="overlap")
    if weights is None:
        if _largest(found.bias, "before") <= limit:
            return Verdict("no bias found", "The sample agrees with the margins.", reasons)
        headline = "The sample differs from the margins, and weights can correct it."
        return Verdict("correctable", headline, reasons)
    kept = f"{100 * weights.effective_share:.0f} % of the effective sample size"
    if _largest(found.bias, "after") > limit:
        headline = "The weighted sample still differs from the margins."
        return Verdict("not corrected", headline, reasons, cause="means")
    if weights.effective_share < THRESHOLDS.min_effective_share:
        headline = f"The weighted sample agrees with the margins, and keeps only {kept}."
        return Verdict("costly", headline, reasons, cause="cost")
    headline = f"The weighted sample agrees with the margins and keeps {kept}."
    return Verdict("corrected", headline, reasons)


def _test_sentence(found: Evidence) -> str:
    classifier = found.bias.classifier
    if classifier is not None and classifier.before.low is None:
        sides = (found.sample_rows, "sample"), (found.population_rows, "population")
        rows, side = min(sides)
        return f"{rows:,} {side} rows are too few to train and test a classifier."
    return f"{'; '.join(_said(found.bias, weighted=False))}."


def _said(bias: Bias, *, weighted: bool) -> list[str]:
    """Return what each test says, where it says anything."""
    sentences = {test.name: test.sentence for test in SHIFT_TESTS}
    return list(filter(None, (sentences[test.name](test, weighted) for test in bias.tests)))


def _power_sentence(bias: Bias) -> str:
    auc = None if bias.classifier is None else bias.classifier.before
    if auc is None or auc.low is None or auc.high is None:
        return "A sample this small can hide a large bias."
    # The AUC that the test detects with a power of 90 % (z = 1.28) at half the level, one-sided.
    standard_error = (auc.high - auc.low) / (2 * 1.96)
    detected = min(0.5 + standard_error * (1.96 + 1.28), 1.0)
    return (
        f"With this many rows, a bias with an AUC below about {detected:.2f} could go undetected."
    )


def _weighted_sentence(bias: Bias) -> str:
    auc = None if bias.classifier is None else bias.classifier.after
    if auc is None or auc.low is None:
        return "The sample is too small to judge the weights by a classifier."
    return f"With the weights {' and '.join(_said(bias, weighted=True))}."


def _worst_sentence(found: Evidence) -> str:
    """Return of each of three columns the mean or the category that differs most."""
    after, worst = found.weights is not None, list[tuple[float, str]]()
    for feature in found.bias.features:
        values = [(line.after if after else line.before, line.category) for line in feature.lines]
        known = [(value, category) for value, category in values if value is not None]
        size, category = max(known, key=lambda entry: abs(entry[0]), default=(0.0, None))
        if abs(size) >= LEAST_SHOWN:
            worst.append((size, feature.name + ("" if category is None else f" = {category}")))
    if not worst:
        return "No mean or share differs by 0.01 standard deviations or more."
    shown = [
        f"{name} ({f'{size:+.2f}'.replace('-', '−')} standard deviations)"
        for size, name in sorted(worst, key=lambda entry: -abs(entry[0]))[:3]
    ]
    return f"The columns that {'still ' if after else ''}differ most: {', '.join(shown)}."


def _left_out_sentences(bias: Bias) -> tuple[str, ...]:
    empty = [f.name for f in bias.features if f.distribution.labels == (MISSING,)]
    if not empty:
        return ()
    names = ", ".join(empty[:5]) + (f" and {len(empty) - 5} more" if len(empty) > 5 else "")
    return (f"Missing in every row of sample and population, so not compared: {names}.",)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


# The next step. ----------------------------------------------------------------------------------

_CORRECT = {
    "means": ("AutoWeights", "CalibrationWeights"),
    "joint distribution": ("AutoWeights", "ClassifierWeights", "DensityRatioWeights"),
}
"""What corrects each kind of bias, the most promising first."""
_TAKE_MARGINS = ("CalibrationWeights",)
WORTH = 1.1
"""By which factor the effective sample size must grow for columns to be left out."""
_NOTABLE = 0.01
"""The uncovered share from which collecting data is worth a word."""


def _next_step(cause: str | None, found: Evidence) -> NextStep:
    """Return what to do where the verdict is not good."""
    if found.doubts:
        return leave_out(found.doubts)
    if cause == "overlap":
        return NextStep(
            "no method makes up for rows that the sample lacks",
            otherwise="collect data where the sample has no rows, or restrict the population and "
            "your conclusions to the part that it covers",
        )
    if cause == "overfitted":
        return _more_even("more even weights follow single rows less", found)
    return _cheaper(found) if cause == "cost" else _better(str(cause), found)


def _traits(found: Evidence) -> Traits:
    return getattr(found.weighter, "traits", Traits())


def _others(found: Evidence, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of the weighters that could be used and have not made the weights."""
    usable = [name for name in names if found.overlap is not None or name in _TAKE_MARGINS]
    return tuple(name for name in usable if name != type(found.weighter).__name__)


def _more_even(reason: str, found: Evidence, *, fewer_columns: bool = True) -> NextStep:
    return NextStep(
        reason,
        settings=_traits(found).smoothed_by,
        weighters=() if found.weights is None else _others(found, ["AutoWeights"]),
        fewer_columns=fewer_columns,
    )


def _cheaper(found: Evidence) -> NextStep:
    """Return how to lose less of the effective sample size."""
    biased = _different(found.bias, "before", THRESHOLDS.balanced_difference)
    needless = tuple(name for name in found.unrelated() if name in biased)
    if not needless or found.weights is None or len(needless) == len(found.bias.features):
        return _more_even(
            "columns that are related to selection and not to the outcome cost effective sample "
            "size and correct nothing",
            found,
        )
    now, (factor, then) = found.weights.effective_sample_size, found.effective_without(needless)
    enough = THRESHOLDS.min_effective_share * found.sample_rows
    if factor < WORTH and not now < enough <= then:
        gain = f"without {listing(needless)} it would be about {then:,.0f} instead of {now:,.0f}"
        reason = f"no column costs much of it: {gain}"
        return _more_even(reason, found, fewer_columns=False)
    it = "it" if len(needless) == 1 else "each"
    return NextStep(
        f"selection is related to {it} and the label, by itself, hardly is; about {then:,.0f} "
        f"effective rows would be left instead of {now:,.0f}, and little less corrected unless "
        f"the label depends on {it} together with other columns",
        leave_out=needless,
    )


def _better(cause: str, found: Evidence) -> NextStep:
    """Return how to correct what is left."""
    left = _different(found.bias, "after", found.limits.largest_difference)
    if cause == "means":
        shown = [f"{name} by {size:.2f}" for name, size in list(left.items())[:3]]
        reason = f"still different are {', '.join(shown)} standard deviations"
        if left and set(left) <= set(found.unrelated()):
            names = listing(list(left)[:3])
            reason += f"; the label has next to no relation to {names}, so that this may do no harm"
    else:
        reason = f"a classifier still separates sample and population; {found.together}"
    overlap, elsewhere = found.overlap, ""
    if overlap is not None and overlap.uncovered >= _NOTABLE and overlap.rules:
        elsewhere = (
            f"collect data where the sample has no rows ({overlap.rules[0].text}), which no method "
            "makes up for"
        )
    return NextStep(
        reason,
        settings=tuple(one for one in _traits(found).sharpened_by if not _is_set(one, found)),
        weighters=_others(found, _CORRECT[cause])[:2],
        fewer_columns=overlap is None,
        otherwise=elsewhere,
    )


def _is_set(setting: str, found: Evidence) -> bool:
    """Return whether the weighter has a setting such as 'calibrate_to="means"' already."""
    name, _, value = setting.partition("=")
    return bool(value) and str(getattr(found.weighter, name, None)) == value.strip('"')


def _different(bias: Bias, stage: str, limit: float) -> dict[str, float]:
    """Return the columns that differ by more than a limit and by how much, the largest first."""
    sizes = {
        one.name: one.differences[stage].correctable_difference or 0.0 for one in bias.features
    }
    found = {name: size for name, size in sizes.items() if size > limit}
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def _largest(bias: Bias, stage: str) -> float:
    return max(_different(bias, stage, 0.0).values(), default=0.0)


# Which columns the labels are hardly related to: weighing by these corrects little. --------------

MOST_GROUPS = 20
THIRDS = 3
NEXT_TO_NONE = 0.15
"""The correlation ratio up to which labels and a column count as unrelated."""


def unrelated_columns(y: Any, sample: Sample, weights: FloatArray) -> tuple[str, ...]:
    """Return the columns to which the labels have next to no relation, each column by itself.

    The relation is the correlation ratio: the share of the labels' standard deviation between
    thirds of the column, or between its categories; of numbers the ranks count, of classes the one
    that differs most. A column is unrelated if even the upper end of a 95 % interval is small: too
    few rows show nothing. Weighted, because selection by two columns relates them to each other
    within the sample.
    """
    if y is None or np.asarray(y).dtype.kind in "mM":
        return ()
    labels, share = scored(checked_labels(y, len(sample))), weights / weights.sum()
    error = 1.96 / np.sqrt(effective_sample_size(weights))
    columns = zip(sample.codes.names, sample.values.T, strict=True)
    return tuple(
        name
        for name, values in columns
        if _correlation_ratio(labels, _grouped(values), share) + error < NEXT_TO_NONE
    )


def scored(labels: NDArray[Any], *, ranks: bool = True) -> FloatArray:
    """Return a column of numbers, as ranks or as given, or one of zeros and ones for each class."""
    distinct, place = np.unique(labels, return_inverse=True)
    if labels.dtype.kind in "fiu" and len(distinct) > 2:
        return np.asarray(rankdata(labels) if ranks else labels, dtype=np.float64)[:, None]
    return (place[:, None] == np.arange(min(len(distinct), MOST_GROUPS))).astype(np.float64)


def _grouped(values: FloatArray) -> IntArray:
    """Return the number of the group of each value: its third if there are more than 20."""
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) <= MOST_GROUPS:
        return np.asarray(place)
    ranks = np.argsort(np.argsort(place, kind="stable"), kind="stable")
    return np.asarray(ranks * THIRDS // len(values))


def _correlation_ratio(labels: FloatArray, groups: IntArray, share: FloatArray) -> float:
    """Return the largest correlation ratio of a column of labels, less what chance explains."""
    mass = np.bincount(groups, share)
    found = 0.0
    for label in labels.T:
        centred = label - share @ label
        between = np.bincount(groups, share * centred) ** 2 / np.where(mass > 0, mass, 1.0)
        total = float(share @ centred**2)
        if total > 0:
            by_chance = (np.count_nonzero(mass) - 1) * float(share @ share)
            found = max(found, float(between.sum()) / total - by_chance)
    return float(np.sqrt(found))
