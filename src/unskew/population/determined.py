"""Columns from which the labels follow almost exactly: consequences of y, or parts of it."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from unskew.numerics.typing import FloatArray
from unskew.population.column_names import listing
from unskew.population.sample import Sample

NEARLY, EXACTLY = 0.99, 0.9999
"""The share of the variance of y from which on one column, or several together, determine it."""
MOST_COLUMNS = 3
"""A fit by more columns than these is a good model, and no sign of a mistake."""
MOST_ROWS, MOST_LEVELS = 2000, 50


def determined_by(sample: Sample, outcome: FloatArray) -> str:
    """Return a hint on columns that nearly determine the outcome; empty if there are none.

    Parameters
    ----------
    sample : Sample
    outcome : ndarray of shape (m,) or (m, k)
        Numbers, or a column of zeros and ones for each class.
    """
    some = np.arange(0, len(sample), max(1, len(sample) // MOST_ROWS))
    y = outcome.reshape(len(sample), -1)[some].astype(np.float64)
    blocks: dict[int, FloatArray] = {}
    for column, values in enumerate(sample.values[some].T):
        levels = np.arange(sample.codes.n_categories(column))
        present = values[~np.isnan(values)]
        if len(present) and len(levels) <= MOST_LEVELS:
            largest = float(np.abs(present).max()) or 1.0  # so that no square overflows
            numbers = np.nan_to_num(values / largest - (present / largest).mean())
            numbers /= numbers.std() or 1.0
            of_levels = (values[:, None] == levels).astype(np.float64)
            blocks[column] = of_levels if len(levels) else numbers[:, None]
    if len(some) < 5 * sum(block.shape[1] for block in blocks.values()):
        return ""
    ranks: dict[int, FloatArray] = {
        column: rankdata(block, axis=0) for column, block in blocks.items()
    }
    for given, target in ((blocks, y), (ranks, rankdata(y, axis=0))):  # y may be a function of one
        columns = _fewest(given, target)
        if 0 < len(columns) <= MOST_COLUMNS:
            names, share = (
                [sample.codes.names[c] for c in columns],
                _explained(given, columns, target),
            )
            them = "it was" if len(names) == 1 else "one of them was"
            return (
                f"The label follows almost exactly from {listing(names)} (R² {share:.3f}). If "
                f"{them} measured with the label or after it, leave it out: it is a consequence of "
                "the label, and no cause of selection."
            )
    return ""


def _fewest(blocks: dict[int, FloatArray], y: FloatArray) -> list[int]:
    """Return columns that together determine y, none of which can be left out; [] if none do."""
    for column in blocks:
        if _explained(blocks, [column], y) >= NEARLY:
            return [column]
    columns = list(blocks)
    if not _explained(blocks, columns, y) >= EXACTLY:
        return []
    for column in blocks:
        rest = [one for one in columns if one != column]
        if _explained(blocks, rest, y) >= EXACTLY:
            columns = rest
    return columns


def _explained(blocks: dict[int, FloatArray], columns: list[int], y: FloatArray) -> float:
    """Return the share of the variance that a linear model explains; NaN where there is none."""
    design = np.column_stack([np.ones(len(y)), *(blocks[column] for column in columns)])
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(1 - np.square(left).sum() / np.square(y - y.mean(axis=0)).sum())
