"""The results as a picture: our means with their spread, and the printed figures beside them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from unskew.errors import InputError
from unskew.experiments.results import Row

COLOURS = {"Unweighted": "#c1440e", "Ideal": "#7f8c8d", "Clustered": "#1b6ca8", "KMM": "#8e6bb0"}
OTHER_COLOUR = "#2e8b57"


def has_matplotlib() -> bool:
    """Return whether a figure can be drawn."""
    return find_spec("matplotlib") is not None


def draw_results(rows: Sequence[Row], scaling: str, path: Path) -> None:
    """Draw one panel per total weight: dots are means, bars standard deviations over draws.

    Crosses are the paper's means, with its standard deviations, where it has any. It needs
    matplotlib, but none of its global state. The file is always a PNG.
    """
    from matplotlib.figure import Figure

    rows = [row for row in rows if (row["scaling"], row["mechanism"]) == (scaling, "logistic")]
    if not rows:
        raise InputError(f"There are no results of logistic selection under '{scaling}' scaling.")
    totals = list(dict.fromkeys(row["total"] for row in rows))
    sets = list(dict.fromkeys(row["set"] for row in rows))
    figure = Figure(figsize=(3.6 * len(totals) + 1.4, 0.62 * len(sets) + 1.9), layout="constrained")
    panels = figure.subplots(1, len(totals), sharex=True, sharey=True, squeeze=False)[0]
    for axes, total in zip(panels, totals, strict=True):
        _panel(axes, [row for row in rows if row["total"] == total], sets)
        axes.set_title(_TITLES[total], fontsize="medium")
        axes.set_xlabel("test error (NMSE)")
    panels[0].set_yticks(range(len(sets)), sets)
    panels[0].set_ylim(len(sets) - 0.45, -0.55)
    panels[0].set_xlim(left=0)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.savefig(path, format="png", dpi=160)


_TITLES = {
    "paper": "total weights as in the paper",
    "sample": "every method at Σw = m",
    "population": "every method at Σw = n",
}


def _panel(axes: Any, rows: Sequence[Row], sets: Sequence[str]) -> None:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    step = 0.78 / len(methods)
    for band in range(0, len(sets), 2):
        axes.axhspan(band - 0.5, band + 0.5, color="#f4f4f4", linewidth=0, zorder=0)
    for place, method in enumerate(methods):
        mine = [row for row in rows if row["method"] == method]
        colour = COLOURS.get(method, OTHER_COLOUR)
        heights = [
            sets.index(row["set"]) + (place - (len(methods) - 1) / 2 + 0.15) * step for row in mine
        ]
        axes.errorbar(
            [row["nmse_mean"] for row in mine],
            heights,
            xerr=[row["nmse_sd"] or 0.0 for row in mine],
            fmt="o",
            color=colour,
            markersize=5,
            linewidth=1.4,
            label=method,
        )
        printed = [
            (row, height)
            for row, height in zip(mine, heights, strict=True)
            if row["paper_nmse_mean"] is not None
        ]
        if printed:
            axes.errorbar(
                [row["paper_nmse_mean"] for row, _ in printed],
                [height - step / 3 for _, height in printed],  # so that both bars can be seen
                xerr=[row["paper_nmse_sd"] for row, _ in printed],
                fmt="x",
                color="black",
                markersize=5,
                linewidth=0.6,
                zorder=3,
                label="printed in the paper" if place == len(methods) - 1 else None,
            )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
