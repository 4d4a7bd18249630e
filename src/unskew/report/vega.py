"""Vega, which draws the charts: in the reader's browser, or here as SVG."""

from __future__ import annotations

from functools import cache
from typing import Any

import vl_convert

from unskew.report.charts import CONFIG

__all__ = ["library", "svg"]


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
    axis_y = {**CONFIG["axisY"], "labelLimit": label_limit}
    return vl_convert.vegalite_to_svg(
        {
            **spec,
            "width": width,
            "padding": 2,
            "config": {**CONFIG, "axisY": axis_y},
        }
    )
