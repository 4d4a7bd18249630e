"""Vega, which draws the charts: in the reader's browser, or here as SVG."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import vl_convert


@cache
def template(name: str) -> str:
    """Return the text of a file of the template."""
    return (files("unskew.report") / "template" / name).read_text(encoding="utf-8")


def theme() -> dict[str, Any]:
    """Return the fonts, lines and colours of all charts: Vega-Lite's configuration."""
    config: dict[str, Any] = json.loads(template("theme.json"))
    return config


@cache
def library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed with its expression interpreter, as one script."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


def svg(spec: dict[str, Any], width: int, label_limit: int) -> str:
    """Return a chart as an SVG element.

    Parameters
    ----------
    spec : dict
        Vega-Lite, without its configuration.
    width : int
        In pixels, including labels and axes.
    label_limit : int
        The longest label of the vertical axis, in pixels.
    """
    config = theme()
    config["axisY"]["labelLimit"] = label_limit
    return vl_convert.vegalite_to_svg({**spec, "width": width, "padding": 2, "config": config})
