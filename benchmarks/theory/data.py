"""The nine data sets, with a partition fixed beforehand and a selection that is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from unskew.paper.selection import logistic_selection

ROWS = 4000
CELL = 300


class Draw(NamedTuple):
    """A population, its labels, and which rows were selected with what probability."""

    rows: np.ndarray
    labels: np.ndarray
    selected: np.ndarray
    probabilities: np.ndarray
    partition: MedianCells


class MedianCells(BaseEstimator):
    """Cells between medians of the columns in turn: from the population's rows alone.

    It has a clusterer's form, so that ``ClusterWeights`` can count it; fitting changes nothing.
    """

    def __init__(self, rows: Any, depth: int) -> None:
        self.rows = rows
        self.depth = depth

    def fit(self, X: Any, y: Any = None) -> MedianCells:  # noqa: ARG002
        """Return self: the cells are given."""
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return each row's cell."""
        return self._cells(np.asarray(self.rows), np.asarray(X), self.depth)

    def _cells(self, known: np.ndarray, X: np.ndarray, depth: int) -> np.ndarray:
        cells = np.zeros(len(X), dtype=np.int64)
        if not depth:
            return cells
        spreads = known.std(axis=0) * (np.abs(known - np.median(known, axis=0)) > 0).mean(axis=0)
        column = int(np.argmax(spreads))
        border = np.median(known[:, column])
        right, right_known = X[:, column] > border, known[:, column] > border
        half = 2 ** (depth - 1)
        cells[~right] = self._cells(known[~right_known], X[~right], depth - 1)
        cells[right] = half + self._cells(known[right_known], X[right], depth - 1)
        return cells


def read(path: Path, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised features and labels of up to ``ROWS`` random rows."""
    frame = pd.read_parquet(path).sample(frac=1, random_state=seed)[:ROWS]
    features = pd.get_dummies(frame.iloc[:, :-1]).to_numpy(dtype=np.float64)
    labels = frame.iloc[:, -1].to_numpy(dtype=np.float64)
    spread = features.std(axis=0)
    features = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return features, (labels - labels.mean()) / labels.std()


def draws(path: Path, number: int, *, by_cell: bool) -> Iterator[Draw]:
    """Yield draws of a biased sample.

    The probability of selection follows the paper's rule in the rows themselves, or, for bounds
    that assume it to be the same throughout a cell, in each cell's mean row, within [0.2, 0.9].
    """
    for seed in range(number):
        rows, labels = read(path, seed)
        partition = MedianCells(rows, max(1, int(np.log2(len(rows) / CELL))))
        if by_cell:
            cells = partition.predict(rows)
            _, place = np.unique(cells, return_inverse=True)
            means = np.array([rows[place == cell].mean(axis=0) for cell in range(place.max() + 1)])
            _, of_cells = logistic_selection(means, slope=1.5, random_state=seed)
            probabilities = of_cells.clip(0.2, 0.9)[place]
            selected = np.random.RandomState([seed, 1]).uniform(size=len(rows)) < probabilities
        else:
            selected, probabilities = logistic_selection(rows, random_state=seed)
        yield Draw(rows, labels, selected, probabilities, partition)
