"""Search for the part of the population that the sample does not cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unskew.numerics.chance_gaps import EvenDraw
from unskew.numerics.empty_boxes import Features, empty_boxes
from unskew.numerics.far_rows import FAR_FACTOR, OUTERMOST, MixedPoints, far_rows
from unskew.numerics.kernels import FARTHEST
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.overlap.overlap import Overlap, OverlapRule
from unskew.overlap.rounding import align
from unskew.overlap.values import Region, row_squares, unseen_regions, values_of
from unskew.overlap.words import Label, describe_box
from unskew.population.reservoir import Reservoir
from unskew.rows.encode import ColumnCodes
from unskew.rows.feature_space import FeatureSpace
from unskew.rows.kinds import Kind
from unskew.rows.sample import Sample


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
        likely to be chance: see :mod:`unskew.numerics.chance_gaps`.
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
    space = FeatureSpace(scaling="standard").fit_codes(codes, in_sample)
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
        others if left.all() else others.take(np.flatnonzero(left)),
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


def _mixed_points(space: FeatureSpace, values: FloatArray) -> MixedPoints:
    numbers, labels = space.split_codes(values)
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
) -> tuple[Features, Features, list[Label]]:
    """Return the features in which boxes are searched: numbers, and an indicator per category."""
    features: list[FloatArray | BoolArray] = []
    labels = []
    for column, sides in enumerate(zip(in_sample.T, in_population.T, strict=True)):
        here = np.concatenate(sides)
        if codes.kinds[column] == Kind.CATEGORY:
            for rank in _frequent(here, mass):
                features.append(here == rank)
                labels.append(Label(column, codes.format_value(column, rank)))
        else:
            features.append(here)
            labels.append(Label(column))
        if codes.has_missing[column]:
            features.append(np.isnan(here))
            labels.append(Label(column, "missing"))
    ours, others = (
        [f[side] for f in features] for side in (np.s_[: len(in_sample)], np.s_[len(in_sample) :])
    )
    return Features(ours), Features(others), labels


def _frequent(values: FloatArray, mass: FloatArray) -> list[float]:
    """Return the categories with the most mass in sample and population."""
    known = values >= 0  # neither unseen nor missing
    totals = np.bincount(values[known].astype(np.int64), weights=mass[known])
    order = np.argsort(-totals, kind="stable")[:MAX_VALUES]
    return [float(rank) for rank in order if totals[rank] > 0]
