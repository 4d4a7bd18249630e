"""Draw the figures of the README and the docs: ``make figures``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from docs.guarantee_figures import draw_flips, draw_guarantees
from docs.guide_figures import draw_guide
from docs.method_figures import draw_methods
from unskew.cli.demonstration import COLUMNS, METHODS, Draw, demonstrate, make_clinic

IMAGES = Path(__file__).parent / "images"
COLOURS = {"unweighted": "#c1440e", "ideal": "#7f8c8d", "tree": "#7fb0d6", "auto": "#1b6ca8"}
DRAWS = 30


def draw_demo() -> None:
    """Draw one weighted sample on the left and the errors of all draws on the right."""
    draws = list(demonstrate(DRAWS))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    _distributions(left, draws[0])
    _errors(right, draws)
    figure.savefig(IMAGES / "demo.png", dpi=160)


def _distributions(axes: Axes, draw: Draw) -> None:
    population = make_clinic(200_000, random_state=0).patients
    column = _most_shifted(draw.sample, population)
    bins = np.linspace(*np.quantile(population[:, column], [0.001, 0.999]), 30)
    shown = population[:, column]
    axes.hist(shown, bins, density=True, color="#d9d9d9", label="population")
    for weights, colour, label in (
        (draw.weights["unweighted"], COLOURS["unweighted"], "unweighted sample"),
        (draw.weights["auto"], COLOURS["auto"], "sample with automatic weights"),
    ):
        axes.hist(
            draw.sample[:, column],
            bins,
            weights=weights,
            density=True,
            histtype="step",
            linewidth=1.8,
            color=colour,
            label=label,
        )
    axes.set(xlabel=COLUMNS[column].replace("_", " "), yticks=[], title="One biased sample")
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right", "left"]].set_visible(False)


def _most_shifted(sample: np.ndarray, population: np.ndarray) -> int:
    shift = np.abs(sample.mean(axis=0) - population.mean(axis=0)) / population.std(axis=0)
    return int(np.argmax(shift[:-1]))  # the last column is binary


def _errors(axes: Axes, draws: list[Draw]) -> None:
    errors = np.array([[draw.errors[method] for method in METHODS] for draw in draws])
    for row in errors:
        axes.plot(range(len(METHODS)), row, color="#cccccc", linewidth=0.7, zorder=1)
    for place, method in enumerate(METHODS):
        axes.scatter(np.full(len(errors), place), errors[:, place], s=14, color=COLOURS[method])
        axes.plot(place + np.array([-0.2, 0.2]), 2 * [errors[:, place].mean()], color="black")
    axes.set(
        xticks=range(len(METHODS)),
        xticklabels=["unweighted", "true weights\n(unknown)", "tree", "automatic"],
        ylabel="true test error",
        title=f"{DRAWS} biased samples (lines connect the same sample)",
        ylim=(0, None),
    )
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw_demo()
    draw_guarantees(IMAGES / "guarantees.png")
    draw_flips(IMAGES / "flips.png")
    draw_guide(IMAGES)
    draw_methods(IMAGES / "methods")
