"""How much hidden selection would change a number: a curve, its numbers, and what columns do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from html import escape

from unskew.estimation.results import OddsBounds, Sensitivity
from unskew.report import vega
from unskew.report.blocks import Block, Chart, Charts, Column, Paragraph, Table
from unskew.report.charts import PERCENT, Spec, _layer, _number, _spec
from unskew.report.numbers import decimal
from unskew.report.untrusted import visible

WIDTH = 560
"""Of the curve outside of a page, in pixels."""


def sensitivity_blocks(found: Sensitivity, *, name: str = "sensitivity") -> list[Block]:
    """Return the sentence, the curve with its numbers, and the columns for comparison.

    Parameters
    ----------
    found : Sensitivity
    name : str
        The id of the chart, and the beginning of the tables' ids; unique on a page.
    """
    chart = Chart(
        id=name,
        spec=sensitivity_chart(found),
        description=visible(found.sentence, 600),
        caption=_caption(found),
        table=_table(found, f"{name}-bounds"),
    )
    blocks: list[Block] = [Paragraph(visible(found.sentence, 600)), Charts([chart])]
    if found.columns:
        blocks.append(_columns(found, f"{name}-columns"))
    return [*blocks, *(Paragraph(visible(note, 600), note=True) for note in found.notes)]


def sensitivity_chart(found: Sensitivity) -> Spec:
    """Bounds over the odds: a band of the sharp ones in that of the plain ones, with intervals."""
    rows: list[Spec] = []
    for one in _from_one(found):
        row: Spec = {"odds": one.odds, "text": decimal(one.odds), "value": found.value}
        for name, pair in (("plain", one.plain), ("best", one.best), ("reach", one.best_interval)):
            row[f"{name}_low"], row[f"{name}_high"] = pair
            row[f"{name}_text"] = f"{found.shown(pair[0])} to {found.shown(pair[1])}"
        rows.append(row)
    shown = [f"{name}_{side}" for name in ("plain", "reach") for side in ("low", "high")]
    ends = [found.threshold, *(row[name] for row in rows for name in shown)]
    low, high = min(ends), max(ends)
    room = 0.04 * (high - low) or 1.0
    labels = {"labelExpr": PERCENT} if found.is_share else {"format": ",~g"}
    x = _number(
        "odds",
        scale={"type": "log", "domain": [1, rows[-1]["odds"]], "nice": False},
        axis={"values": [row["odds"] for row in rows], "format": "~g", "grid": False},
    )

    def y(field: str) -> Spec:
        scale = {"domain": [low - room, high + room], "nice": False, "zero": False}
        return _number(field, scale=scale, axis={"tickCount": 6, **labels})

    tooltip = [
        {"field": name, "type": "nominal", "title": title}
        for name, title in (("text", "odds"), ("best_text", "bounds"), ("plain_text", "plain"))
    ]
    layers = [
        _band("plain", "var(--population)", x, y),
        _band("best", "var(--weighted)", x, y, opacity=0.45, tooltip=tooltip),
        *(_line(f"reach_{side}", x, y, strokeDash=[4, 3]) for side in ("low", "high")),
        _line("value", x, y, strokeWidth=2),
        _layer(
            {"type": "rule", "color": "var(--sample)", "strokeWidth": 2},
            {"y": y("threshold")},
            [{"threshold": found.threshold}],
        ),
    ]
    if 1.0 < found.breakdown <= rows[-1]["odds"]:
        mark = {"type": "point", "filled": True, "size": 90, "color": "var(--sample)", "opacity": 1}
        place = [{"odds": found.breakdown, "threshold": found.threshold}]
        layers.append(_layer(mark, {"x": x, "y": y("threshold")}, place))
    return _spec(layers, rows, height=230)


def sensitivity_svg(found: Sensitivity) -> str:
    """Return the curve as an SVG element with colours of its own, for any page."""
    drawn = vega.svg(sensitivity_chart(found), WIDTH, 120)
    return re.sub(r"var\(--([\w-]+)\)", lambda name: _colours()[name[1]], drawn)


def sensitivity_html(found: Sensitivity) -> str:
    """Return the curve and its numbers, for a notebook or a page without the report's style."""
    table = _table(found, "bounds")
    head = "".join(f"<th>{escape(column.heading)}</th>" for column in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(column.cells[place])}</td>" for column in table.columns)
        for place in range(len(table))
    )
    return (
        f'<figure role="img" aria-label="{escape(found.sentence)}">{sensitivity_svg(found)}'
        f"<figcaption>{escape(_caption(found))}</figcaption></figure>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


@cache
def _colours() -> dict[str, str]:
    """Return the light colours of the style sheet by their names."""
    style = vega.template("report.css")
    return dict(re.findall(r"--([\w-]+): light-dark\((#\w+),", style))


def _from_one(found: Sensitivity) -> list[OddsBounds]:
    """Return the bounds, with those of the estimate itself before them."""
    rows = list(found.bounds)
    if rows[0].odds > 1.0:
        value = (found.value, found.value)
        sharp = None if rows[0].sharp is None else value
        interval = found.interval
        rows.insert(0, OddsBounds(1.0, value, interval, sharp, sharp and interval))
    return rows


def _band(
    name: str,
    colour: str,
    x: Spec,
    y: Callable[[str], Spec],
    *,
    opacity: float = 1.0,
    tooltip: Sequence[Spec] = (),
) -> Spec:
    encoding: Spec = {"x": x, "y": y(f"{name}_low"), "y2": {"field": f"{name}_high"}}
    if tooltip:
        encoding["tooltip"] = list(tooltip)
    return _layer({"type": "area", "color": colour, "opacity": opacity}, encoding)


def _line(field: str, x: Spec, y: Callable[[str], Spec], **style: object) -> Spec:
    return _layer({"type": "line", "color": "var(--ink)", **style}, {"x": x, "y": y(field)})


def _caption(found: Sensitivity) -> str:
    bands = "Blue: any weights within it"
    if found.bounds[0].sharp is not None:
        bands = "Grey: any weights within it; blue: weights that still match it"
    return (
        f"Values by the factor that odds of selection are off by. {bands}; dashed: with the "
        f"sampling error ({100 * found.level:.0f} %); red: "
        f"{found.shown(found.threshold)}."
    )


def _table(found: Sensitivity, name: str) -> Table:
    rows = _from_one(found)

    def pairs(kind: str) -> list[str]:
        found_pairs = [getattr(row, kind) for row in rows]
        return [f"{found.shown(low)} to {found.shown(high)}" for low, high in found_pairs]

    columns = [
        Column("odds off by at most", [decimal(row.odds) for row in rows]),
        Column("bounds", pairs("best")),
        Column("with sampling error", pairs("best_interval")),
    ]
    if rows[0].sharp is not None:
        columns.append(Column("without balance", pairs("plain")))
    return Table(name, "Bounds by the factor that odds of selection are off by", columns)


def _columns(found: Sensitivity, name: str) -> Table:
    ordered = sorted(found.columns, key=lambda one: -one.largest)
    return Table(
        name,
        "By which factor leaving out a column changes the odds of selection",
        [
            Column("column", [visible(one.column, 60) for one in ordered], "data"),
            Column("at most", [decimal(one.largest) for one in ordered]),
            Column("for 95 % of rows", [decimal(one.typical) for one in ordered]),
        ],
    )
