"""Coverage in the simulation of Tibshirani, Foygel Barber, Candès and Ramdas (2019) on airfoils.

1,503 rows of five columns, the first and the last in logarithms. In each draw one half is the
sample; from the other, rows are drawn with a probability proportional to ``exp(x5 - x1)``, in
several rounds, until they are more than a quarter of it: the population. A linear model is trained
on half of the sample and calibrated on the other half, without weights, with the true weights and
with those of a logistic regression.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from tests.references import FOLDER, reference

from unskew import ClassifierWeights, ConformalRegressor, KnownProbability, Unweighted

PUBLISHED = {
    "no shift": {"coverage": 0.9021, "length": 16.09},
    "unweighted": {"coverage": 0.8220, "length": 16.08},
    "oracle": {"coverage": 0.9086, "length": 20.94},
    "logistic": {"coverage": 0.9102, "length": 20.93},
}
"""Of the authors' stored 5,000 draws: mean coverage, and the median of median lengths."""


def load(folder: Path) -> tuple[Any, Any]:
    """Return the rows and their labels."""
    table = pd.read_parquet(folder / "airfoil.parquet")
    X = table.drop(columns="sound").to_numpy(dtype=float, copy=True)
    X[:, [0, 4]] = np.log(X[:, [0, 4]])
    return X, table["sound"].to_numpy(dtype=float, copy=True)


def tilt(X: Any) -> Any:
    """Return the density ratio, up to its scale."""
    return np.exp(X[:, 4] - X[:, 0])


def probability(X: Any) -> Any:
    """Return what is proportional to the inverse of the density ratio."""
    return np.exp(-18.0) / tilt(X)


def shifted(X: Any, random: np.random.Generator) -> Any:
    """Return places of rows that are drawn in proportion to the tilt."""
    chance = tilt(X) / tilt(X).max()
    places: list[int] = []
    while len(places) <= len(X) / 4:
        places.extend(np.flatnonzero(random.uniform(size=len(X)) <= chance))
    return np.array(places)


def one_draw(X: Any, y: Any, seed: int) -> dict[str, tuple[float, float, float]]:
    """Return coverage, median length and the share of infinite intervals, for each kind."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(y))
    mine, rest = order[: round(len(y) / 2)], order[round(len(y) / 2) :]
    tested = rest[shifted(X[rest], random)]
    logistic = ClassifierWeights(
        "logistic",
        rate="odds",
        hinges=False,
        penalty=1e-6,
        cv=None,
        calibration=None,
        overlap="ignore",
    )

    def measure(weighter: Any, rows: Any) -> tuple[float, float, float]:
        model = ConformalRegressor(LinearRegression(), weighter, random_state=seed)
        model.fit(X[mine], y[mine], population=X[rows])
        low, high = model.predict_interval(X[rows]).T
        inside = (low <= y[rows]) & (y[rows] <= high)
        return float(inside.mean()), float(np.median(high - low)), model.infinite_share_

    return {
        "no shift": measure(Unweighted(), rest),
        "unweighted": measure(Unweighted(), tested),
        "oracle": measure(KnownProbability(probability), tested),
        "logistic": measure(logistic, tested),
    }


def test_coverage_and_lengths_are_the_published_ones():
    reference("airfoil")  # skips without it
    X, y = load(FOLDER)
    draws = [one_draw(X, y, seed) for seed in range(5000, 5040)]
    for kind, published in PUBLISHED.items():
        coverage, length, _ = np.array([draw[kind] for draw in draws]).T
        error = coverage.std() / len(draws) ** 0.5
        assert coverage.mean() == pytest.approx(published["coverage"], abs=3.5 * error)
        assert np.median(length) == pytest.approx(published["length"], rel=0.1)
