"""The sections about the features: their mean differences, their distributions, all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from unskew.diagnostics.diagnosis import Diagnosis, FeatureBalance
from unskew.report import charts
from unskew.report.blocks import Chart, Charts, Column, LegendEntry, Paragraph, Section, Table
from unskew.report.numbers import count, decimal, share, signed, signed_share
from unskew.report.untrusted import visible

MAX_IN_LOVE_PLOT = 25
MAX_DISTRIBUTIONS = 12


def differences(diagnosis: Diagnosis) -> Section:
    """Return the love plot: the mean difference of each feature before and after weighting."""
    features, balanced = diagnosis.bias.features, diagnosis.thresholds.balanced_difference
    known = [feature for feature in features if feature.before.mean is not None]
    if not known:
        nothing = Paragraph("No feature has a mean to compare.")
        return Section("balance", "Where the sample differs", [nothing])
    worst = max(known, key=lambda feature: abs(feature.before.mean or 0.0))
    outside = [
        sum(abs(feature.differences[stage].mean or 0.0) > balanced for feature in known)
        for stage in worst.differences
    ]
    means = signed(worst.before.mean)
    counts = f"{count(outside[0])} of {count(len(known))} features differ by more than "
    counts += f"± {decimal(balanced)}"
    if worst.after is not None:
        means += f", {signed(worst.after.mean)} after weighting"
        counts += f" before weighting, {count(outside[1])} after"
    name = visible(worst.name, 60)
    text = f"The feature {name} has the largest mean difference: {means}. {counts}."

    plotted = known[:MAX_IN_LOVE_PLOT]
    caption = (
        "Mean difference from the population, in standard deviations: positive if the sample has "
        "too much of a feature."
    )
    if len(plotted) < len(known):
        caption += f" The {len(plotted)} most biased of {count(len(known))} features."
    sides = [side for feature in plotted for side in feature.differences.values()]
    if any(abs(side.mean or 0.0) > charts.axis_end(plotted) for side in sides):
        caption += " Triangles mark differences beyond the end of the axis."
    description = f"Mean differences of the features. {text}"
    chart = Chart("love", charts.love_plot(plotted, balanced), description, caption=caption)
    block = Charts([chart], [*_legend(diagnosis), "balanced"])
    return Section("balance", "Where the sample differs", [Paragraph(text), block])


def _legend(diagnosis: Diagnosis) -> Sequence[LegendEntry]:
    return ("sample",) if diagnosis.weights is None else ("sample", "weighted")


def distributions(diagnosis: Diagnosis) -> Section | None:
    """Return the distributions of the most biased features, one small chart each."""
    features = diagnosis.bias.features
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
    means = [charts.mean_text(side) for side in feature.differences.values()]
    if feature.after is not None and feature.before.category == feature.after.category:
        means[0] = signed(feature.before.mean)  # name the category once
    note = f"Mean difference {' → '.join(means)}"
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


def all_features(diagnosis: Diagnosis) -> Section:
    """Return every feature, to search and to sort."""
    features = diagnosis.bias.features
    names, kinds = [visible(f.name) for f in features], [f.kind for f in features]
    columns = [
        Column("Feature", names, "data", keys=[name.casefold() for name in names]),
        Column("Kind", kinds, "text", keys=kinds),
    ]
    stages = {"before": ""} if diagnosis.weights is None else {"before": "", "after": ", weighted"}
    texts: dict[tuple[str, str], Callable[[Any], str]] = {
        ("Mean difference", "mean"): signed,
        ("Variance ratio", "variance_ratio"): decimal,
        ("Distance", "distance"): decimal,
        ("Missing", "missing"): signed_share,
    }
    for (heading, measure), text in texts.items():
        for stage, suffix in stages.items():
            values = [getattr(feature.differences[stage], measure) for feature in features]
            sizes = [None if value is None or math.isnan(value) else abs(value) for value in values]
            columns.append(Column(f"{heading}{suffix}", [text(v) for v in values], keys=sizes))
    caption = "All features, the most biased first"
    table = Table("feature-table", caption, columns, searchable=True)
    return Section("features", "All features", [table])
