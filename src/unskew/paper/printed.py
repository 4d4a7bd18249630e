"""Table 1 of the paper as printed, and how far results are from it.

Cortes, Mohri, Riley and Rostamizadeh, *Sample Selection Bias Correction Theory* (ALT 2008), section
6, Table 1: "Normalized mean-squared error (NMSE) for various regression data sets using unweighted,
ideal, clustered and kernel-mean-matched training sample reweightings."

Results are compared with it cell by cell, a cell being a set and a kind of weights: by the rank
correlation over all cells and by the median relative deviation of each column. Several seeds say
how much of a deviation is chance: each seed draws its own directions of selection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

COLUMNS = ("Unweighted", "Ideal", "Clustered", "KMM")


class Printed(NamedTuple):
    """A printed mean and standard deviation of the NMSE."""

    mean: float
    sd: float


class PrintedRow(NamedTuple):
    """A row of the table: the sizes, and the error of each kind of weights."""

    n: int
    m: int
    n_test: int
    nmse: dict[str, Printed]


def _row(n: int, m: int, n_test: int, *nmse: tuple[float, float]) -> PrintedRow:
    printed = (Printed(mean, sd) for mean, sd in nmse)
    return PrintedRow(n, m, n_test, dict(zip(COLUMNS, printed, strict=True)))


TABLE_1 = {
    "abalone": _row(
        2000, 724, 2177, (0.654, 0.019), (0.551, 0.032), (0.623, 0.034), (0.709, 0.122)
    ),
    "bank32nh": _row(
        4500, 2384, 3693, (0.903, 0.022), (0.610, 0.044), (0.635, 0.046), (0.691, 0.055)
    ),
    "bank8FM": _row(
        4499, 1998, 3693, (0.085, 0.003), (0.058, 0.001), (0.068, 0.002), (0.079, 0.013)
    ),
    "cal-housing": _row(
        16512, 9511, 4128, (0.395, 0.010), (0.360, 0.009), (0.375, 0.010), (0.595, 0.054)
    ),
    "cpu-act": _row(
        4000, 2400, 4192, (0.673, 0.014), (0.523, 0.080), (0.568, 0.018), (0.518, 0.237)
    ),
    "cpu-small": _row(
        4000, 2368, 4192, (0.682, 0.053), (0.477, 0.097), (0.408, 0.071), (0.531, 0.280)
    ),
    "housing": _row(300, 116, 206, (0.509, 0.049), (0.390, 0.053), (0.482, 0.042), (0.469, 0.148)),
    "kin8nm": _row(
        5000, 2510, 3192, (0.594, 0.008), (0.523, 0.045), (0.574, 0.018), (0.704, 0.068)
    ),
    "puma8NH": _row(
        4499, 2246, 3693, (0.685, 0.013), (0.674, 0.019), (0.641, 0.012), (0.903, 0.059)
    ),
}


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
