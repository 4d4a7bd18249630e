"""Vega, which draws the charts: in the reader's browser, or here as SVG."""

from __future__ import annotations

import json
import mmap
import sys
from functools import cache
from importlib.resources import files
from typing import Any

import vl_convert

from unskew.errors import warn_caller

V8_RESERVES = 72 * 2**30
"""Bytes of addresses, not of memory, that drawing here reserves; without them, V8 aborts."""
_NOT_DRAWN = "Not drawn: this process may not reserve the addresses that drawing takes (ulimit -v)."


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
    if not _may_reserve():
        warn_caller(
            UserWarning(f"{_NOT_DRAWN} to_html() without static=True draws in the browser.")
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 40">'
            f'<text y="24" font-size="12">{_NOT_DRAWN}</text></svg>'
        )
    config = theme()
    config["axisY"]["labelLimit"] = label_limit
    return vl_convert.vegalite_to_svg({**spec, "width": width, "padding": 2, "config": config})


def _may_reserve() -> bool:
    """Return whether a limit such as RLIMIT_AS leaves V8 the addresses that it reserves."""
    if sys.platform != "linux":
        return True
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        mmap.mmap(-1, V8_RESERVES, flags=flags, prot=0).close()  # addresses, and no memory
    except OSError:
        return False
    return True
