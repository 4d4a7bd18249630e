"""The charts, as Vega-Lite.

Text from the data is only ever a value in a row under a field name of ours: no column's name
becomes a field, which Vega would parse as a path, nor part of an expression. Colours are the style
sheet's variables, so one drawing serves light, dark and print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import altair as alt

from unskew.diagnostics.diagnosis import Distribution, FeatureBalance, Histogram
from unskew.report.numbers import count, decimal, share, signed
from unskew.report.untrusted import visible

__all__ = ["CONFIG", "distribution", "love", "weights"]

Spec = dict[str, Any]

FONT = (
    '"Segoe UI", Inter, Roboto, "Noto Sans", "Helvetica Neue", "Liberation Sans", Arial, sans-serif'
)
CONFIG: Spec = {
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "domainColor": "var(--line)",
        "gridColor": "var(--rule)",
        "tickColor": "var(--line)",
        "labelColor": "var(--muted)",
        "labelFontSize": 12,
        "labelPadding": 6,
        "title": None,
    },
    "axisY": {"domain": False, "ticks": False, "labelColor": "var(--ink)"},
}
SAMPLE, WEIGHTED = "var(--sample)", "var(--weighted)"
RING: Spec = {
    "fill": "var(--card)",
    "stroke": SAMPLE,
    "strokeWidth": 2.2,
    "size": 110,
    "opacity": 1,
}
DISC: Spec = {"fill": WEIGHTED, "strokeWidth": 0, "size": 62, "opacity": 1}
BAR: Spec = {"fill": "var(--population)", "stroke": "var(--population-line)", "strokeWidth": 0.75}
"""Sample and weighted sample: told apart by shape too, and both seen where they coincide."""

SIGNED_LABELS: Spec = {"format": "+.2~f", "labelExpr": "datum.value === 0 ? '0' : datum.label"}
PLAIN_LABELS: Spec = {"format": ",~r"}
SHORT_LABELS: Spec = {"format": "~s", "labelExpr": "replace(datum.label, 'G', 'B')"}  # billions

FURTHEST = 3.0
"""Standard deviations at which the love plot's axis ends at the latest."""
MOST_CATEGORIES = 12
NO_CATEGORY = {"(missing)", "(other)", "(not in the sample)"}


def love(features: Sequence[FeatureBalance], band: float | None) -> Spec:
    """Mean differences before and after weighting, a row a feature; the band holds small ones."""
    end = axis_end(features)
    rows = [
        row for feature, label in _labelled(features) if (row := _love_row(feature, label, end))
    ]
    span = [
        row[place] for row in rows for place in ("before", "after") if row.get(place) is not None
    ]
    least = 1.6 * (band or 0.1)
    low, high = min([-least, *span]), max([least, *span])
    x_scale = alt.Scale(domain=[1.05 * low, 1.05 * high], nice=False)

    base = alt.Chart().encode(
        y=alt.Y("feature:N", sort=None, axis=alt.Axis(grid=True, gridDash=[1, 3], labelPadding=10))
    )
    x = alt.X(
        "before:Q", scale=x_scale, axis=alt.Axis(tickCount=6, labelSeparation=10, **SIGNED_LABELS)
    )
    tips = [
        alt.Tooltip(f"{field}:N", title=title)
        for field, title in (
            ("name", "feature"),
            ("said_before", "sample"),
            ("said_after", "weighted"),
        )
        if field != "said_after" or any("said_after" in row for row in rows)
    ]
    layers: list[alt.Chart] = []
    if band is not None:
        layers.append(
            alt.Chart(alt.InlineData(values=[{"low": -band, "high": band}]))
            .mark_rect(color="var(--band)")
            .encode(x=alt.X("low:Q", scale=x_scale), x2="high:Q")
        )
    layers.append(
        alt.Chart(alt.InlineData(values=[{"zero": 0}]))
        .mark_rule(color="var(--line)")
        .encode(x=alt.X("zero:Q", scale=x_scale))
    )
    layers += [
        base.mark_rule(color="var(--link)", strokeWidth=2).encode(x=x, x2="after:Q"),
        base.mark_point(**RING).encode(
            x=x, shape=alt.Shape("before_shape:N", scale=None), tooltip=tips
        ),
        base.mark_point(**DISC).encode(
            x=alt.X("after:Q", scale=x_scale),
            shape=alt.Shape("after_shape:N", scale=None),
            tooltip=tips,
        ),
    ]
    return _spec(layers, rows, height=24 * len(rows))


def axis_end(features: Sequence[FeatureBalance]) -> float:
    """Return where the love plot's axis ends: what lies beyond is marked, not placed."""
    sizes = [
        abs(side.mean)
        for feature in features
        for side in (feature.before, feature.after)
        if side is not None and side.mean is not None and math.isfinite(side.mean)
    ]
    return min(FURTHEST, max(sizes, default=1.0) or 1.0)


