"""Values that no sample row has, and how many of them chance explains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from unskew.numerics.chance_gaps import EvenDraw, log_tail
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.overlap.words import describe_unseen
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind

CHANCE = 0.01
"""The probability that an even draw of the sample's size lacks any value, or so much of any column,
that it is reported. Values and columns get half of it each."""


FEW_NUMBERS = 10
"""A column of numbers with at most so many in the population is one of values."""


class Region(NamedTuple):
    """Population rows that no sample row represents."""

    text: str
    where: BoolArray
    by_chance: float = 0.0
    """The part of its mass that an even draw would lack as well."""
    unseen: bool = False
    """Whether these are rows with values of one column that no sample row has."""


class ColumnValues(NamedTuple):
    """The distinct values of a column as numbers, in the sample and in the population."""

    in_sample: IntArray
    in_population: IntArray
    unseen: BoolArray
    """Which population rows hold a value that no sample row has."""

    @property
    def number(self) -> int:
        return int(max(self.in_sample.max(initial=-1), self.in_population.max(initial=-1))) + 1


def values_of(
    codes: ColumnCodes,
    column: int,
    in_sample: FloatArray,
    in_population: FloatArray,
    rows: pa.Array,
) -> ColumnValues:
    """Return the distinct values of a column; many numbers, and times, are only missing or not."""
    unseen = codes.is_unseen(in_population, column)
    if not codes.n_categories(column):
        numbers = np.unique(in_population[~np.isnan(in_population)])
        if len(numbers) <= FEW_NUMBERS and codes.kinds[column] == Kind.NUMBER:
            # A mark of 0 and 1, or a code: a number that no sample row has is a category.
            numbers = np.append(np.unique(in_sample[~np.isnan(in_sample)]), numbers)
            numbers = np.unique(numbers)  # and the place after them is that of missing values
            first, second = (np.searchsorted(numbers, side) for side in (in_sample, in_population))
            return ColumnValues(first, second, unseen | ~np.isin(second, first))
        return ColumnValues(
            np.isnan(in_sample).astype(int), np.isnan(in_population).astype(int), unseen
        )
    first, second = (
        np.nan_to_num(side + 1.0).astype(np.int64) for side in (in_sample, in_population)
    )
    novel = in_population == -1.0
    if novel.any():  # the codes are all the same, the categories are not
        indices = rows.filter(pa.array(novel)).dictionary_encode().indices
        second[novel] = 1 + codes.n_categories(column) + indices.to_numpy(zero_copy_only=False)
    return ColumnValues(first, second, unseen)


def unseen_regions(
    codes: ColumnCodes, columns: list[ColumnValues], rows: pa.RecordBatch, draw: EvenDraw
) -> Iterator[Region]:
    """Yield the values that an even draw of the sample's size would not lack.

    A value that is by itself too frequent to be absent by chance is uncovered altogether. The other
    unseen values of a column may each be absent by chance and be too many together: then their mass
    beyond what is expected is uncovered. Where selection goes by the values, more are absent than
    in an even draw, and about as much mass has one sample row as none (Good 1953).
    """
    n_values = sum(values.number for values in columns)
    for column, (in_sample, in_population, unseen) in enumerate(columns):
        if not unseen.any():
            continue
        number = columns[column].number
        mass, squares = draw.totals(in_population, number)
        # 1) Single values.
        frequent = draw.evidence(mass, squares) >= np.log(2 * n_values / CHANCE)
        found = unseen & frequent[in_population]
        if found.any():
            yield Region(describe_unseen(codes, rows, column, found), found, unseen=True)
        # 2) All the others together.
        rest = unseen & ~found
        absent = np.unique(in_population[found])
        shares, chances = draw.lacking(in_sample, in_population, number, except_for=absent)
        least, lacks = np.log(CHANCE / 2 / len(columns)), float(draw.mass[rest].sum())
        once = float(mass[np.bincount(in_sample, minlength=number) == 1].sum())
        if log_tail(shares, chances, lacks) <= least and lacks > once:
            by_chance = max(float(shares @ chances), once)
            yield Region(describe_unseen(codes, rows, column, rest), rest, by_chance, True)


def row_squares(
    weight: FloatArray,
    mass: FloatArray,
    whole: bool,
    columns: list[ColumnValues],
    in_population: FloatArray,
) -> FloatArray:
    """Return the sum of squared masses of the rows that each population row stands for.

    A row with a design weight is one row: what it stands for was not seen. A table of grouped
    counts, one row for each combination of values and its number of rows, stands for all of them.
    It is recognised by weights that are whole numbers, not all equal, and by distinct rows.
    """
    counts = whole and len(np.unique(weight)) > 1 and bool((weight % 1 == 0).all())
    if counts:
        categories = np.column_stack([values.in_population for values in columns])
        points = np.column_stack([np.nan_to_num(in_population), categories])
        counts = len(np.unique(points, axis=0)) == len(points)
    return mass / weight.sum() if counts else mass**2
