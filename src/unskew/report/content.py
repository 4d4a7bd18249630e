"""What a report says, as plain text in the order of reading: the page and the Markdown share it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from unskew.diagnostics.diagnosis import (
    Comparison,
    Diagnosis,
    Difference,
    Distribution,
    FeatureBalance,
    TwoSampleTest,
    WeightSummary,
)
from unskew.report.numbers import (
    NOTHING,
    SPACE,
    count,
    decimal,
    p_value,
    share,
    signed,
    signed_share,
)
from unskew.report.untrusted import visible

__all__ = [
    "Cell",
    "Figure",
    "Status",
    "Table",
    "feature_table",
    "figures",
    "heavy_table",
    "histogram_table",
    "method_table",
    "outcome_table",
    "rule_table",
    "share_table",
    "status",
    "test_table",
    "threshold_table",
    "weight_sentences",
]

HEAVY_ROW_COLUMNS = 6
"""Columns shown of the heaviest rows: the most biased ones."""


@dataclass(frozen=True)
class Status:
    """The verdict's status as a word, with a tone that picks colour and sign."""

    word: str
    tone: Literal["good", "caution", "bad"]


_STATUS = {
    "no bias found": Status("No bias found", "good"),
    "correctable": Status("Correctable", "good"),
    "costly": Status("Correctable at a cost", "caution"),
    "not corrected": Status("Not corrected", "bad"),
    "not correctable": Status("Not correctable", "bad"),
}


def status(diagnosis: Diagnosis) -> Status:
    """Return the status of the verdict."""
    return _STATUS[diagnosis.verdict.status]


@dataclass(frozen=True)
class Figure:
    """A number to see at a glance, or two: before and after weighting."""

    label: str
    value: str
    after: str | None
    note: str


@dataclass(frozen=True)
class Cell:
    """One cell: its text, and by what it is sorted. ``untrusted`` marks text from the data."""

    text: str
    key: float | str | None = None
    untrusted: bool = False


