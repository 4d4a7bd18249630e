"""The charts, as Vega-Lite specifications.

Text from the data is only ever a value in a row, under a fixed field name: no column's name becomes
a field, which Vega would parse as a path, nor part of an expression. Colours are variables of the
style sheet, so one drawing serves light, dark and print; fonts and axes are in the theme beside it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from unskew.diagnostics.diagnosis import (
    BalanceLine,
    Distribution,
    FeatureBalance,
    Histogram,
    Outcome,
    Stage,
)
from unskew.report.numbers import count, decimal, share, signed
from unskew.report.untrusted import visible

Spec = dict[str, Any]

SAMPLE, WEIGHTED = "var(--sample)", "var(--weighted)"
# Sample and weighted sample differ in shape too, and both are visible where they coincide.
RING: Spec = {
    "type": "point",
    "size": 110,
    "opacity": 1,
    "fill": "var(--card)",
    "stroke": SAMPLE,
    "strokeWidth": 2.2,
}
DISC: Spec = {"type": "point", "size": 62, "opacity": 1, "fill": WEIGHTED, "strokeWidth": 0}
BAR: Spec = {"fill": "var(--population)", "stroke": "var(--population-line)", "strokeWidth": 0.75}

SIGNED_LABELS: Spec = {"format": "+.2~f", "labelExpr": "datum.value === 0 ? '0' : datum.label"}
PLAIN_LABELS: Spec = {"format": ",~r"}
SHORT_LABELS: Spec = {  # with B for billions
    "format": "~s",
    "labelExpr": "datum.value === 0 ? '0' : replace(datum.label, 'G', 'B')",
}
PERCENT = "format(100 * datum.value, '.1~f') + ' %'"
SHARES: Spec = {"tickCount": 4, "labelExpr": PERCENT, "labelColor": "var(--muted)"}

MAX_AXIS = 3.0
"""Standard deviations at which the axis of the love plot ends at the latest."""
MAX_CATEGORIES = 12


def love_plot(lines: Sequence[tuple[FeatureBalance, BalanceLine]], balanced: float) -> Spec:
    """Mean differences before and after weighting, one row a feature or category.

    A band marks the differences that count as ``balanced``.
    """
    end = axis_end(lines)
    labels = [line_label(feature, line) for feature, line in lines]
    rows = [
        _love_row(line, {"feature": label, "name": name}, end)
        for (_, line), name, label in zip(lines, labels, _distinct(labels), strict=True)
    ]
    ends = [row[side] for row in rows for side in ("before", "after") if side in row]
    low, high = min([-1.6 * balanced, *ends]), max([1.6 * balanced, *ends])
    scale = {"domain": [1.05 * low, 1.05 * high], "nice": False}
    y = _category("feature", sort=None, axis={"grid": True, "gridDash": [1, 3], "labelPadding": 10})
    axis = {"tickCount": 6, "labelSeparation": 10, **SIGNED_LABELS}
    before, after = _number("before", scale=scale, axis=axis), _number("after", scale=scale)
    tooltip = [_category("name", title="feature"), _category("before_text", title="sample")]
    if any("after" in row for row in rows):
        tooltip.append(_category("after_text", title="weighted"))
    band = [{"low": -balanced, "high": balanced, "zero": 0}]
    layers = [
        _layer(
            {"type": "rect", "color": "var(--band)"},
            {"x": _number("low", scale=scale), "x2": {"field": "high"}},
            band,
        ),
        _layer({"type": "rule", "color": "var(--line)"}, {"x": _number("zero", scale=scale)}, band),
        _layer(
            {"type": "rule", "color": "var(--link)", "strokeWidth": 2},
            {"y": y, "x": before, "x2": {"field": "after"}},
        ),
    ]
    for mark, x in ((RING, before), (DISC, after)):
        shape = _category(f"{x['field']}_shape", scale=None)
        layers.append(_layer(mark, {"y": y, "x": x, "shape": shape, "tooltip": tooltip}))
    return _spec(layers, rows, height=24 * len(rows))


def axis_end(lines: Sequence[tuple[FeatureBalance, BalanceLine]]) -> float:
    """Return where the axis of the love plot ends: differences beyond it are marked at its end."""
    sizes = [
        abs(difference)
        for _, line in lines
        for difference in (line.before, line.after)
        if difference is not None and math.isfinite(difference)
    ]
    return min(MAX_AXIS, max(sizes, default=1.0) or 1.0)


def _love_row(line: BalanceLine, row: Spec, end: float) -> Spec:
    for side, difference in (("before", line.before), ("after", line.after)):
        if difference is None:
            continue
        row[side] = max(-end, min(end, difference))
        beyond = "triangle-right" if difference > 0 else "triangle-left"
        row[f"{side}_shape"] = "circle" if row[side] == difference else beyond
        row[f"{side}_text"] = signed(difference)
    return row


def line_label(feature: FeatureBalance, line: BalanceLine) -> str:
    """Return the name of a feature, with the category that a line is about."""
    name = visible(feature.name, 60)
    return name if line.category is None else f"{name} = {visible(line.category, 30)}"


def weights(histogram: Histogram) -> Spec:
    """How many rows have which weight, on a logarithmic axis; the mean is one."""
    edges = histogram.edges
    rows = [
        {
            "low": low,
            "high": high,
            "rows": number,
            "range_text": f"{decimal(low)} to {decimal(high)}",
            "rows_text": count(number),
        }
        for (low, high), number in zip(pairwise(edges), histogram.counts, strict=True)
    ]
    domain = [min(edges[0], 0.8), max(edges[-1], 1.25)]
    labels = "~r" if domain[0] > 1e-4 else "~g"
    axis = {"values": _ticks(*domain), "format": labels, "grid": False}
    x = _number("low", scale={"type": "log", "domain": domain, "nice": False}, axis=axis)
    y = _number("rows", axis={"tickCount": 4, "format": ",d", "tickMinStep": 1})
    tooltip = [_category("range_text", title="weight"), _category("rows_text", title="rows")]
    layers = [
        _layer(
            {"type": "rect", "fill": WEIGHTED, "stroke": "var(--card)", "strokeWidth": 1},
            {"x": x, "x2": {"field": "high"}, "y": y, "y2": {"datum": 0}, "tooltip": tooltip},
        ),
        _layer(
            {"type": "rule", "color": "var(--ink)", "strokeDash": [4, 3]}, {"x": x}, [{"low": 1}]
        ),
    ]
    return _spec(layers, rows, height=190)


def _ticks(low: float, high: float) -> list[float]:
    """Return powers of ten between low and high: fewer of many, and steps between few.

    Examples
    --------
    >>> _ticks(0.02, 90.0), _ticks(0.6, 1.5)
    ([0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0], [0.6, 0.8, 1.0, 1.2, 1.4])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, math.ceil((last - first) / 8))
    powers = [power for power in range(first, last + 1) if power % stride == 0]
    for steps in ((1,), (1, 3), (1, 2, 5)):
        ticks = [float(f"{step}e{power}") for power in powers for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 4:
            return ticks
    # So near each other that equal steps serve: of 1, 2 or 5 in some digit, four or more.
    power = math.floor(math.log10((high - low) / 4))
    sizes = [float(f"{digit}e{power}") for digit in (5, 2, 1)]
    step = next(size for size in sizes if 4 * size <= high - low)
    places = range(math.ceil(low / step), math.floor(high / step) + 1)
    return [float(f"{place * step:.12g}") for place in places]


def answers(outcome: Outcome, names: Sequence[str], texts: dict[str, list[str]]) -> Spec:
    """Naive and corrected values of the labels with their intervals, one row a class."""
    rows: list[Spec] = [
        {"category": label, "label_text": name}
        for label, name in zip(_distinct([name[:60] for name in names]), names, strict=True)
    ]
    axis = {"tickCount": 5, **PLAIN_LABELS} if outcome.kind == "mean" else SHARES
    y = _category("category", sort=None, axis={"grid": True, "gridDash": [1, 3]})
    tooltip = [_category("label_text", title="labels"), _category("before_text", title="sample")]
    if outcome.after is not None:
        tooltip.append(_category("after_text", title="weighted"))
    layers = []
    sides: list[tuple[Stage, Spec, str, int]] = [
        ("before", RING, SAMPLE, -7),
        ("after", DISC, WEIGHTED, 7),
    ]
    for stage, mark, colour, offset in sides:
        found = outcome.answers(stage)
        if found is None:
            continue
        for row, (value, low, high), text in zip(rows, found, texts[stage], strict=True):
            row |= {stage: value, f"{stage}_low": low, f"{stage}_high": high}
            row[f"{stage}_text"] = text
        x = {"scale": {"zero": False}, "axis": axis}
        line = {"type": "rule", "color": colour, "strokeWidth": 2.2, "yOffset": offset}
        ends = {"x": _number(f"{stage}_low", **x), "x2": {"field": f"{stage}_high"}}
        layers.append(_layer(line, {"y": y, **ends}))
        at = {"y": y, "x": _number(stage, **x), "tooltip": tooltip}
        layers.append(_layer({**mark, "yOffset": offset}, at))
    return _spec(layers, rows, height=max(70, 40 * len(rows)))


def distribution(feature: FeatureBalance) -> Spec | None:
    """One column: the population as bars, sample and weighted sample as lines or points."""
    shown = feature.distribution
    if not shown.labels:
        return None
    if shown.edges is not None:
        return _histogram(shown, shown.edges)
    if feature.kind == "category":
        rows = _rows(shown, shown_categories(shown))
        bars = _bars(shown, "x", SHARES, _category("category", sort=None))
        return _spec(bars, rows, height=max(60, 23 * len(rows)))
    # Numbers or times of so few values that each has its bar, in order.
    axis = {"labelAngle": 0, "labelSeparation": 6, "labelOverlap": True, "domain": True}
    values = {**_category("category", sort=None, axis=axis), "type": "ordinal"}
    bars = _bars(shown, "y", SHARES, values)
    return _spec(bars, _rows(shown, range(len(shown.labels))), height=130)


def _histogram(shown: Distribution, edges: tuple[float, ...]) -> Spec:
    rows = _rows(shown, range(len(edges) - 1))
    for row, (low, high) in zip(rows, pairwise(edges), strict=True):
        row.update(low=low, high=high)
    rows.append({**rows[-1], "low": edges[-1]})  # the end of the last step; as a bar, of no width
    labels = SHORT_LABELS if max(abs(edges[0]), abs(edges[-1])) >= 10_000 else PLAIN_LABELS
    scale = {"domain": [edges[0], edges[-1]], "nice": False, "zero": False}
    x = _number("low", scale=scale, axis={"tickCount": 4, "grid": False, **labels})
    step: Spec = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    marks = {
        "population": {"type": "rect", **BAR},
        "sample": {**step, "color": SAMPLE},
        "weighted": {**step, "color": WEIGHTED, "strokeDash": [5, 2]},
    }
    layers = _layers(shown, marks, "y", SHARES, {"x": x})
    bar = {"x2": {"field": "high"}, "y2": {"datum": 0}, "tooltip": _tooltip(shown)}
    layers[0]["encoding"].update(bar)
    return _spec(layers, rows, height=130)


def shown_categories(shown: Distribution) -> list[int]:
    """Return the places of the categories in a chart: the special ones and the most frequent."""
    n_categories = len(shown.labels) - shown.n_special
    frequent = sorted(
        range(n_categories), key=lambda place: -max(shown.population[place], shown.sample[place])
    )
    special = range(n_categories, len(shown.labels))
    return sorted(frequent[: MAX_CATEGORIES - shown.n_special]) + list(special)


def _rows(shown: Distribution, places: Sequence[int]) -> list[Spec]:
    labels = _distinct([visible(shown.labels[place], 40) for place in places])
    return [
        {
            "category": label,
            "label_text": visible(shown.labels[place]),
            **{side: shares[place] for side, shares in shown.shares.items()},
            **{f"{side}_text": share(shares[place]) for side, shares in shown.shares.items()},
        }
        for place, label in zip(places, labels, strict=True)
    ]


def _tooltip(shown: Distribution) -> list[Spec]:
    sides = [_category(f"{side}_text", title=side) for side in shown.shares]
    return [_category("label_text", title=""), *sides]


def _bars(shown: Distribution, along: str, axis: Spec, categories: Spec) -> list[Spec]:
    across = "y" if along == "x" else "x"
    bar = {"type": "bar", **BAR, **({"height": 13} if along == "x" else {"width": {"band": 0.8}})}
    marks = {"population": bar, "sample": RING, "weighted": DISC}
    encoding = {across: categories, "tooltip": _tooltip(shown)}
    return _layers(shown, marks, along, axis, encoding)


def _layers(
    shown: Distribution, marks: dict[str, Spec], along: str, axis: Spec, encoding: Spec
) -> list[Spec]:
    """Return a layer for each side, the first one at the back."""
    return [
        _layer(mark, {**encoding, along: _number(side, axis=axis)})
        for side, mark in marks.items()
        if side in shown.shares
    ]


def _distinct(labels: list[str]) -> list[str]:
    """Return labels of which no two are equal, as shortening may have made them."""
    seen: Counter[str] = Counter()
    distinct = []
    for label in labels:
        seen[label] += 1
        distinct.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return distinct


def _number(field: str, **options: Any) -> Spec:
    return {"field": field, "type": "quantitative", **options}


def _category(field: str, **options: Any) -> Spec:
    return {"field": field, "type": "nominal", **options}


def _layer(mark: Spec, encoding: Spec, rows: list[Spec] | None = None) -> Spec:
    data = {} if rows is None else {"data": {"values": rows}}
    return {"mark": mark, "encoding": encoding, **data}


def _spec(layers: list[Spec], rows: list[Spec], height: int) -> Spec:
    return {
        "data": {"values": [_rounded(row) for row in rows]},
        "layer": layers,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
    }


def _rounded(row: Spec) -> Spec:
    """Return a row with as many digits as a chart can show: the others would double the page."""
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in row.items()
    }
