"""Exact totals of each column, from the pass over the population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray
from unskew.population.summaries import Summary
from unskew.rows.encode import ColumnCodes
from unskew.rows.tables import RowBlock


@dataclass(frozen=True)
class NumberTotals:
    """Mass, mean and standard deviation of a column of numbers or times.

    Attributes
    ----------
    missing, mass : float
        The total weight of the rows in which the value is missing, and of the others.
    mean, deviation : float
        NaN if every value is missing; the divisor of the variance is ``mass``.
    """

    missing: float
    mass: float
    mean: float
    deviation: float


@dataclass(frozen=True)
class CategoryTotals:
    """The mass of each of the sample's categories, of others, and of missing values."""

    missing: float
    unseen: float
    counts: FloatArray


class ColumnTotals(Summary):
    """Totals of every column in one pass.

    Attributes
    ----------
    rows : int
    sums : ndarray
        The sums of each column, one column after the other. Of categories, the mass of missing
        values, of unseen categories, and of each of the sample's. Of numbers, the mass of missing
        values and of the others, and the sums of distances and squared distances from the sample's
        mean, in units of its standard deviation: columns far from zero keep their digits, and large
        ones their squares.
    """

    shared = frozenset({"codes", "_scaling", "_borders"})
    added = ("rows", "sums")

    def __init__(self, codes: ColumnCodes, sample: FloatArray) -> None:
        self.codes = codes
        self._scaling = [
            None if codes.counts_categories(position) else centre_and_scale(values)
            for position, values in enumerate(sample.T)
        ]
        widths = [
            2 + codes.n_categories(position) if scaling is None else 4
            for position, scaling in enumerate(self._scaling)
        ]
        self._borders = np.cumsum(widths)[:-1]
        self.rows = 0
        self.sums = np.zeros(sum(widths))

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block."""
        self.rows += len(rows)
        mass = float(rows.weight.sum())
        views = np.split(self.sums, self._borders)
        for position, (sums, scaling) in enumerate(zip(views, self._scaling, strict=True)):
            column = rows.batch.column(position)
            values = self.codes.encode_column(column, position, side="population")
            if scaling is None:
                places = np.where(np.isnan(values), -2.0, values).astype(np.int64) + 2
                sums += np.bincount(places, weights=rows.weight, minlength=len(sums))
                continue
            with np.errstate(over="ignore", invalid="ignore"):  # looked for at the end
                sums += _sums_of_numbers(values, rows.weight, mass, *scaling)

    @property
    def columns(self) -> list[NumberTotals | CategoryTotals]:
        """The totals of each column."""
        parts = np.split(self.sums, self._borders)
        for name, sums in zip(self.codes.names, parts, strict=True):
            if not np.isfinite(sums).all():
                raise InputError(
                    f"Column '{name}' of the population holds infinite values, or values too large "
                    "to add up. Replace them, or rescale the column."
                )
        return [
            CategoryTotals(float(sums[0]), float(sums[1]), sums[2:])
            if scaling is None
            else _number_totals(sums, *scaling)
            for sums, scaling in zip(parts, self._scaling, strict=True)
        ]


def _sums_of_numbers(
    values: FloatArray, weight: FloatArray, total: float, centre: float, scale: float
) -> FloatArray:
    distances = np.subtract(values, centre, dtype=np.float64)
    distances /= scale
    weighted, mass = weight * distances, total
    if np.isnan(weighted.sum()):  # one sum shows whether anything is missing
        present = ~np.isnan(distances)
        distances, mass = distances[present], float(weight[present].sum())
        weighted = weight[present] * distances
    return np.array([total - mass, mass, weighted.sum(), weighted @ distances])


def _number_totals(sums: FloatArray, centre: float, scale: float) -> NumberTotals:
    missing, mass, total, squares = sums.tolist()
    if not mass:
        return NumberTotals(missing, 0.0, float("nan"), float("nan"))
    mean = total / mass
    deviation = float(np.sqrt(max(squares / mass - mean**2, 0.0)))
    return NumberTotals(missing, mass, centre + scale * mean, scale * deviation)


def centre_and_scale(values: FloatArray) -> tuple[float, float]:
    """Return the mean and the standard deviation of what is present; 0 and 1 if that is nothing."""
    present = values[~np.isnan(values)]
    if not len(present):
        return 0.0, 1.0
    largest = float(np.abs(present).max()) or 1.0  # so that no square overflows
    spread = float((present / largest).std()) * largest
    return float((present / largest).mean()) * largest, spread if spread > 0 else 1.0
