"""The diagnosis of a sample of whose population only margins are known: balance, and no tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unskew.diagnostics.diagnosis import Verdict
from unskew.diagnostics.features import BalanceLine, Difference, Distribution, FeatureBalance
from unskew.diagnostics.thresholds import THRESHOLDS
from unskew.diagnostics.verdict import LEAST_SHOWN, NO_DIFFERENCE
from unskew.diagnostics.weights import WeightSummary
from unskew.numerics.typing import FloatArray
from unskew.population.feature_rules import FeatureRules
from unskew.population.feature_sums import FeatureSums
from unskew.population.margins import Margins
from unskew.rows.features import FeatureSet, Levels, Term
from unskew.rows.sample import Sample

MAX_LINES = 20
ONLY_MARGINS = (
    "Only margins of the population are known: what they do not describe, such as other columns "
    "and combinations of these, is not compared, and no test of rows is possible."
)


def measure_margins(
    sample: Sample, margins: Margins, after: FloatArray | None
) -> tuple[tuple[FeatureBalance, ...], float]:
    """Return the balance of each margin, the most biased first, and the share that is uncovered.

    Differences of shares are in standard deviations of the population, those of means in standard
    deviations of the sample: that of the population is not known.
    """
    terms = FeatureRules(sample).of_margins(margins.about, "auto")
    asked = margins.reduce(FeatureSums(FeatureSet(sample.codes, terms)))
    values = asked.features.of_codes(sample.values, sample.batch)
    targets = asked.sums[0] / asked.mass[0]
    weights = [one / one.sum() for one in (sample.design, after) if one is not None]
    found, begin = [], 0
    for term in terms:
        own = slice(begin, begin + len(term.names))
        begin += len(term.names)
        columns = asked.features.columns_of(term)
        found.append(_balance(columns, term, values[:, own], targets[own], weights))
    uncovered = float(asked.uncovered / (asked.mass.sum() + asked.uncovered))
    return tuple(sorted(found, key=lambda one: -max(line.size for line in one.lines))), uncovered


def _level(name: str, columns: Sequence[str]) -> str:
    """Return the levels in the name of a feature: "a=x, b=u" is "x, u"."""
    for place, column in enumerate(columns):
        before = ", " if place else ""
        name = name.replace(f"{before}{column}=", before, 1)
    return name


def _balance(
    columns: Sequence[str],
    term: Term,
    values: FloatArray,
    targets: FloatArray,
    weights: list[FloatArray],
) -> FeatureBalance:
    means = [weight @ values for weight in weights]
    is_levels = isinstance(term, Levels)
    mine = weights[0] @ (values - means[0]) ** 2
    variance = targets * (1 - targets) if is_levels else mine
    with np.errstate(divide="ignore", invalid="ignore"):
        each = [
            np.where(mean == targets, 0.0, (mean - targets) / np.sqrt(variance)) for mean in means
        ]
    sizes = np.max(np.abs(each), axis=0)
    labels = [_level(one, columns) for one in term.names] if is_levels else [None]
    if len(sizes) == 2:  # their differences are opposite
        sizes[0] = -1.0
    notable = int((sizes > THRESHOLDS.balanced_difference).sum())
    shown = np.argsort(-sizes, kind="stable")[: max(1, min(notable, MAX_LINES))]
    lines = [
        BalanceLine(labels[p], float(each[0][p]), float(each[1][p]) if len(each) > 1 else None)
        for p in shown.tolist()
    ]
    differences = [
        Difference(
            None,
            float(np.abs(mean - targets).sum() / 2) if is_levels else None,
            0.0,
            float(np.abs(one).max()),
        )
        for mean, one in zip(means, each, strict=True)
    ]
    distribution = Distribution((), None, (), None, ())  # of a mean alone, none is known
    if is_levels:
        sides = [tuple(mean.tolist()) for mean in (*means, targets)]
        weighted = sides[1] if len(means) > 1 else None
        distribution = Distribution(tuple(map(str, labels)), None, sides[0], weighted, sides[-1])
    return FeatureBalance(
        " × ".join(columns),
        "category" if is_levels else "number",
        tuple(sorted(lines, key=lambda line: -abs(line.before or 0.0))),
        max(0, notable - MAX_LINES),
        differences[0],
        differences[1] if len(differences) > 1 else None,
        distribution,
    )


def reach_margin_verdict(
    features: tuple[FeatureBalance, ...], uncovered: float, weights: WeightSummary | None
) -> Verdict:
    """Return what can be said where only margins are known."""
    sentences = [_worst_sentence(features, after=weights is not None)]
    if uncovered:
        sentences.append(
            f"At least {100 * uncovered:.1f} % of the population has levels that no sample row has."
        )
    sentences.append(ONLY_MARGINS)
    limit = THRESHOLDS.balanced_difference
    before = max(abs(one.before.correctable_difference or 0.0) for one in features)
    if uncovered > THRESHOLDS.max_uncovered:
        headline = "Levels of the margins are missing from the sample: no weights can replace them."
        return Verdict("not correctable", headline, tuple(sentences), cause="overlap")
    if weights is None:
        if before <= limit:
            return Verdict("no bias found", "The sample agrees with the margins.", tuple(sentences))
        headline = "The sample differs from the margins, and weights can correct it."
        return Verdict("correctable", headline, tuple(sentences))
    kept = f"{100 * weights.effective_share:.0f} % of the effective sample size"
    left = max((one.after.correctable_difference or 0.0) if one.after else 0.0 for one in features)
    if left > limit:
        headline = "The weighted sample still differs from the margins."
        return Verdict("not corrected", headline, tuple(sentences), cause="means")
    if weights.effective_share < THRESHOLDS.min_effective_share:
        headline = f"The weighted sample agrees with the margins, and keeps only {kept}."
        return Verdict("costly", headline, tuple(sentences), cause="cost")
    headline = f"The weighted sample agrees with the margins and keeps {kept}."
    return Verdict("corrected", headline, tuple(sentences))


def _worst_sentence(features: tuple[FeatureBalance, ...], *, after: bool) -> str:
    worst = []
    for feature in features:
        line = max(feature.lines, key=lambda one: abs((one.after if after else one.before) or 0.0))
        label = feature.name if line.category is None else f"{feature.name} = {line.category}"
        worst.append(((line.after if after else line.before) or 0.0, label))
    worst = sorted(
        (one for one in worst if abs(one[0]) >= LEAST_SHOWN), key=lambda one: -abs(one[0])
    )
    if not worst:
        return NO_DIFFERENCE
    shown = [f"{label} ({f'{value:+.2f}'.replace('-', '−')})" for value, label in worst[:3]]
    return f"The largest differences, in standard deviations: {', '.join(shown)}."
