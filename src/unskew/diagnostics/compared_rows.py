"""Sample and population rows as the tests of shift see them: one encoding, each row once.

A test that swaps rows between the sides, or a classifier that separates them, is right only if
nothing but the distribution of a row depends on its side: categories, scales and bins are those of
all rows together. A population row that is a row of the sample is here once, with mass on both
sides. The pair of :mod:`unskew.weighters.two_samples` leaves such rows, and those with unseen
values, to the sample alone: a model of the ratio must not learn from them, a test must see them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from unskew.diagnostics.balance import centre_and_scale
from unskew.numerics.row_keys import hash_rows, have_rows_in_common, pair_rows
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.overlap.measure import align, bounded
from unskew.population.reservoir import Reservoir
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind
from unskew.rows.sample import Sample
from unskew.weighters.base import Family

MAX_CORRELATED = 100
NOTABLE = 0.05


class DrawnRows(NamedTuple):
    """Some of the rows, with the mass that each has on either side."""

    rows: IntArray
    sample: FloatArray
    """The mass in the sample; sums to one."""
    population: FloatArray
    """The mass in the population; sums to one."""
    n_sample: int
    """How many of them, the first ones, have mass in the sample."""


@dataclass(frozen=True)
class ComparedRows:
    """The rows of both sides, encoded without regard to the side that they are on.

    Attributes
    ----------
    codes : ColumnCodes
        That know the categories of both sides.
    values : ndarray of shape (n_rows, d)
        The codes of the sample's rows, then of the population's other rows.
    population : ndarray of shape (n_rows,)
        The population's mass of each row; sums to one.
    n_shared : int
        How many of the sample's rows are also rows of the population.
    marked : bool
        Whether the population marks the rows that are in the sample.
    design : ndarray
        The weights of the sample's rows before weighting.
    seed : int
    even : bool
        Whether neither side has design weights, so that rows can be swapped.
    tested : ndarray, optional
        The weights to test.
    how : str
        How these relate to the rows that they are tested on, in a sentence.
    family : {"trees", "smooth"}
        The classifiers that try to separate the sides.
    memo : dict
        What a test has computed that another may use.
    """

    codes: ColumnCodes
    values: FloatArray
    population: FloatArray
    n_shared: int
    marked: bool
    design: FloatArray
    seed: int
    even: bool = True
    tested: FloatArray | None = None
    how: str = ""
    family: Family = "trees"
    memo: dict[Any, Any] = field(default_factory=dict, init=False)

    @classmethod
    def from_reservoir(cls, sample: Sample, drawn: Reservoir, **tested: Any) -> Self:
        """Encode the sample and the rows drawn from the population, and find the shared ones."""
        codes = sample.codes.joined(drawn.rows)
        first = codes.transform(sample.batch, side="sample").values
        second = codes.transform(drawn.rows, side="population").values
        pairs = _pairs(first, second, drawn.selected)
        first, second, _ = align(codes, first, second)
        mass = drawn.weight / drawn.weight.sum()
        other = pairs < 0
        own = np.bincount(pairs[~other], mass[~other], minlength=len(first))
        return cls(
            codes,
            np.concatenate([first, second[other]]),
            np.concatenate([own, mass[other]]),
            n_shared=int((~other).sum()),
            marked=drawn.selected is not None,
            design=sample.design,
            seed=drawn.seed,
            **tested,
        )

    @property
    def n_sample(self) -> int:
        """The number of sample rows."""
        return len(self.design)

    def draw(self, weight: FloatArray, max_rows: int) -> DrawnRows:
        """Draw at most so many rows of each side, with these weights of the sample's rows.

        The population is represented by the sample's rows that are in it and the other rows drawn,
        each part with its mass, so that a smaller draw represents it as well.
        """
        positive = np.zeros(len(self.values), dtype=bool)
        positive[: self.n_sample] = weight > 0
        first = _draw(positive, max_rows, self.seed)
        second = _draw(~positive & (self.population > 0), max_rows, self.seed + 1)
        rows = np.concatenate([first, second])
        is_first = np.arange(len(rows)) < len(first)
        sample, population = np.zeros(len(rows)), self.population[rows]
        sample[: len(first)] = weight[first] / weight[first].sum()
        shared = float(self.population[positive].sum())
        if not population[is_first].any():  # shared rows were not drawn
            shared = 0.0
        for part, total in ((is_first, shared), (~is_first, 1.0 - shared)):
            if population[part].any():
                population[part] *= total / population[part].sum()
        return DrawnRows(rows, sample, population / population.sum(), len(first))

    @cached_property
    def is_category(self) -> BoolArray:
        """Which columns hold categories."""
        return np.array([kind == Kind.CATEGORY for kind in self.codes.kinds], dtype=bool)

    @cached_property
    def _scaling(self) -> list[tuple[float, float]]:
        numbers = self.values[:, ~self.is_category]
        return [centre_and_scale(column) for column in numbers.T]

    @cached_property
    def is_seen(self) -> BoolArray:
        """Which rows hold only categories, or missing values, that some sample row holds."""
        seen = np.ones(len(self.values), dtype=bool)
        for column, is_category in zip(self.values.T, self.is_category, strict=True):
            places = column if is_category else np.isnan(column)
            places = np.where(np.isnan(column), -1.0, places)
            seen &= np.isin(places, places[: self.n_sample])
        return seen

    def points(self, rows: IntArray) -> FloatArray:
        """Return numbers and times of some rows with mean 0 and variance 1 over both sides.

        A missing value is at the mean, and an indicator column follows where there are some.
        """
        numbers = self.values[np.ix_(rows, np.flatnonzero(~self.is_category))]
        missing = np.isnan(numbers)
        if self._scaling:
            centre, scale = np.array(self._scaling).T
            with np.errstate(over="ignore", invalid="ignore"):
                numbers = np.where(missing, 0.0, (numbers - centre) / scale)
        return bounded(np.column_stack([numbers, missing[:, missing.any(axis=0)]]))

    def categories(self, rows: IntArray) -> IntArray:
        """Return the categories of some rows as whole numbers; a missing value is one, zero."""
        codes = self.values[np.ix_(rows, np.flatnonzero(self.is_category))]
        return np.where(np.isnan(codes), 0, codes + 1).astype(np.int64)

    def sparse_points(self, rows: IntArray) -> Any:
        """Return the points, followed by a one-hot column for each category."""
        from scipy import sparse

        blocks = [sparse.csr_matrix(self.points(rows))]
        for column in self.categories(rows).T:
            found, place = np.unique(column, return_inverse=True)
            cells = (np.ones(len(rows)), (np.arange(len(rows)), place))
            blocks.append(sparse.csr_matrix(cells, shape=(len(rows), len(found))))
        return sparse.hstack(blocks, format="csr")

    def method(self, how: str, drawn: DrawnRows, test: str, *, weighted: bool) -> str:
        """Return how a test was made, on which rows, in a few sentences."""
        n_others = len(drawn.rows) - drawn.n_sample
        shared = "The sample's rows are taken to be drawn apart from the population's."
        if self.n_shared:
            known = "as marked" if self.marked else "by their values"
            shared = (
                f"{self.n_shared:,} of the population rows examined are sample rows, {known}: "
                "each is one row with a place on both sides."
            )
        text = f"{how}; {drawn.n_sample:,} sample rows and {n_others:,} others of the population"
        return f"{text}; {test}. {shared}" + (f" {self.how}" if weighted else "")


def _pairs(sample: FloatArray, population: FloatArray, marked: BoolArray | None) -> IntArray:
    """Return which sample row each population row is; -1 where it is none, or none is known."""
    hashes, others = hash_rows(list(sample.T)), hash_rows(list(population.T))
    if marked is None and not have_rows_in_common(hashes, others):
        return np.full(len(population), -1, dtype=np.int64)
    return pair_rows(hashes, others, marked)


def _draw(among: BoolArray, max_rows: int, seed: int) -> IntArray:
    """Return the positions, in order, of a uniform random draw."""
    candidates = np.flatnonzero(among)
    order = np.random.RandomState(seed % 2**32).permutation(len(candidates))
    return candidates[np.sort(order[:max_rows])]


def different_together(both: ComparedRows, weights: FloatArray) -> str:
    """Return which two numbers' correlation, or which one's spread, is farthest off, in words.

    Compares the means of products of the standardised columns; categories are left out.
    """
    numbers = np.flatnonzero(~both.is_category)[:MAX_CORRELATED]
    combined = "the columns agree one by one, so it is their combinations that differ"
    if not len(numbers):
        return combined
    sample = np.zeros(len(both.values))
    sample[: both.n_sample] = weights / weights.sum()
    population = both.population / both.population.sum()
    everywhere: IntArray = np.arange(len(both.values))
    points = both.points(everywhere)[:, : len(numbers)]
    first, second = (_products(points, mass) for mass in (sample, population))
    place = int(np.argmax(np.abs(first - second)))
    row, column = divmod(place, len(numbers))
    here, there = first[row, column], second[row, column]
    if abs(here - there) < NOTABLE:
        return combined
    names = both.codes.names
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
