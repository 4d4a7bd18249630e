"""The figures of the guide's pages on weights, overlap and estimates."""

from __future__ import annotations

from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from unskew import CalibrationWeights, HistogramWeights, Population, estimate

SAMPLE, WEIGHTED, POPULATION = "#c1440e", "#1b6ca8", "#d9d9d9"
SIZE = (6, 2.8)


def draw_guide(folder: Path) -> None:
    """Draw all of them."""
    drawings = {"weights": _weights, "overlap": _overlap, "intervals": _intervals, "start": _start}
    for name, draw in drawings.items():
        figure, axes = plt.subplots(figsize=SIZE, layout="constrained")
        draw(axes)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(folder / f"{name}.png", dpi=160)
        plt.close(figure)


def _weights(axes: Axes) -> None:
    """Draw counts of population and sample in bands of age, and the weight in each."""
    random = np.random.default_rng(0)
    people = random.gamma(9, 5, 4000).clip(18, 89)
    answers = people[random.uniform(size=4000) < 0.25 / (1 + np.exp(-(people - 50) / 8))]
    borders = [30.0, 40.0, 50.0, 60.0]
    weighter = HistogramWeights(buckets={0: borders})
    weighter.fit(answers[:, None], population=people[:, None])
    edges = [18, *borders, 90]
    shares = [np.histogram(rows, edges)[0] / len(rows) for rows in (people, answers)]
    place = np.arange(len(edges) - 1)
    axes.bar(place - 0.2, shares[0], 0.38, color=POPULATION, label="population")
    axes.bar(place + 0.2, shares[1], 0.38, color=SAMPLE, label="sample")
    for here, low, high in zip(place, edges[:-1], edges[1:], strict=True):
        inside = (answers > low) & (answers <= high)
        axes.text(
            here,
            max(shares[0][here], shares[1][here]) + 0.01,
            f"weight {weighter.weights_[inside].mean():.2f}",
            ha="center",
            fontsize="small",
            color=WEIGHTED,
        )
    labels = [f"{low:.0f} to {high:.0f}" for low, high in pairwise(edges)]
    axes.set(xticks=place, xticklabels=labels, xlabel="age", ylabel="share of the rows")
    axes.legend(frameon=False, fontsize="small")


def _start(axes: Axes) -> None:
    """Draw the shares of companies in a register, with and without weights, and in all."""
    folder, codes = files("unskew") / "examples" / "vacancies", {"region": str}
    with as_file(folder) as path:
        register, survey = (
            pd.read_csv(path / f"{name}.csv.gz", dtype=codes) for name in ("register", "survey")
        )
    columns = ["private", "size", "nace", "region"]
    population = Population(survey, columns=columns, weight="weight")
    weights = CalibrationWeights().fit(register[columns], population=population).weights_
    shown = {"small": ("size", "S"), "medium": ("size", "M"), "large": ("size", "L")}
    sectors = {"industry": "C", "building": "F", "trade": "G", "schools": "P", "health": "Q"}
    shown |= {name: ("nace", code) for name, code in sectors.items()}
    place = np.arange(len(shown)) + np.array(
        [0.6 * (column == "nace") for column, _ in shown.values()]
    )
    for shift, rows, weight, colour, label in (
        (-0.27, survey, survey["weight"], POPULATION, "population"),
        (0.0, register, None, SAMPLE, "register"),
        (0.27, register, weights, WEIGHTED, "register, weighted"),
    ):
        heights = [
            np.average(rows[column] == value, weights=weight) for column, value in shown.values()
        ]
        axes.bar(place + shift, heights, 0.25, color=colour, label=label)
    axes.set(xticks=place, xticklabels=shown, ylabel="share of companies")
    axes.tick_params(axis="x", labelsize="small")
    axes.legend(frameon=False, fontsize="small")


def _overlap(axes: Axes) -> None:
    """Draw a population of which a part has no sample rows."""
    random = np.random.default_rng(0)
    people = random.normal(50, 15, (3000, 2))
    chance = np.where(people[:, 0] > 68, 0, 0.08 + 0.002 * people[:, 1].clip(0))
    sample = people[random.uniform(size=3000) < chance]
    axes.scatter(*people.T, s=3, color="#bbbbbb", label="population")
    axes.scatter(*sample.T, s=8, color=WEIGHTED, label="sample")
    axes.axvspan(68, 100, color=SAMPLE, alpha=0.15)
    share = np.mean(people[:, 0] > 68)
    axes.text(69, 3, f"income > 68: {share:.0%} of\nthe population, no\nsample row", color=SAMPLE)
    axes.set(xlabel="income", ylabel="age", xlim=(0, 100), ylim=(0, 100))
    axes.legend(frameon=False, fontsize="small", loc="upper left")


def _intervals(axes: Axes) -> None:
    """Draw intervals of many simulated surveys, and what the surveys say as they are."""
    random = np.random.default_rng(0)
    people = random.normal(45, 15, (20_000, 1))
    buys = random.uniform(size=20_000) < 1 / (1 + np.exp((people[:, 0] - 40) / 10))
    for place in range(40):
        answers = random.uniform(size=20_000) < 0.04 / (1 + np.exp((people[:, 0] - 40) / 15))
        weighter = CalibrationWeights(features="means", overlap="ignore")
        found = estimate(people[answers], buys[answers], population=people, weighter=weighter)
        held = found.interval[0] <= buys.mean() <= found.interval[1]
        axes.plot([place, place], found.interval, color=WEIGHTED if held else "black", linewidth=2)
        axes.plot(place, found.unweighted, "o", markersize=4, color=SAMPLE)
    axes.axhline(buys.mean(), color="black", linestyle="--", linewidth=0.8)
    axes.set(
        xticks=[], xlabel="40 surveys (disc: as it is; line: interval)", ylabel="share of buyers"
    )