def _love_row(feature: FeatureBalance, label: str, end: float) -> Spec | None:
    if feature.before.mean is None:
        return None
    row: Spec = {"feature": label, "name": feature_label(feature)}
    for place, difference in (("before", feature.before), ("after", feature.after)):
        if difference is None or difference.mean is None:
            continue
        row[place] = max(-end, min(end, difference.mean))
        row[f"{place}_shape"] = (
            "circle"
            if row[place] == difference.mean
            else ("triangle-right" if difference.mean > 0 else "triangle-left")
        )
        row[f"said_{place}"] = signed(difference.mean)
        if difference.category is not None:
            row[f"said_{place}"] += f" ({visible(difference.category, 40).strip('()')})"
    return row


def weights(histogram: Histogram) -> Spec:
    """How many rows have which weight, where weights have mean one."""
    rows = [
        {
            "low": low,
            "high": high,
            "rows": number,
            "said_range": f"{decimal(low)} to {decimal(high)}",
            "said_rows": count(number),
        }
        for low, high, number in zip(
            histogram.edges, histogram.edges[1:], histogram.counts, strict=False
        )
    ]
    low, high = histogram.edges[0], histogram.edges[-1]
    domain = [min(low, 0.8), max(high, 1.25)]
    x = alt.X(
        "low:Q",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(
            values=_ticks(*domain), format="~r" if domain[0] > 1e-4 else "~g", grid=False
        ),
    )
    bars = (
        alt.Chart()
        .mark_rect(fill=WEIGHTED, stroke="var(--card)", strokeWidth=1)
        .encode(
            x=x,
            x2="high:Q",
            y=alt.Y("rows:Q", axis=alt.Axis(tickCount=4, format=",d", tickMinStep=1)),
            y2=alt.datum(0),
            tooltip=[
                alt.Tooltip("said_range:N", title="weight"),
                alt.Tooltip("said_rows:N", title="rows"),
            ],
        )
    )
    mean = (
        alt.Chart(alt.InlineData(values=[{"low": 1}]))
        .mark_rule(color="var(--ink)", strokeDash=[4, 3])
        .encode(x=x)
    )
    return _spec([bars, mean], rows, height=190)


def _ticks(low: float, high: float) -> list[float]:
    """Return powers of ten between low and high: not all if many, and steps between if few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, math.ceil((last - first) / 8))
    powers = [power for power in range(first, last + 1) if power % stride == 0]
    for steps in ((1,), (1, 3), (1, 2, 5)):
        ticks = [step * 10.0**power for power in powers for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 4:
            break
    return ticks


def distribution(feature: FeatureBalance) -> Spec | None:
    """One column: the population as bars, sample and weighted sample as lines or marks."""
    shown = feature.distribution
    if not shown.labels:
        return None
    if shown.edges is not None:
        return _of_numbers(shown, shown.edges)
    return _of_categories(shown) if feature.kind == "category" else _of_few_values(shown)


def _of_numbers(shown: Distribution, edges: tuple[float, ...]) -> Spec:
    if edges[0] == edges[-1]:  # a constant: a bar around it
        edges = (edges[0] - 0.5, *edges[1:-1], edges[-1] + 0.5)
    widths = [max(high - low, 0.0) for low, high in pairwise(edges)]
    whole = sum(widths)
    even = whole == 0 or max(widths) - min(widths) <= 0.01 * max(widths)
    rows: list[Spec] = []
    for place, width in enumerate(widths):
        # Of uneven bins the area, not the height, is the share.
        scale = 1.0 if even else (whole / len(widths) / width if width else 1.0)
        row: Spec = {
            "low": edges[place],
            "high": edges[place + 1],
            "population": scale * shown.population[place],
            "sample": scale * shown.sample[place],
            **_said(shown, place),
        }
        if shown.weighted is not None:
            row["weighted"] = scale * shown.weighted[place]
        rows.append(row)
    x_scale = alt.Scale(domain=[edges[0], edges[-1]], nice=False, zero=False)
    axis = alt.Axis(tickCount=4, grid=False, **(SHORT_LABELS if _large(edges) else PLAIN_LABELS))
    y_axis = alt.Axis(labels=False, grid=False)
    rows.append({**rows[-1], "low": edges[-1]})  # the last step's end; as a bar, of no width
    base = alt.Chart().encode(x=alt.X("low:Q", scale=x_scale, axis=axis))
    step: Spec = {"interpolate": "step-after", "strokeWidth": 2}
    layers = [
        base.mark_rect(**BAR).encode(
            x2="high:Q",
            y=alt.Y("population:Q", axis=y_axis),
            y2=alt.datum(0),
            tooltip=_tips(shown),
        ),
        base.mark_line(color=SAMPLE, **step).encode(y=alt.Y("sample:Q", axis=y_axis)),
    ]
    if shown.weighted is not None:
        layers.append(
            base.mark_line(color=WEIGHTED, strokeDash=[5, 2], **step).encode(
                y=alt.Y("weighted:Q", axis=y_axis)
            )
        )
    return _spec(layers, rows, height=130)


def _of_few_values(shown: Distribution) -> Spec:
    """Numbers or times of so few values that each has its bar."""
    axis = alt.Axis(labelAngle=0, labelSeparation=6, labelOverlap=True, domain=True)
    base = alt.Chart().encode(x=alt.X("category:O", sort=None, axis=axis), tooltip=_tips(shown))
    rows = _bar_rows(shown, range(len(shown.labels)))
    return _spec(
        _bar_layers(base, shown, "y", alt.Axis(labels=False, grid=False)), rows, height=130
    )


def _of_categories(shown: Distribution) -> Spec:
    base = alt.Chart().encode(y=alt.Y("category:N", sort=None), tooltip=_tips(shown))
    rows = _bar_rows(shown, shown_categories(shown))
    layers = _bar_layers(base, shown, "x", alt.Axis(tickCount=4, format=".0%"))
    return _spec(layers, rows, height=max(60, 23 * len(rows)))


def shown_categories(shown: Distribution) -> list[int]:
    """Return the places of the categories that a chart shows: the most frequent, and the rest's."""
    places = range(len(shown.labels))
    return sorted(
        sorted(
            places,
            key=lambda place: (
                shown.labels[place] not in NO_CATEGORY,
                -max(shown.population[place], shown.sample[place]),
            ),
        )[:MOST_CATEGORIES]
    )


