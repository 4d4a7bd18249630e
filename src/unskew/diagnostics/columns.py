"""Exact totals of each column, from the pass over the population."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray
from unskew.population.encode import ColumnCodes
from unskew.population.summaries import RowBlock, Summary

__all__ = ["CategoryTotals", "ColumnTotals", "NumberTotals"]


class NumberTotals(Summary):
    """Mass, mean and variance of a column of numbers or times, and the mass that is missing.

    Sums are taken of the distance from ``centre``, the sample's mean, in units of ``scale``, its
    standard deviation: columns far from zero keep their digits, and large ones their squares.
    """

    def __init__(self, centre: float, scale: float = 1.0) -> None:
        self.centre = centre
        self.scale = scale
        self.mass = 0.0
        self.missing = 0.0
        self.sum = 0.0
        self.squares = 0.0

    def update(self, rows: RowBlock) -> None:
        """Add values."""
        self.add(rows.batch, rows.weight, float(rows.weight.sum()), even=False)

    def add(self, values: FloatArray, weight: FloatArray, mass: float, *, even: bool) -> None:
        """Add values, each counted ``weight`` times: once if ``even``."""
        distances = np.subtract(values, self.centre, dtype=np.float64)
        distances /= self.scale
        total = float(distances.sum() if even else weight @ distances)
        if np.isnan(total):
            present = ~np.isnan(distances)
            distances, weight = distances[present], weight[present]
            kept = float(weight.sum())
            self.missing += mass - kept
            mass, total = kept, float(weight @ distances)
        self.mass += mass
        self.sum += total
        weighted = distances if even and len(distances) == len(values) else distances * weight
        self.squares += float(weighted @ distances)

    def merge(self, other: Self) -> None:
        """Add the other's sums."""
        self.mass += other.mass
        self.missing += other.missing
        self.sum += other.sum
        self.squares += other.squares

    @property
    def mean(self) -> float:
        """The mean; NaN if every value is missing."""
        return self.centre + self.scale * self.sum / self.mass if self.mass else float("nan")

    @property
    def variance(self) -> float:
        """With divisor ``mass``."""
        return self.deviation**2

    @property
    def deviation(self) -> float:
        """The root of the variance."""
        if not self.mass:
            return float("nan")
        return self.scale * math.sqrt(
            max(self.squares / self.mass - (self.sum / self.mass) ** 2, 0.0)
        )


class CategoryTotals(Summary):
    """The mass of each of the sample's categories, of others, and of missing values."""

    def __init__(self, n_categories: int) -> None:
        self.counts: FloatArray = np.zeros(n_categories)
        self.unseen = 0.0
        self.missing = 0.0

    def update(self, rows: RowBlock) -> None:
        """Add codes."""
        self.add(rows.batch, rows.weight, 0.0, even=False)

    def add(self, values: FloatArray, weight: FloatArray, mass: float, *, even: bool) -> None:  # noqa: ARG002
        """Add codes, each counted ``weight`` times."""
        shifted = np.where(np.isnan(values), -2.0, values).astype(np.int64) + 2
        found = np.bincount(shifted, weights=weight, minlength=len(self.counts) + 2)
        self.missing += float(found[0])
        self.unseen += float(found[1])
        self.counts += found[2:]

    def merge(self, other: Self) -> None:
        """Add the other's counts."""
        self.counts += other.counts
        self.unseen += other.unseen
        self.missing += other.missing


class ColumnTotals(Summary):
    """Totals of every column in one pass.

    Attributes
    ----------
    columns : list of NumberTotals or CategoryTotals
    rows : int
    mass : float
    """

    shared = frozenset({"codes"})

    def __init__(self, codes: ColumnCodes, sample: FloatArray) -> None:
        self.codes = codes
        self.columns: list[Any] = [
            CategoryTotals(codes.n_categories(position))
            if codes.counts_categories(position)
            else NumberTotals(*_centre_and_scale(sample[:, position]))
            for position in range(sample.shape[1])
        ]
        self.rows = 0
        self.mass = 0.0

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block."""
        weight = rows.weight
        mass = float(weight.sum())
        even = bool(len(weight)) and float(weight.min()) == 1.0 == float(weight.max())
        self.rows += len(rows)
        self.mass += mass
        for position, totals in enumerate(self.columns):
            column = rows.batch.column(position)
            values = self.codes.encode_column(column, position, side="population")
            totals.add(values, weight, mass, even=even)
            if isinstance(totals, NumberTotals) and not np.isfinite(totals.sum + totals.squares):
                raise InputError(
                    f"Column '{self.codes.names[position]}' of the population holds infinite "
                    "values, or values too large to add up. Replace them, or rescale the column."
                )

    def merge(self, other: Self) -> None:
        """Add the other's totals."""
        self.rows += other.rows
        self.mass += other.mass
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            mine.merge(theirs)


def _centre_and_scale(values: FloatArray) -> tuple[float, float]:
    """Return the mean and the standard deviation of what is present; 0 and 1 if that is nothing."""
    present = values[~np.isnan(values)]
    if not len(present):
        return 0.0, 1.0
    largest = float(np.abs(present).max()) or 1.0  # so that no square overflows
    spread = float((present / largest).std()) * largest
    return float((present / largest).mean()) * largest, spread if spread > 0 else 1.0
