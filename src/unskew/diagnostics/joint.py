"""How columns differ together where each by itself agrees with the population."""

from __future__ import annotations

import numpy as np

from unskew.diagnostics.sides import Sides
from unskew.numerics.typing import FloatArray, IntArray

MAX_COLUMNS = 100
NOTABLE = 0.05


def different_together(sides: Sides, weights: FloatArray) -> str:
    """Return which two numbers' correlation, or which one's spread, is farthest off, in words.

    Compares the means of products of the standardised columns; categories are left out.
    """
    numbers = np.flatnonzero(~sides.is_category)[:MAX_COLUMNS]
    combined = "the columns agree one by one, so it is their combinations that differ"
    if not len(numbers):
        return combined
    sample = np.zeros(len(sides.values))
    sample[: sides.n_sample] = weights / weights.sum()
    population = sides.population / sides.population.sum()
    everywhere: IntArray = np.arange(len(sides.values))
    points = sides.points(everywhere)[:, : len(numbers)]
    first, second = (_products(points, mass) for mass in (sample, population))
    place = int(np.argmax(np.abs(first - second)))
    row, column = divmod(place, len(numbers))
    here, there = first[row, column], second[row, column]
    if abs(here - there) < NOTABLE:
        return combined
    names = sides.codes.names
    name, other = names[numbers[row]], names[numbers[column]]
    if row == column:
        return f"most of all in the spread of {name}: {here / there:.2f} times the population's"
    return (
        f"most of all in {name} and {other} together: correlation {here:.2f}, in the population "
        f"{there:.2f}"
    ).replace("-", "−")


def _products(points: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the covariances, over the square roots of the variances of all rows."""
    centred = points - mass @ points
    return (centred * mass[:, None]).T @ centred
