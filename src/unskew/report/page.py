"""The report as one self-contained page.

The page's security policy allows no request and no script but its own, known by their hashes; Vega
interprets its expressions instead of compiling them. So even a name that slipped through every
escape could not execute anything.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape

import jinja2
from markupsafe import Markup

from unskew.diagnostics.diagnosis import Diagnosis
from unskew.report import vega
from unskew.report.blocks import Chart
from unskew.report.sections import build_report
from unskew.report.untrusted import script_json

WIDE, NARROW, SMALL = 860, 320, 300
"""Widths of the charts in a static page, in pixels."""


def to_html(diagnosis: Diagnosis, *, static: bool = False) -> str:
    """Return the report as one self-contained page.

    Parameters
    ----------
    diagnosis : Diagnosis
    static : bool, default=False
        Draw the charts as images and leave out JavaScript.
    """
    report, style = build_report(diagnosis), vega.template("report.css")
    scripts = [] if static else [vega.library(), vega.template("report.js")]
    specs = {"config": vega.theme(), "charts": {chart.id: chart.spec for chart in report.charts()}}
    return _template().render(
        report=report,
        draw=_draw if static else None,
        policy=_policy(style, scripts),
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        specs=Markup(script_json(specs)),
    )


def to_notebook_html(diagnosis: Diagnosis) -> str:
    """Return the report for a notebook: the static page, in a frame.

    The frame separates the styles of notebook and report, and its sandbox allows nothing.
    """
    page = escape(to_html(diagnosis, static=True), quote=True)
    return (
        f'<iframe srcdoc="{page}" sandbox="" title="Bias report" loading="lazy" '
        'style="width: 100%; height: 40rem; border: 0"></iframe>'
    )


def _draw(chart: Chart, small: bool) -> Markup:
    """Return a chart as SVG: twice if it fills the page, for wide screens and for phones."""
    if small:
        return Markup(vega.svg(chart.spec, SMALL, 120))
    wide, narrow = vega.svg(chart.spec, WIDE, 260), vega.svg(chart.spec, NARROW, 110)
    return Markup(f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>')


def _policy(style: str, scripts: list[str]) -> str:
    allowed = " ".join(_hash(script) for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("unskew.report", "template"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")
