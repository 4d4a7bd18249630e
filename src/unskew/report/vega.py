"""Charts as Vega draws them: in the reader's browser, or here, as SVG."""

from __future__ import annotations

from functools import cache
from typing import Any

import vl_convert

from unskew.report.charts import CONFIG

__all__ = ["library", "svg"]


@cache
def library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed with its interpreter of expressions, as one script."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


def svg(spec: dict[str, Any], width: int, label_limit: int) -> str:
    """Return a chart as an SVG element.

    Parameters
    ----------
    spec : dict
        Of Vega-Lite, without its configuration.
    width : int
        Of the whole, in pixels, labels and axes included.
    label_limit : int
        Pixels that a label of the vertical axis may take.
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
