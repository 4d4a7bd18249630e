"""The sections about the features: their mean differences, their distributions, all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from unskew.diagnostics.diagnosis import Diagnosis, Difference, FeatureBalance
from unskew.report import charts
from unskew.report.blocks import (
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

__all__ = ["all_features", "differences", "distributions"]

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
        sum(abs(side.mean or 0.0) > balanced for side in sides if side is not None)
        for sides in zip(*((feature.before, feature.after) for feature in known), strict=True)
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
    sides = [side for feature in plotted for side in (feature.before, feature.after) if side]
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
    sides = [side for side in (feature.before, feature.after) if side is not None]
    means = [charts.mean_text(side) for side in sides]
    if feature.after is not None and feature.before.category == feature.after.category:
        means[0] = signed(feature.before.mean)  # name the category once
    note = f"Mean difference {' → '.join(means)}"
    shares = {"Sample": shown.sample, "Weighted": shown.weighted, "Population": shown.population}
    given = {side: values for side, values in shares.items() if values is not None}
    caption = []
    if shown.edges is not None and feature.kind == "time":
        caption.append("Days since the sample's first.")
    if shown.edges is not None and shown.n_special:  # only categories have bars for missing values
        missing = [f"{side.lower()} {share(values[-1])}" for side, values in given.items()]
        caption.append(f"Missing: {', '.join(missing)}.")
    if feature.kind == "category" and len(charts.shown_categories(shown)) < len(shown.labels):
        caption.append("Rarer categories are in the table only.")
    columns = [Column("Value", [visible(label) for label in shown.labels], "data")]
    columns += [Column(side, [share(value) for value in given[side]]) for side in given]
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
    sides: dict[str, list[Difference | None]]
    sides = {"": [f.before for f in features], ", weighted": [f.after for f in features]}
    for heading, measure, text in (
        ("Mean difference", attrgetter("mean"), signed),
        ("Variance ratio", attrgetter("variance_ratio"), decimal),
        ("Distance", attrgetter("distance"), decimal),
        ("Missing", attrgetter("missing"), signed_share),
    ):
        for suffix, found in sides.items():
            if suffix and diagnosis.weights is None:
                continue
            values = [None if side is None else measure(side) for side in found]
            known = [None if value is None or math.isnan(value) else value for value in values]
            cells = [NOTHING if value is None else text(value) for value in known]
            sizes = [None if value is None else abs(value) for value in known]
            columns.append(Column(f"{heading}{suffix}", cells, keys=sizes))
    caption = "All features, the most biased first"
    return Section(
        "features", "All features", [Table("feature-table", caption, columns, searchable=True)]
    )
