"""Columns from which the labels follow almost exactly: consequences of y, or parts of it."""

from __future__ import annotations

import numpy as np

from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.column_names import listing
from unskew.population.sample import Sample

LEVELS = (0.99, 0.9999, 0.9999)
"""The share of the variance of y from which on one, two or three columns determine it: a good model
of several is no sign of a mistake, an identity is."""
MOST_ROWS = 2000


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
    y = y[:, 0] if y.shape[1] <= 2 else y.argmax(axis=1).astype(np.float64)
    columns = [_as_number(sample, column, some, y) for column in range(len(sample.codes.names))]
    chosen, left = list[int](), y - y.mean()
    if len(some) < 10 * len(LEVELS) or not left.any():
        return ""
    for level in LEVELS:
        chosen.append(int(np.argmax([abs(one @ left) for one in columns])))
        design = np.column_stack([np.ones(len(y)), *(columns[place] for place in chosen)])
        left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        share = 1 - float(left @ left) / float(np.square(y - y.mean()).sum())
        if share >= level:
            names = [sample.codes.names[place] for place in sorted(set(chosen))]
            return (
                f"The label follows almost exactly from {listing(names)} (R² {share:.3f}). What "
                "was measured with the label or after it should be left out: it is a consequence "
                "of the label, and no cause of selection."
            )
    return ""


def _as_number(sample: Sample, column: int, rows: IntArray, y: FloatArray) -> FloatArray:
    """Return a column with mean 0 and variance 1; a category is the mean of y where it recurs."""
    values = sample.values[rows, column]
    if sample.codes.n_categories(column):
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        means = np.bincount(place, y) / counts
        values = np.where(counts > 1, means, y.mean())[place]
    values = np.nan_to_num(values / (np.nanmax(np.abs(values), initial=0.0) or 1.0))
    centred = values - values.mean()
    return np.asarray(centred / (centred.std() or 1.0))