def _bar_rows(shown: Distribution, places: Sequence[int]) -> list[Spec]:
    labels = _distinct([visible(shown.labels[place], 40) for place in places])
    rows = []
    for place, label in zip(places, labels, strict=True):
        row: Spec = {
            "category": label,
            "population": shown.population[place],
            "sample": shown.sample[place],
            **_said(shown, place),
        }
        if shown.weighted is not None:
            row["weighted"] = shown.weighted[place]
        rows.append(row)
    return rows


def _bar_layers(
    base: alt.Chart, shown: Distribution, along: str, axis: alt.Axis
) -> list[alt.Chart]:
    channel = alt.X if along == "x" else alt.Y
    thick: Spec = {"height": 13} if along == "x" else {"width": {"band": 0.8}}
    layers = [
        base.mark_bar(**thick, **BAR).encode(**{along: channel("population:Q", axis=axis)}),
        base.mark_point(**RING).encode(**{along: channel("sample:Q", axis=axis)}),
    ]
    if shown.weighted is not None:
        layers.append(base.mark_point(**DISC).encode(**{along: channel("weighted:Q", axis=axis)}))
    return layers


def _said(shown: Distribution, place: int) -> Spec:
    said = {
        "said_label": visible(shown.labels[place]),
        "said_sample": share(shown.sample[place]),
        "said_population": share(shown.population[place]),
    }
    if shown.weighted is not None:
        said["said_weighted"] = share(shown.weighted[place])
    return said


def _tips(shown: Distribution) -> list[alt.Tooltip]:
    parts = ["label", "sample", *(["weighted"] if shown.weighted is not None else []), "population"]
    return [alt.Tooltip(f"said_{part}:N", title="" if part == "label" else part) for part in parts]


def _large(edges: tuple[float, ...]) -> bool:
    return max(abs(edges[0]), abs(edges[-1])) >= 10_000


def _labelled(features: Sequence[FeatureBalance]) -> list[tuple[FeatureBalance, str]]:
    labels = _distinct([feature_label(feature) for feature in features])
    return list(zip(features, labels, strict=True))


def feature_label(feature: FeatureBalance) -> str:
    """Return the name of a feature, with the category if both its mean differences are of one."""
    category, after = feature.before.category, feature.after
    if category is None or (after is not None and after.category != category):
        return visible(feature.name, 60)
    return f"{visible(feature.name, 60)} = {visible(category, 30)}"


def _distinct(labels: list[str]) -> list[str]:
    """Return labels of which no two are equal, as shortening may have made them."""
    seen: dict[str, int] = {}
    distinct = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        distinct.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return distinct


def _spec(layers: list[alt.Chart], rows: list[Spec], height: int) -> Spec:
    chart = alt.layer(
        *layers, data=alt.InlineData(values=[_rounded(row) for row in rows])
    ).properties(
        width="container",
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    )
    spec: Spec = chart.to_dict(validate=False)
    spec.pop("config", None)  # CONFIG, once for all charts of a page
    return spec


def _rounded(row: Spec) -> Spec:
    """Return a row with as many digits as a chart can show: half of a page would be the others."""
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in row.items()
    }
