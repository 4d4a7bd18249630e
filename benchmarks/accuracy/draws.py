"""Drawing biased samples from a table: six mechanisms, known probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.accuracy.tables import Table
from unskew.paper.protocol import random_stream
from unskew.paper.selection import (
    logistic_selection,
    quadratic_selection,
    threshold_selection,
)

MECHANISMS = ["logistic 2", "logistic 4", "quadratic", "threshold", "category", "none"]
POPULATION_ROWS = 1600
POPULATION_SHARE = 0.6
TEST_ROWS = 2000


@dataclass(frozen=True)
class Draw:
    """A population, a sample from it and rows to test on; numbers are scaled by the population.

    Attributes
    ----------
    chances : ndarray
        The probabilities of selection of the sample's rows.
    matrix, sample_matrix : ndarray
        Population and sample as numbers: categories are columns of zeros and ones.
    """

    sample: pd.DataFrame
    labels: np.ndarray
    chances: np.ndarray
    population: pd.DataFrame
    population_labels: np.ndarray
    test: pd.DataFrame
    test_labels: np.ndarray
    matrix: np.ndarray
    sample_matrix: np.ndarray


def make_draw(table: Table, mechanism: str, number: int, seed: int) -> Draw:
    """Split a table into population and test rows, and select a sample from the population."""
    random = random_stream(seed, table.name, mechanism, number)
    order = random.permutation(len(table.y))
    n = min(POPULATION_ROWS, int(POPULATION_SHARE * len(order)))
    inside, outside = order[:n], order[n : n + TEST_ROWS]
    X, y = _scaled(table.X, inside), _scaled_labels(table, inside)
    population = X.iloc[inside].reset_index(drop=True)
    matrix = as_numbers(population, table.texts)
    while True:
        chances = _chances(mechanism, population, matrix, table.texts, random)
        drawn = random.uniform(size=n) < chances
        if _usable(y[inside][drawn], table):
            break
    return Draw(
        population[drawn].reset_index(drop=True),
        y[inside][drawn],
        chances[drawn],
        population,
        y[inside],
        X.iloc[outside].reset_index(drop=True),
        y[outside],
        matrix,
        matrix[drawn],
    )


def as_numbers(frame: pd.DataFrame, texts: list[str]) -> np.ndarray:
    """Return numbers as they are, and a column of zeros and ones for each category."""
    return pd.get_dummies(frame, columns=texts).to_numpy(float) if texts else frame.to_numpy()


def _chances(
    mechanism: str,
    population: pd.DataFrame,
    matrix: np.ndarray,
    texts: list[str],
    random: np.random.RandomState,
) -> np.ndarray:
    if mechanism.startswith("logistic"):
        slope = float(mechanism.split()[1])
        return logistic_selection(matrix, slope=slope, random_state=random).probabilities
    if mechanism == "quadratic":
        return quadratic_selection(matrix, random_state=random).probabilities
    if mechanism == "threshold":
        return threshold_selection(matrix, random_state=random).probabilities
    if mechanism == "none":
        return np.full(len(matrix), 0.5)
    column = population[random.choice(np.array(texts or list(population)))]
    if not texts:  # fifths of a number
        column = column.rank(method="average", pct=True).mul(5).clip(upper=4.999).astype(int)
    levels = pd.factorize(column, sort=True)[0]
    return random.uniform(0.1, 0.9, size=levels.max() + 1)[levels]


def _scaled(X: pd.DataFrame, inside: np.ndarray) -> pd.DataFrame:
    numbers = [name for name in X if pd.api.types.is_numeric_dtype(X[name])]
    rows = X.iloc[inside][numbers]
    spread = rows.std(ddof=0)
    return X.assign(**((X[numbers] - rows.mean()) / spread.where(spread > 0, 1.0)))


def _scaled_labels(table: Table, inside: np.ndarray) -> np.ndarray:
    if table.is_class:
        return table.y
    return (table.y - table.y[inside].mean()) / table.y[inside].std()


def _usable(labels: np.ndarray, table: Table) -> bool:
    """Whether a learner can be trained: enough rows, and each class often enough for folds."""
    if len(labels) < 20:
        return False
    return not table.is_class or np.bincount(labels, minlength=2).min() >= 5
