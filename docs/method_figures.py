"""The figures of the methods' pages: what the weights look like, and what they do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    KnownProbability,
    LabelShiftWeights,
    Tempered,
    TreeWeights,
    Unweighted,
)

SAMPLE, WEIGHTED, POPULATION = "#c1440e", "#1b6ca8", "#d9d9d9"
SIZE = (7, 2.7)
METHODS: dict[str, Callable[[Any], Any]] = {
    "automatic": lambda _: AutoWeights(),
    "calibration": lambda _: CalibrationWeights(),
    "classifier": lambda _: ClassifierWeights(),
    "cluster": lambda _: ClusterWeights(),
    "density-ratio": lambda _: DensityRatioWeights(),
    "frequency": lambda _: FrequencyWeights(columns=["decade"]),
    "histogram": lambda _: HistogramWeights(buckets={"age": [30, 45, 60], "rooms": 3}),
    "kernel-mean-matching": lambda _: KernelMeanMatching(),
    "known-probability": KnownProbability,
    "tempered": lambda _: Tempered(TreeWeights(), power=0.5, max_weight=5),
    "tree": lambda _: TreeWeights(min_samples_leaf="bound"),
    "unweighted": lambda _: Unweighted(),
}


def draw_methods(folder: Path) -> None:
    """Draw a figure for each weighter, all on the data that the pages use."""
    random = np.random.default_rng(0)
    everyone = pd.DataFrame({"age": random.gamma(9, 5, 3000), "rooms": random.poisson(3, 3000)})
    chance = 1 / (1 + np.exp(-(everyone["age"] - 45) / 8))
    answered = random.uniform(size=3000) < chance
    spending = 100 + 3 * everyone["age"] + 20 * everyone["rooms"]
    folder.mkdir(exist_ok=True)
    for name, make in METHODS.items():
        people = everyone if name != "frequency" else everyone.assign(decade=everyone["age"] // 10)
        columns = list(people) if name == "frequency" else ["age", "rooms"]
        weighter = make(chance[answered])
        weighter.set_params(overlap="ignore")
        weighter.fit(people[columns][answered], spending[answered], population=people[columns])
        figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, layout="constrained")
        _draw_weights(left, everyone["age"][answered], weighter.weights_, chance[answered])
        _draw_ages(right, everyone["age"], answered, weighter.weights_)
        _save(figure, folder / f"{name}.png")
    _draw_label_shift(folder / "label-shift.png")


def _save(figure: Any, path: Path) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_weights(axes: Any, age: Any, weights: Any, chance: Any) -> None:
    """Draw the weight of each row against its age, and the true one."""
    order = np.argsort(age)
    truth = 1 / chance / (1 / chance).mean()
    axes.plot(age, weights, ".", color=WEIGHTED, markersize=3, label="weights")
    axes.plot(age.iloc[order], truth.iloc[order], color="black", linewidth=1, label="true weights")
    axes.set(xlabel="age", ylabel="weight", yscale="log", ylim=(0.05, 30))
    axes.legend(frameon=False, fontsize="small")


def _draw_ages(axes: Any, age: Any, answered: Any, weights: Any) -> None:
    """Draw the ages of the population, of the sample and of the weighted sample."""
    bins = np.linspace(10, 110, 41)
    axes.hist(age, bins, density=True, color=POPULATION, label="population")
    for weight, colour, label in ((None, SAMPLE, "sample"), (weights, WEIGHTED, "weighted sample")):
        shown = {"histtype": "step", "linewidth": 1.8, "color": colour, "label": label}
        axes.hist(age[answered], bins, weights=weight, density=True, **shown)
    axes.set(xlabel="age", yticks=[])
    axes.legend(frameon=False, fontsize="small")


def _draw_label_shift(path: Path) -> None:
    """Draw the shares of two classes: in the sample, as estimated, and the true ones."""
    random = np.random.default_rng(0)
    ill, hidden = random.uniform(size=2000) < 0.5, random.uniform(size=5000) < 0.1
    rows = [random.normal(size=(len(one), 2)) + 2 * one[:, None] for one in (ill, hidden)]
    weighter = LabelShiftWeights().fit(rows[0], ill, population=rows[1])
    figure, axes = plt.subplots(figsize=(5, 2.7), layout="constrained")
    shares = {
        "population (hidden)": (POPULATION, [1 - hidden.mean(), hidden.mean()]),
        "sample": (SAMPLE, [1 - ill.mean(), ill.mean()]),
        "sample, weighted": (WEIGHTED, weighter.population_shares_),
    }
    for place, (label, (colour, heights)) in enumerate(shares.items()):
        axes.bar(np.arange(2) + 0.27 * (place - 1), heights, 0.25, color=colour, label=label)
    axes.set(xticks=[0, 1], xticklabels=["healthy", "ill"], ylabel="share of the rows")
    axes.legend(frameon=False, fontsize="small")
    _save(figure, path)
