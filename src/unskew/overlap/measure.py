"""Search for the part of the population that the sample does not cover.

Three kinds of rows are uncovered: those with *values* that no sample row has, beyond what chance
explains; those in *boxes* of the columns without sample rows, larger than chance leaves empty; and
those *far* from every sample row. The search draws rows of the population, at once or by the fit's
own pass. Where one side is rounded and the other is not, the drawn rows of both are brought to the
same steps; sums and moments use the values as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from unskew.numerics.empty_boxes import Columns, EvenDraw, empty_boxes, log_tail
from unskew.numerics.far_rows import FAR_FACTOR, OUTERMOST, MixedPoints, far_rows
from unskew.numerics.grids import common_grid
from unskew.numerics.kernels import FARTHEST
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.overlap.overlap import Label, Overlap, OverlapRule, describe_box, describe_unseen
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import Summary
from unskew.rows.design import Design, point_design
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind
from unskew.rows.sample import Sample


def align(
    codes: ColumnCodes, in_sample: FloatArray, in_population: FloatArray
) -> tuple[FloatArray, FloatArray, dict[int, str]]:
    """Round the columns in which one side is rounded and the other is not, on both sides.

    Return the codes of both sides, and a sentence for each column that was rounded.
    """
    rounded: dict[int, str] = {}
    for column, (name, kind) in enumerate(zip(codes.names, codes.kinds, strict=True)):
        grid = None
        if kind != Kind.CATEGORY:
            grid = common_grid(in_sample[:, column], in_population[:, column])
        if grid is None:
            continue
        if not rounded:
            in_sample, in_population = in_sample.copy(), in_population.copy()
        for side in (in_sample, in_population):
            side[:, column] = grid.nearest(side[:, column])
        who, other = ("sample", "population") if grid.of_first else ("population", "sample")
        step = f"{grid.step:,g} days" if kind == Kind.TIME else f"{grid.step:,g}"
        rounded[column] = (
            f"'{name}': the {who} is rounded to {step}, the {other} is not. Where rows of the two "
            "are compared, both are rounded to it; sums, means and cells use the values as given."
        )
    return in_sample, in_population, rounded


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


def measure_overlap(
    sample: Sample,
    drawn: Reservoir,
    n_rows: int,
    *,
    grow_on: int = 2000,
    search_in: int | None = None,
) -> Overlap:
    """Measure which part of the population the sample does not cover.

    Parameters
    ----------
    sample : Sample
        Rows with a design weight of zero do not count, and uneven weights make an absence more
        likely to be chance: see :mod:`unskew.numerics.empty_boxes`.
    drawn : Reservoir
        The population, or a uniform random sample of its rows; its seed is that of the search.
    n_rows : int
        The number of rows of the population.
    grow_on : int
        The number of rows of each side that the search uses.
    search_in : int, optional
        In how many of the population's rows to look for regions and distances; by default all.
        Values that no sample row has are always looked for in all.

    Returns
    -------
    Overlap
    """
    rows, seed = drawn.rows, drawn.seed
    mass = drawn.weight / drawn.weight.sum()
    whole = drawn.whole(n_rows)
    error = _error(mass, whole)
    sample = sample.take(np.flatnonzero(sample.design > 0))
    codes, design = sample.codes, sample.design
    in_population = codes.transform(rows, side="population").values
    in_sample, in_population, rounded = align(codes, sample.values, in_population)
    columns = [
        values_of(
            codes, column, in_sample[:, column], in_population[:, column], rows.column(column)
        )
        for column in range(len(codes.names))
    ]
    squares = row_squares(drawn.weight, mass, whole, columns, in_population)
    # 1) Values that no sample row has, beyond those that chance explains.
    regions = list(unseen_regions(codes, columns, rows, EvenDraw(design, mass, squares)))
    rules = list(_rules(regions, mass, error, len(in_sample)))
    unseen = np.any([values.unseen for values in columns], axis=0)
    if search_in is not None and search_in < len(mass):
        few = drawn.first(search_in)
        in_population, unseen, squares = (
            in_population[few],
            unseen[few],
            squares[few] / mass[few].sum() ** 2,
        )
        mass = mass[few] / mass[few].sum()
        regions = [region._replace(where=region.where[few]) for region in regions]
        error = _error(mass, False)
    left = _uncovered(regions, mass) < 1
    # 2) Boxes among the other rows.
    if left.any():
        draw = EvenDraw(design, mass, squares)
        boxes = _boxes(codes, in_sample, in_population, left, draw, grow_on, seed)
        rules += _rules(boxes, mass, error, len(in_sample))
        regions += boxes
    # 3) Rows far from every sample row.
    explained = _uncovered(regions, mass)
    space = point_design(codes, in_sample)
    points = _mixed_points(space, in_sample), _mixed_points(space, in_population)
    far = far_rows(*points, mass, design=design, squares=squares, judge_on=grow_on, seed=seed)
    uncovered = np.maximum(explained, far)
    share = min(1.0, float(mass @ uncovered))
    return Overlap(
        uncovered=share,
        margin=_margin(share, error),
        rules=tuple(sorted(rules, key=lambda rule: -rule.share)),
        unexplained=float(mass @ (uncovered - explained)),
        method=_METHOD,
        by_chance=float(mass @ np.maximum(unseen - uncovered, 0.0)),
        rounded=tuple(rounded.values()),
    )


_METHOD = (
    "Values that no sample row has are counted, unless a uniform random sample of the same size "
    "would lack them in more than 1 of 100 cases: a single value in full, many rare values of a "
    "column by their mass beyond what such a sample is expected to lack. Regions are boxes in the "
    "columns without sample rows, so large that a uniform random sample of the same size would "
    "leave one of them empty in only 1 of 100 cases. A row is also uncovered if its distance from "
    f"every sample row is more than {FAR_FACTOR} times the nearest-neighbour distance that all but "
    f"{100 * OUTERMOST:g} % of the sample rows have, in standardised columns."
)


def _boxes(
    codes: ColumnCodes,
    in_sample: FloatArray,
    in_population: FloatArray,
    left: BoolArray,
    draw: EvenDraw,
    grow_on: int,
    seed: int,
) -> list[Region]:
    """Return boxes without sample rows among the population rows that are left."""
    masses = np.concatenate([draw.design, draw.mass])
    ours, others, labels = _features(codes, in_sample, in_population, masses)
    boxes = empty_boxes(
        ours,
        others if left.all() else [column[left] for column in others],
        draw.mass[left],
        design=draw.design,
        squares=draw.squares[left],
        grow_on=grow_on,
        seed=seed,
    )
    return [Region(describe_box(codes, box, labels), box.holds(others)) for box in boxes]


def _error(mass: FloatArray, whole: bool) -> float:
    """Return one over the root of Kish's effective size; 0 where all rows were counted."""
    return 0.0 if whole else float(np.sqrt(mass @ mass))


