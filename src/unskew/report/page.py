"""The report as one page that stands alone.

The page's security policy lets no request out and runs no script but those of this page, which it
knows by their hashes; Vega interprets its expressions instead of compiling them. So even a name
that slipped through every escape would find nothing that executes it.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from unskew import __version__
from unskew.diagnostics.diagnosis import Diagnosis, FeatureBalance
from unskew.report import charts, content, vega
from unskew.report.numbers import count
from unskew.report.untrusted import script_json, visible

__all__ = ["to_html", "to_notebook_html"]

MOST_IN_LOVE_PLOT = 25
MOST_DISTRIBUTIONS = 12
WIDE, NARROW, CARD = 860, 320, 290
"""Widths of charts in the page without JavaScript, in pixels."""


def to_html(diagnosis: Diagnosis, *, static: bool = False) -> str:
    """Return the report as one self-contained page.

    Parameters
    ----------
    diagnosis : Diagnosis
    static : bool, default=False
        With charts as pictures and no JavaScript at all.
    """
    style = _source("report.css")
    scripts = [] if static else [vega.library(), _source("report.js")]
    page = _Page(diagnosis, static)
    specs = page.specs()
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            page=page,
            content=content,
            diagnosis=diagnosis,
            policy=_policy(style, scripts),
            style=Markup(style),
            scripts=[Markup(script) for script in scripts],
            specs=specs,
            specs_json=Markup(script_json({"config": charts.CONFIG, "charts": specs})),
            version=__version__,
        )
    )


def to_notebook_html(diagnosis: Diagnosis) -> str:
    """Return the report for a notebook: the page without JavaScript, in a frame of its own.

    The frame keeps the notebook's styles out and the report's in, and its sandbox allows nothing.
    """
    page = escape(to_html(diagnosis, static=True), quote=True)
    return (
        f'<iframe srcdoc="{page}" sandbox="" title="Bias report" loading="lazy" '
        'style="width: 100%; height: 40rem; border: 0"></iframe>'
    )


@dataclass(frozen=True)
class _Page:
    """What the template asks for."""

    diagnosis: Diagnosis
    static: bool

    @property
    def band(self) -> float | None:
        return mean_threshold(self.diagnosis.thresholds)

    @property
    def love_features(self) -> tuple[FeatureBalance, ...]:
        return self.diagnosis.bias.features[:MOST_IN_LOVE_PLOT]

    @property
    def beyond(self) -> int:
        """How many features of the love plot lie beyond its axis."""
        end = charts.axis_end(self.love_features)
        return sum(
            any(
                side is not None and abs(side.mean or 0.0) > end
                for side in (feature.before, feature.after)
            )
            for feature in self.love_features
        )

    @property
    def shown_features(self) -> tuple[FeatureBalance, ...]:
        return self.diagnosis.bias.features[:MOST_DISTRIBUTIONS]

    @property
    def has_weights(self) -> bool:
        weights = self.diagnosis.weights
        return weights is not None and sum(weights.histogram.counts) > 0

    def hidden_categories(self, feature: FeatureBalance) -> int:
        if feature.kind != "category":
            return 0
        shown = feature.distribution
        return len(shown.labels) - len(charts.shown_categories(shown))

    def specs(self) -> dict[str, Any]:
        specs = {}
        if any(feature.before.mean is not None for feature in self.love_features):
            specs["love"] = charts.love(self.love_features, self.band)
        if self.diagnosis.weights is not None and self.has_weights:
            specs["weights"] = charts.weights(self.diagnosis.weights.histogram)
        for place, feature in enumerate(self.shown_features):
            spec = charts.distribution(feature)
            if spec is not None:
                specs[f"feature-{place}"] = spec
        return specs

    def chart(self, name: str, spec: dict[str, Any], label: str) -> Markup:
        """Return the place of a chart, or its picture."""
        head = Markup('<div class="chart" role="img" aria-label="{}"').format(label)
        if not self.static:
            return head + Markup(' data-chart="{}"></div>').format(name)
        if name.startswith("feature-"):
            return head + Markup(f">{vega.svg(spec, CARD, 120)}</div>")
        wide, narrow = vega.svg(spec, WIDE, 260), vega.svg(spec, NARROW, 110)
        return head + Markup(
            f'><div class="wide">{wide}</div><div class="narrow">{narrow}</div></div>'
        )


def mean_threshold(thresholds: dict[str, float]) -> float | None:
    """Return the mean difference up to which a feature counts as balanced, if one is told."""
    return next((value for name, value in thresholds.items() if "difference" in name), None)


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
def _source(name: str) -> str:
    return (files("unskew.report") / "template" / name).read_text(encoding="utf-8")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("unskew.report", "template"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = count
    environment.filters["visible"] = visible
    return environment