@dataclass(frozen=True)
class Table:
    """Headings, rows, and which columns hold numbers.

    ``bars`` are lengths between 0 and 1, one a row, to be drawn beside the numbers of column 1.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: tuple[bool, ...]
    bars: tuple[float, ...] | None = None


def figures(diagnosis: Diagnosis) -> list[Figure]:
    """Return the key figures."""
    overlap, weights = diagnosis.overlap, diagnosis.weights
    reach = f"± {share(overlap.margin)}" if overlap.margin >= 0.0005 else "of the population"
    shown = [
        Figure("Sample", count(diagnosis.sample_rows), None, "rows"),
        Figure("Population", count(diagnosis.population_rows), None, "rows"),
        Figure("Out of reach", share(overlap.uncovered), None, reach),
        _test_figure(
            "Told apart by a classifier", diagnosis.bias.classifier, "AUC; 0.50 is chance"
        ),
        _test_figure("Maximum mean discrepancy", diagnosis.bias.mmd, "0 is no difference", 3),
    ]
    if weights is not None:
        note = f"{share(weights.effective_share)} of the rows"
        size = count(weights.effective_sample_size)
        shown.append(Figure("Effective sample", count(diagnosis.sample_rows), size, note))
    return shown


def _test_figure(label: str, test: TwoSampleTest, note: str, digits: int = 2) -> Figure:
    def told(side: Comparison) -> str:
        return f"{side.statistic:.{digits}f}" if math.isfinite(side.statistic) else NOTHING

    return Figure(label, told(test.before), None if test.after is None else told(test.after), note)


def feature_table(diagnosis: Diagnosis) -> Table:
    """Return one row a feature, the most biased first."""
    weighted = diagnosis.weights is not None
    measures: list[tuple[str, str]] = [
        ("mean", "Mean difference"),
        ("variance_ratio", "Variance ratio"),
        ("distance", "Distance"),
        ("missing", "Missing"),
    ]
    headings = ["Feature", "Kind"]
    for _, title in measures:
        headings += [title, f"{title}, weighted"] if weighted else [title]
    rows = tuple(
        (
            Cell(visible(feature.name), visible(feature.name).casefold(), untrusted=True),
            Cell(feature.kind, feature.kind),
            *(
                _measure(difference, measure)
                for measure, _ in measures
                for difference in (feature.before, *([feature.after] if weighted else []))
            ),
        )
        for feature in diagnosis.bias.features
    )
    numeric = (False, False, *(True for _ in headings[2:]))
    return Table(tuple(headings), rows, numeric)


def _measure(difference: Difference | None, measure: str) -> Cell:
    value = None if difference is None else getattr(difference, measure)
    if value is None or math.isnan(value):
        return Cell(NOTHING)
    if measure == "mean":  # sorted by size: the sign says only the direction
        return Cell(signed(value), abs(value))
    if measure == "missing":
        return Cell(signed_share(value), abs(round(value, 3)))
    return Cell(decimal(value), value)


def mean_sentence(feature: FeatureBalance) -> str:
    """Return the mean difference of one feature before and after, in one line."""
    sides = [side for side in (feature.before, feature.after) if side is not None]
    told = [signed(side.mean) for side in sides]
    categories = [side.category for side in sides]
    for place, category in enumerate(categories):  # once, if it is the same
        if category is not None and category not in categories[place + 1 :]:
            told[place] += f" ({visible(category, 40).strip('()')})"
    return f"Mean difference {' → '.join(told)}"


def missing_sentence(shown: Distribution) -> str | None:
    """Return the shares of rows that a chart of numbers cannot place, if there are any."""
    if shown.edges is None:
        return None
    parts = []
    for place in range(len(shown.edges) - 1, len(shown.labels)):
        sides = (shown.sample, shown.weighted, shown.population)
        if not any(side is not None and side[place] > 0 for side in sides):
            continue
        shares = [f"sample {share(shown.sample[place])}"]
        if shown.weighted is not None:
            shares.append(f"weighted {share(shown.weighted[place])}")
        shares.append(f"population {share(shown.population[place])}")
        parts.append(f"{visible(shown.labels[place]).strip('()')}: {', '.join(shares)}")
    return "; ".join(parts).capitalize() or None


def share_table(shown: Distribution) -> Table:
    """Return the shares of a distribution."""
    sides = [
        ("Sample", shown.sample),
        ("Weighted", shown.weighted),
        ("Population", shown.population),
    ]
    given = [(title, shares) for title, shares in sides if shares is not None]
    rows = tuple(
        (Cell(visible(label), untrusted=True), *(Cell(share(shares[place])) for _, shares in given))
        for place, label in enumerate(shown.labels)
    )
    headings = ("Value", *(title for title, _ in given))
    return Table(headings, rows, (False, *(True for _ in given)))


def rule_table(diagnosis: Diagnosis) -> Table:
    """Return the regions that the sample does not reach."""
    rows, bars = [], []
    for rule in diagnosis.overlap.rules:
        margin = f" (±{SPACE}{100 * rule.margin:.1f})" if rule.margin >= 0.0005 else ""
        rows.append(
            (
                Cell(visible(rule.text, 400), untrusted=True),
                Cell(share(rule.share) + margin, rule.share),
                Cell(f"{count(rule.sample_rows)} of {count(rule.sample_size)}", rule.sample_rows),
            )
        )
        bars.append(rule.share / max(other.share for other in diagnosis.overlap.rules))
    headings = ("Region", "Share of the population", "Sample rows in it")
    return Table(headings, tuple(rows), (False, True, True), tuple(bars))


def weight_sentences(weights: WeightSummary, sample_rows: int, *, drawn: bool = True) -> list[str]:
    """Return what can be said of the weights by themselves; ``drawn`` where a histogram follows."""
    sentences = [
        f"The {count(sample_rows)} weighted rows tell as much about a mean as "
        f"{count(weights.effective_sample_size)} evenly weighted ones "
        f"({share(weights.effective_share)}); its variance grows {decimal(weights.design_effect)} "
        "times.",
        f"Weights run from {decimal(weights.smallest)} to {decimal(weights.largest)}, where their "
        f"mean is 1. The heaviest hundredth of the rows carries {share(weights.top_share)} of the "
        "total.",
    ]
    if weights.zero_rows:
        sentences.append(
            f"{count(weights.zero_rows)} of {count(sample_rows)} rows have no weight at all"
            + ("; the histogram shows the others." if drawn else ".")
        )
    return sentences


def histogram_table(weights: WeightSummary) -> Table:
    """Return how many rows have which weight."""
    edges, counts = weights.histogram.edges, weights.histogram.counts
    rows = tuple(
        (Cell(f"{decimal(low)} to {decimal(high)}"), Cell(count(number)))
        for low, high, number in zip(edges, edges[1:], counts, strict=False)
    )
    return Table(("Weight", "Rows"), rows, (False, True))


def heavy_table(diagnosis: Diagnosis, weights: WeightSummary) -> tuple[Table, int]:
    """Return the heaviest rows in their most biased columns, and how many columns are left out."""
    known = list(dict.fromkeys(name for row in weights.heaviest for name in row.values))
    ranked = [feature.name for feature in diagnosis.bias.features if feature.name in known]
    columns = [*ranked, *(name for name in known if name not in set(ranked))]
    chosen = columns[:HEAVY_ROW_COLUMNS]
    rows = tuple(
        (
            Cell(str(row.row), row.row),
            Cell(decimal(row.weight), row.weight),
            Cell(share(row.share), row.share),
            *(
                Cell(
                    visible(row.values[name], 60) if name in row.values else NOTHING, untrusted=True
                )
                for name in chosen
            ),
        )
        for row in weights.heaviest
    )
    headings = ("Row", "Weight", "Share", *(visible(name, 60) for name in chosen))
    numeric = (False, True, True, *(False for _ in chosen))
    return Table(headings, rows, numeric), len(columns) - len(chosen)


def outcome_table(outcome: Any) -> Table:
    """Return what weighting does to the labels, each with a margin of 1.96 standard errors."""
    of_numbers = outcome.labels == ("mean",)

    def told(value: float, error: float) -> Cell:
        if of_numbers:
            return Cell(f"{decimal(value)} ± {decimal(1.96 * error)}")
        return Cell(f"{share(value)} ± {share(1.96 * error)}")

    sides = [("Sample", outcome.before, outcome.before_error)]
    if outcome.after is not None and outcome.after_error is not None:
        sides.append(("Weighted sample", outcome.after, outcome.after_error))
    rows = tuple(
        (
            Cell("Mean" if of_numbers else visible(label), untrusted=not of_numbers),
            *(told(values[place], errors[place]) for _, values, errors in sides),
        )
        for place, label in enumerate(outcome.labels)
    )
    headings = ("Labels" if of_numbers else "Class", *(title for title, _, _ in sides))
    return Table(headings, rows, (False, *(True for _ in sides)))


def test_table(diagnosis: Diagnosis) -> Table:
    """Return the two-sample tests before and after weighting."""
    rows = []
    for test in (diagnosis.bias.classifier, diagnosis.bias.mmd):
        for stage, comparison in (("sample", test.before), ("weighted", test.after)):
            if comparison is not None:
                rows.append(
                    (
                        Cell(test.name[:1].upper() + test.name[1:]),
                        Cell(stage),
                        Cell(decimal(comparison.statistic)),
                        Cell(_interval(comparison)),
                        Cell(p_value(comparison.p_value)),
                    )
                )
    headings = ("Test", "Of the", "Statistic", "95 % interval", "If there were no bias")
    return Table(headings, tuple(rows), (False, False, True, True, True))


def _interval(comparison: Comparison) -> str:
    if comparison.low is None or comparison.high is None:
        return NOTHING
    return f"{decimal(comparison.low)} to {decimal(comparison.high)}"


def method_table(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Return how each part was computed."""
    examined, total = diagnosis.examined_rows, diagnosis.population_rows
    rows = (
        "All rows of the population."
        if examined >= total
        else f"{count(examined)} of the population's {count(total)} rows, drawn evenly, stand for "
        "it in distances, tests and regions; means, variances, missing values and categories are "
        "counted over all rows."
    )
    made = diagnosis.method if diagnosis.method is not None else None
    return [
        ("Rows examined", rows),
        *([("Weights", visible(made, 400))] if made is not None else []),
        ("Out of reach", diagnosis.overlap.method),
        (_capital(diagnosis.bias.classifier.name), diagnosis.bias.classifier.method),
        (_capital(diagnosis.bias.mmd.name), diagnosis.bias.mmd.method),
        (
            "Features",
            "Mean difference: the sample's mean less the population's, in standard deviations of "
            "the population; of categories, the one furthest from zero. Distance: Kolmogorov and "
            "Smirnov's for numbers and times, the total variation for categories; between 0 and 1. "
            "Missing: the sample's share of missing values less the population's.",
        ),
    ]


