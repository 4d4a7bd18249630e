"""How far results are from the printed table, and from each other under other seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from unskew.experiments.paper import COLUMNS

Row = dict[str, Any]
Cells = Mapping[tuple[str, str], float]
"""An error for each set and method."""


def agreement(rows: Sequence[Row], scaling: str) -> Row:
    """Return how far the results under a scaling are from the printed table.

    Returns
    -------
    dict
        ``cells``, how many printed figures there are to compare with; ``spearman``, the rank
        correlation with them, ``without_kmm`` the same without that column; ``clustered_better``,
        on how many of ``sets`` sets Clustered has a smaller mean error than Unweighted;
        ``deviations``, the median relative deviation of each column. NaN where there is nothing to
        compare.
    """
    return compare(ours(rows, scaling), printed(rows, scaling))


def compare(found: Cells, published: Cells) -> Row:
    """Return the same for errors by set and method."""
    sets = {name for name, _ in published}
    return {
        "cells": len(published),
        "sets": len(sets),
        "spearman": rank_correlation(found, published),
        "without_kmm": rank_correlation(found, published, without="KMM"),
        "clustered_better": sum(found[s, "Clustered"] < found[s, "Unweighted"] for s in sets),
        "deviations": {method: _deviation(found, published, method) for method in COLUMNS},
    }


def ours(rows: Sequence[Row], scaling: str) -> dict[tuple[str, str], float]:
    """Return our means where the paper has a figure."""
    return _cells(rows, scaling, "nmse_mean")


def printed(rows: Sequence[Row], scaling: str) -> dict[tuple[str, str], float]:
    """Return the paper's means."""
    return _cells(rows, scaling, "paper_nmse_mean")


def _cells(rows: Sequence[Row], scaling: str, key: str) -> dict[tuple[str, str], float]:
    return {
        (row["set"], row["method"]): row[key]
        for row in rows
        if row["scaling"] == scaling and row["paper_nmse_mean"] is not None
    }


def rank_correlation(first: Cells, second: Cells, *, without: str | None = None) -> float:
    """Return Spearman's correlation over the cells of the second, NaN for fewer than three.

    Examples
    --------
    >>> cells = {("a", "Ideal"): 0.1, ("b", "Ideal"): 0.3, ("b", "KMM"): 0.2}
    >>> print(rank_correlation(cells, cells))
    1.0
    """
    keys = [key for key in second if key[1] != without]
    if len(keys) < 3:
        return float("nan")
    pairs = [first[key] for key in keys], [second[key] for key in keys]
    return float(stats.spearmanr(*pairs)[0])


def _deviation(found: Cells, published: Cells, method: str) -> float:
    off = [abs(found[key] / published[key] - 1) for key in published if key[1] == method]
    return float(np.median(off)) if off else float("nan")


def over_seeds(tables: Sequence[Cells]) -> tuple[dict[tuple[str, str], float], Cells]:
    """Return the mean of tables of several seeds, and the standard deviation between seeds."""
    values = {key: np.array([table[key] for table in tables]) for key in tables[0]}
    means = {key: float(each.mean()) for key, each in values.items()}
    return means, {key: float(each.std(ddof=1)) for key, each in values.items()}


def between_seeds(tables: Sequence[Cells], *, without: str | None = None) -> list[float]:
    """Return the rank correlation of each pair of seeds."""
    return [rank_correlation(a, b, without=without) for a, b in combinations(tables, 2)]
