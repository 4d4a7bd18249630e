"""The sections about the features: their mean differences, their distributions, all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from unskew.diagnostics.diagnosis import BalanceLine, Diagnosis, FeatureBalance
from unskew.report import charts
from unskew.report.blocks import (
    Block,
    Chart,
    Charts,
    Column,
    LegendEntry,
    Paragraph,
    Section,
    Table,
)
from unskew.report.numbers import NOTHING, count, decimal, share, signed, signed_share
from unskew.report.untrusted import visible

MAX_IN_LOVE_PLOT = 25
MAX_A_FEATURE = 5
"""Lines of one feature in the love plot; the table has more."""
MAX_DISTRIBUTIONS = 12


def differences(diagnosis: Diagnosis) -> Section:
    """Return the love plot: mean differences of features and categories before and after."""
    limits = diagnosis.thresholds
    balanced = limits.largest_difference
    known = [feature for feature in diagnosis.bias.features if feature.lines]
    if not known:
        nothing = Paragraph("No feature has a mean to compare.")
        return Section("balance", "Where the sample differs", [nothing])
    plotted, more = diagnosis.largest_lines(MAX_IN_LOVE_PLOT, MAX_A_FEATURE)
    feature, line = plotted[0]
    means, limit = signed(line.before), f"± {decimal(balanced)}"
    counts = f"{_outside(known, 'before', balanced)} of {count(len(known))} features differ by "
    counts += f"more than {limit}"
    if diagnosis.weights is not None:
        means += f", {signed(line.after)} after weighting"
        counts += f" before weighting, {_outside(known, 'after', balanced)} after"
    label = charts.line_label(feature, line)
    text = f"The largest mean difference is that of {label}: {means}. {counts}."
    if limits.chance_difference:
        text += (
            " The verdict judges the weights by the same limit: "
            f"{decimal(limits.balanced_difference)}, and {decimal(limits.chance_difference)} that "
            "chance explains at this effective sample size."
        )
    caption = (
        "Mean difference from the population, in standard deviations: positive if the sample has "
        "too much of a feature."
    )
    if len(known) > MAX_IN_LOVE_PLOT:
        caption += f" The {MAX_IN_LOVE_PLOT} most biased of {count(len(known))} features."
    if more:
        caption += f" {count(more)} more lines lie outside {limit}: see the table of all features."
    if any(line.size > charts.axis_end(plotted) for _, line in plotted):
        caption += " Triangles mark differences beyond the end of the axis."
    description = f"Mean differences of the features. {text}"
    chart = Chart("love", charts.love_plot(plotted, balanced), description, caption=caption)
    block = Charts([chart], [*_legend(diagnosis), "balanced"])
    return Section("balance", "Where the sample differs", [Paragraph(text), block])


def _outside(features: Sequence[FeatureBalance], stage: str, balanced: float) -> str:
    """Return how many features have a mean or a category that is not balanced."""
    found = [
        any(abs(getattr(line, stage) or 0.0) > balanced for line in feature.lines)
        for feature in features
    ]
    return count(sum(found))


def _legend(diagnosis: Diagnosis) -> Sequence[LegendEntry]:
    return ("sample",) if diagnosis.weights is None else ("sample", "weighted")


def distributions(diagnosis: Diagnosis) -> Section | None:
    """Return the distributions of the most biased features, one small chart each."""
    # Of a column of which only the mean is known, there is nothing to draw.
    features = [feature for feature in diagnosis.bias.features if feature.distribution.labels]
    drawn = [
        _distribution_chart(f"feature-{place}", feature)
        for place, feature in enumerate(features[:MAX_DISTRIBUTIONS])
    ]
    if not drawn:
        return None
    title = "Distributions"
    if len(drawn) < len(features):
        title += f" of the {len(drawn)} most biased of {count(len(features))} features"
    block = Charts(drawn, ["population", *_legend(diagnosis)], small=True)
    return Section("distributions", title, [block])


def _distribution_chart(chart_id: str, feature: FeatureBalance) -> Chart:
    shown, name = feature.distribution, visible(feature.name, 80)
    note = _mean_note(feature)
    caption = []
    if shown.edges is not None and feature.kind == "time":
        caption.append("Days since the sample's first.")
    if shown.edges is not None and shown.n_special:  # only categories have bars for missing values
        missing = [f"{side} {share(values[-1])}" for side, values in shown.shares.items()]
        caption.append(f"Missing: {', '.join(missing)}.")
    if feature.kind == "category" and len(charts.shown_categories(shown)) < len(shown.labels):
        caption.append("Rarer categories are in the table only.")
    columns = [Column("Value", [visible(label) for label in shown.labels], "data")]
    for side, values in shown.shares.items():
        columns.append(Column(side.capitalize(), [share(value) for value in values]))
    return Chart(
        chart_id,
        charts.distribution(feature) or {},
        f"Distribution of {name}. {note}.",
        title=name,
        note=note,
        caption=" ".join(caption),
        table=Table(f"{chart_id}-table", f"Shares of {name}", columns),
    )


def _mean_note(feature: FeatureBalance) -> str:
    """Return the largest mean difference of a feature, with its category."""
    if not feature.lines:
        return f"Mean difference {NOTHING}"
    line = feature.lines[0]
    after = "" if feature.after is None else f" → {signed(line.after)}"
    category = "" if line.category is None else f" for {visible(line.category, 40)}"
    return f"Mean difference {signed(line.before)}{after}{category}"


def all_features(diagnosis: Diagnosis) -> Section:
    """Return every feature, and every category that is not balanced, to search and to sort."""
    features, limit = diagnosis.bias.features, decimal(diagnosis.thresholds.balanced_difference)
    nothing = BalanceLine(None, None, None)
    lines = [(feature, line) for feature in features for line in feature.lines or (nothing,)]
    names = [visible(feature.name) for feature, _ in lines]
    categories = [NOTHING if line.category is None else visible(line.category) for _, line in lines]
    columns = [
        Column("Feature", names, "data", keys=[name.casefold() for name in names]),
        Column("Category", categories, "data", keys=[name.casefold() for name in categories]),
    ]
    stages = {"before": ""} if diagnosis.weights is None else {"before": "", "after": ", weighted"}
    for stage, suffix in stages.items():
        means = [getattr(line, stage) for _, line in lines]
        columns.append(_measures(f"Mean difference{suffix}", means, signed))
    texts: dict[tuple[str, str], Callable[[Any], str]] = {
        ("Variance ratio", "variance_ratio"): decimal,
        ("Distance", "distance"): decimal,
        ("Missing", "missing"): signed_share,
    }
    for (heading, measure), text in texts.items():
        for stage, suffix in stages.items():
            values: list[Any] = []
            for feature in features:  # what describes all of a feature is in its first line
                values.append(getattr(feature.differences[stage], measure))
                values += [""] * (len(feature.lines) - 1)
            columns.append(_measures(f"{heading}{suffix}", values, text))
    caption = "All features, the most biased first"
    blocks: list[Block] = [Table("feature-table", caption, columns, searchable=True)]
    if any(line.category is not None for _, line in lines):
        blocks.append(Paragraph(_categories_note(features, limit), note=True))
    return Section("features", "All features", blocks)


def _categories_note(features: Sequence[FeatureBalance], limit: str) -> str:
    """Return which categories have a line, and of which features they are too many."""
    note = f"Categories have a line if they lie outside ± {limit}, or are the largest difference."
    more = [f"{visible(f.name, 60)} ({count(f.unlisted)})" for f in features if f.unlisted]
    if more:
        note += f" More than these are not listed: {', '.join(more[:10])}"
        note += f" and {count(len(more) - 10)} more features." if len(more) > 10 else "."
    return note


def _measures(heading: str, values: Sequence[Any], text: Callable[[Any], str]) -> Column:
    """Return a column that is sorted by size; empty text stays empty."""
    known = [value not in (None, "") and not math.isnan(value) for value in values]
    keys = [abs(value) if there else None for value, there in zip(values, known, strict=True)]
    cells = ["" if value == "" else text(value) for value in values]
    return Column(heading, cells, keys=keys)
