"""The figures of docs/table-1.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from docs.table_1_rounds import Round
from unskew.paper.printed import Row
from unskew.paper.results import draw_results

COLOURS = {"raw": "#1b6ca8", "standardised": "#c1440e", "[0, 1]": "#7f8c8d"}


def draw_table(table: Round, totals: Round, path: Path) -> None:
    """Draw our means over seeds, with the standard deviation between them, and the printed ones."""
    rows: list[Row] = []
    for panel, total in ((table, "paper"), (totals, "sample"), (totals, "population")):
        for group in panel.rows(total=total):
            errors = [row["nmse_mean"] for row in group]
            spread = float(np.std(errors, ddof=1))
            rows.append({**group[0], "nmse_mean": float(np.mean(errors)), "nmse_sd": spread})
    draw_results(rows, "range", path)


def draw_sizes(sizes: Mapping[str, Any], path: Path) -> None:
    """Draw, for each set, the expected sizes of random w by reading, and the printed one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.4, 6.4), layout="constrained")
    panels = figure.subplots(3, 3).ravel()
    for axes, (name, found) in zip(panels, sizes["sets"].items(), strict=True):
        for place, (scaler, colour) in enumerate(COLOURS.items()):
            sizes_at = np.array(found[scaler]["percentiles"])
            grid = np.linspace(sizes_at[0], sizes_at[-1], 80)
            density = gaussian_kde(sizes_at)(grid)
            height = 0.42 * density / density.max()
            axes.fill_between(
                grid, place - height, place + height, color=colour, alpha=0.75, linewidth=0
            )
        axes.axvline(found["m"], color="black", linewidth=1.2)
        axes.set_title(f"{name}: printed {found['m']}", fontsize="medium")
        axes.set_yticks(range(3), COLOURS)
        axes.set_ylim(2.6, -0.6)
        axes.tick_params(labelsize="small")
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("expected sample size of w drawn from [-1, 1]^d; line: the printed size")
    figure.savefig(path, format="png", dpi=150)