def _margin(share: float, error: float) -> float:
    return 1.96 * error * float(np.sqrt(max(share * (1 - share), 0.0)))


def _rules(
    regions: Sequence[Region], mass: FloatArray, error: float, size: int
) -> Iterator[OverlapRule]:
    for text, where, by_chance, unseen in regions:
        share = float(mass[where].sum())
        margin = _margin(share, error)
        yield OverlapRule(text, share - by_chance, margin, 0, size, by_chance, unseen)


def _uncovered(regions: Sequence[Region], mass: FloatArray) -> FloatArray:
    """Return how much of each population row is uncovered: all of it, or what is beyond chance."""
    uncovered = np.zeros(len(mass))
    for region in regions:
        degree = 1 - region.by_chance / max(float(mass[region.where].sum()), region.by_chance or 1)
        uncovered[region.where] = np.maximum(uncovered[region.where], degree)
    return uncovered


def _mixed_points(space: Design, values: FloatArray) -> MixedPoints:
    numbers, labels = space.split_levels(values)
    np.nan_to_num(numbers, copy=False)
    return MixedPoints(np.clip(numbers, -FARTHEST, FARTHEST, out=numbers), labels)


def bounded(points: FloatArray) -> FloatArray:
    """Return points with finite distances.

    A column so large that its standard deviation overflows has no scale and is set to zero.
    """
    finite = np.nan_to_num(points)
    return np.clip(finite, -FARTHEST, FARTHEST, out=finite)


MAX_VALUES = 32


def _features(
    codes: ColumnCodes, in_sample: FloatArray, in_population: FloatArray, mass: FloatArray
) -> tuple[Columns, Columns, list[Label]]:
    """Return the features in which boxes are searched: numbers, and an indicator per category."""
    features: list[FloatArray | BoolArray] = []
    labels: list[Label] = []
    for column, sides in enumerate(zip(in_sample.T, in_population.T, strict=True)):
        here = np.concatenate(sides)
        if codes.kinds[column] == Kind.CATEGORY:
            for rank in _frequent(here, mass):
                features.append(here == rank)
                labels.append((column, codes.format_value(column, rank)))
        else:
            features.append(here)
            labels.append((column, None))
        if codes.has_missing[column]:
            features.append(np.isnan(here))
            labels.append((column, "missing"))
    ours, others = (
        [f[side] for f in features] for side in (np.s_[: len(in_sample)], np.s_[len(in_sample) :])
    )
    return ours, others, labels


def _frequent(values: FloatArray, mass: FloatArray) -> list[float]:
    """Return the categories with the most mass in sample and population."""
    known = values >= 0  # neither unseen nor missing
    totals = np.bincount(values[known].astype(np.int64), weights=mass[known])
    order = np.argsort(-totals, kind="stable")[:MAX_VALUES]
    return [float(rank) for rank in order if totals[rank] > 0]


class OverlapSearch:
    """Searches in rows of the population that are drawn at once, or by the fit's own pass.

    Parameters
    ----------
    sample : Sample
    population : Population
        With the sample's columns. Rows in memory are drawn here; of others the fit's pass is to ask
        for what is in ``asked``.
    thorough : bool
        Whether to draw and compare twenty and ten times as many rows.
    """

    def __init__(self, sample: Sample, population: Population, *, thorough: bool) -> None:
        self._sample, self._population = sample, population
        # So many that a category is named whose absence from the sample is not chance.
        n_columns = max(1, len(population.columns))
        self._drawn = Reservoir(20_000 if thorough else max(1000, min(10_000, 10**6 // n_columns)))
        self._grow_on, self._search_in = (5000, 20_000) if thorough else (500, 1000)
        self.asked: list[Summary] = [] if population.draw(self._drawn) else [self._drawn]

    def result(self) -> Overlap:
        """Return what is found in the rows drawn."""
        return measure_overlap(
            self._sample,
            self._drawn,
            self._population.size,
            grow_on=self._grow_on,
            search_in=self._search_in,
        )