def threshold_table(diagnosis: Diagnosis) -> Table:
    """Return the thresholds by which the verdict was reached."""
    rows = tuple(
        (
            Cell(_capital(visible(name).replace("_", " "))),
            # Parts of one are told as percentages; a difference and an area are not.
            Cell(share(value) if "share" in name or "chance" in name else decimal(value)),
        )
        for name, value in diagnosis.thresholds.items()
    )
    return Table(("Threshold", "Value"), rows, (False, True))


def love_sentence(features: tuple[FeatureBalance, ...], band: float | None) -> Iterator[str]:
    """Say in words what the love plot shows."""
    known = [feature for feature in features if feature.before.mean is not None]
    if not known:
        yield "No feature has a mean to compare."
        return
    worst = max(known, key=lambda feature: abs(feature.before.mean or 0.0))
    yield (
        f"The largest mean difference is that of {visible(worst.name, 60)}: "
        f"{signed(worst.before.mean)}"
        + (f", {signed(worst.after.mean)} after weighting." if worst.after is not None else ".")
    )
    if band is not None:
        before = sum(abs(feature.before.mean or 0.0) > band for feature in known)
        after = sum(
            abs(feature.after.mean or 0.0) > band for feature in known if feature.after is not None
        )
        yield (
            f"{count(before)} of {count(len(known))} features lie outside the band of "
            f"± {decimal(band)}"
            + (f" before weighting, {count(after)} after." if known[0].after is not None else ".")
        )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
