"""The figure of docs/accuracy.md: which weights are near the truth, and which help a learner."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.accuracy.results import REWEIGHTED, Interval, Results

OURS, PEER, CHOSEN, NONE = "#1b6ca8", "#b5b5b5", "#c1440e", "#333333"
FEWEST_CELLS = 15
"""Methods with fewer, one pass over the tables, are in the page's table only."""
PEERS = ("adapt", "densratio", "skada", "balance")


def is_peer(method: str) -> bool:
    """Whether a method is another package's."""
    return method.startswith(PEERS)


def draw(results: Results, path: Path) -> None:
    """Draw both panels."""
    hidden = ("Ideal", "AutoWeights, power ½")
    methods = [
        name
        for name in results.methods
        if name not in hidden and len(results.of(name)) >= FEWEST_CELLS
    ]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 0.25 * len(methods) + 1.4), layout="constrained", width_ratios=[1.2, 1]
    )
    errors = {name: results.mean(name, "weight", results.of(name)) for name in methods}
    _bars(left, errors, "AutoWeights")
    left.set(
        title="Error of the weights", xlabel="mean distance from the true weights (0 is exact)"
    )
    compared = ["AutoWeights", "AutoWeights, power ½", "TreeWeights(4)", "TreeWeights(20)"]
    compared += ["KernelMeanMatching", "Ideal", REWEIGHTED]
    changes = {name: results.change(name) for name in compared}
    _dots(right, changes)
    right.set(
        title="What they do to a learner",
        xlabel="change of its error, % (below 0 is better)",
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _bars(axes: Axes, values: dict[str, Interval], chosen: str) -> None:
    names = sorted(values, key=lambda name: values[name].mean, reverse=True)
    special = {chosen: CHOSEN, "Unweighted": NONE}
    colours = [special.get(name, PEER if is_peer(name) else OURS) for name in names]
    axes.barh(names, [values[name].mean for name in names], color=colours)
    for place, name in enumerate(names):
        axes.text(values[name].mean, place, f" {values[name].mean:.2f}", va="center", fontsize=8)
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        label.set_color(CHOSEN if name == chosen else "black")
    axes.spines[["top", "right"]].set_visible(False)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in (CHOSEN, OURS, PEER, NONE)]
    axes.legend(
        handles,
        ["AutoWeights, the default", "unskew", "other packages", "no weights"],
        frameon=False,
    )


def _dots(axes: Axes, values: dict[str, Interval]) -> None:
    names = sorted(values, key=lambda name: values[name].mean, reverse=True)
    for place, name in enumerate(names):
        colour = CHOSEN if name == REWEIGHTED else OURS
        mean, half = 100 * values[name].mean, 100 * values[name].half
        axes.errorbar(mean, place, xerr=half, fmt="o", color=colour, capsize=3)
        axes.text(mean, place + 0.18, f"{mean:+.1f} %", ha="center", fontsize=8, color=colour)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.2)
    axes.spines[["top", "right"]].set_visible(False)
