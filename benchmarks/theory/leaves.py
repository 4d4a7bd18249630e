"""Bound and measured error of the weights against the size of a leaf."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from benchmarks.theory.data import Draw, draws
from unskew import Reweighted, TreeWeights


class Leaf(NamedTuple):
    """What became of one leaf size."""

    size: int
    estimation: float
    smoothing: float
    error: float
    """The l1 distance of the weights from the perfect ones, both scaled to sum one."""
    risk: float
    """The squared error of a model over the whole population, as a share of the variance."""
    chosen: bool


def measure(draw: Draw) -> Iterator[Leaf]:
    """Yield what becomes of each leaf size that ``min_samples_leaf="bound"`` tries."""
    X, y = draw.rows[draw.selected], draw.labels[draw.selected]
    perfect = 1 / draw.probabilities[draw.selected]
    choice = TreeWeights(min_samples_leaf="bound").fit(X, y, population=draw.rows)
    for size, (estimation, smoothing) in choice.leaf_sizes_.items():
        learner = KernelRidge(alpha=1.0, kernel="rbf", gamma=1 / X.shape[1])
        model = Reweighted(learner, TreeWeights(min_samples_leaf=size))
        weights = model.fit(X, y, population=draw.rows).weights_
        error = np.abs(weights / weights.sum() - perfect / perfect.sum()).sum()
        risk = np.mean((model.predict(draw.rows) - draw.labels) ** 2) / draw.labels.var()
        chosen = size == choice.min_samples_leaf_
        yield Leaf(size, estimation, smoothing, float(error), float(risk), chosen)


def print_leaves(datasets: Path, number: int) -> None:
    """Print a line for each data set, selection and leaf size."""
    print(f"Means of {number} draws; bound: what counts leave open + what is smoothed over.")
    print(
        "| set | selection | leaf | counts leave open | smoothed over | error of the weights "
        "| risk | chosen |"
    )
    print("|---|---|---|---|---|---|---|---|")
    over_best = []
    for path in sorted(datasets.glob("*.parquet")):
        for by_cell in (False, True):
            found = [list(measure(draw)) for draw in draws(path, number, by_cell=by_cell)]
            over_best += [_over_best(leaves) for leaves in found]
            rule = "by cell" if by_cell else "the paper's"
            for place in range(min(map(len, found))):
                leaves = np.array([leaf[place] for leaf in found], dtype=np.float64)
                size, estimation, smoothing, error, risk, chosen = leaves.mean(axis=0)
                print(
                    f"| {path.stem} | {rule} | {size:.0f} | {estimation:.2f} | {smoothing:.2f} "
                    f"| {error:.3f} | {risk:.3f} | {chosen:.0%} |",
                    flush=True,
                )
    chosen, four = np.array(over_best).T
    print(
        "\nError of the weights over that of the best size tried, mean (largest): chosen size "
        f"{chosen.mean():.2f} ({chosen.max():.2f}), 4 rows {four.mean():.2f} ({four.max():.2f})."
    )


def _over_best(leaves: list[Leaf]) -> tuple[float, float]:
    """Return the errors of the chosen and of the finest leaf over the least of all."""
    best = min(leaf.error for leaf in leaves)
    chosen = next(leaf.error for leaf in leaves if leaf.chosen)
    return chosen / best, leaves[0].error / best
