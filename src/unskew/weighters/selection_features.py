"""Features of the logistic model of selection: numbers with hinges, levels, missing values."""

from __future__ import annotations

import numpy as np

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray
from unskew.rows.design import Constant, Curve, Design, Levels, Missing, Number, Term, ValueGroups
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind
from unskew.weighters.two_samples import TwoSamples

KNOTS = (
    (0.05, 0.2, 0.4, 0.6, 0.8, 0.95),
    (0.2, 0.5, 0.8),
    (0.5,),
    (),
)
"""The quantiles at which a number gets hinges: the first that keeps to ``MAX_FEATURES``."""
HINGE_SCALE = 0.5
"""Hinges are shrunk, so that the ridge costs them four times as much as the number itself: the
ratio of two normal distributions is then recovered with correlations of 1.00 and .98 in one and
five dimensions, against .99 and .96 without."""
MAX_FEATURES = 300
MOST_A_NUMBER = len(KNOTS[0]) + 2
"""The features of a number: itself, its hinges and whether it is missing."""
LARGEST = 1e50
"""Standard deviations from the population's mean."""
MAX_LEVELS = 40
"""One-hot columns of a column of categories; its rarer categories share one more."""


def width_of_models(codes: ColumnCodes) -> int:
    """Return how many numbers a row takes while models of the density ratio are fitted."""
    levels = [codes.n_categories(place) for place in range(len(codes.names))]
    features = [min(n, MAX_LEVELS) + 1 if n else MOST_A_NUMBER for n in levels]
    fewest = sum(width if n else 2 for n, width in zip(levels, features, strict=True))
    # Codes, bins and copies of either; losses, scores and shares.
    return max(fewest, min(sum(features), MAX_FEATURES)) + 4 * len(levels) + 20


def selection_design(rows: TwoSamples, *, hinges: bool) -> Design:
    """Return one, numbers scaled by the population with hinges, missing flags, one-hot levels.

    A hinge is half of (x − q)₊ with q a quantile of the population, scaled as the number is; a
    missing number counts as the mean. Scales and knots are the population's, levels the sample's.
    """
    codes, share = rows.codes, rows.shares.population
    sample, population = rows.split(rows.values)
    is_category = np.array([kind == Kind.CATEGORY for kind in codes.kinds])
    numbers = np.flatnonzero(~is_category).tolist()
    flags: list[Term] = [
        Missing((place,), [f"{codes.names[place]} is missing"])
        for place in numbers
        if codes.has_missing[place]
    ]
    levels = [
        Levels.from_groups(codes, place, frequent_groups(place, rows, MAX_LEVELS))
        for place in np.flatnonzero(is_category).tolist()
    ]
    room = MAX_FEATURES - 1 - len(flags) - sum(len(level.names) for level in levels)
    quantiles = next(q for q in KNOTS if len(numbers) * (1 + len(q)) <= room or not q)
    terms: list[Term] = [Constant()]
    for place in numbers:
        name, column = codes.names[place], population[:, place]
        centre, scale = _centre_and_scale(column, sample[:, place], share)
        _check_reach(name, rows.values[:, place], centre, scale)
        knots = _knots(column, share, quantiles if hinges else ())
        terms.append(Number((place,), [name], centre, 0.0, scale))
        if len(knots):
            wide = scale / HINGE_SCALE
            bends = (knots - centre) / wide
            names = [f"{name} above {codes.format_value(place, knot)}" for knot in knots]
            terms.append(Curve((place,), names, centre, wide, bends, np.zeros(len(knots))))
    return Design(codes, [*terms, *flags, *levels])


def selection_features(design: Design, codes: FloatArray) -> FloatArray:
    """Return the features of rows; of new rows that lie too far away to sum, those at the limit."""
    features = design.of_codes(codes)
    return np.clip(features, -LARGEST, LARGEST, out=features)


def _check_reach(name: str, column: FloatArray, centre: float, scale: float) -> None:
    """Refuse numbers too far from the population's mean to be summed, naming the column."""
    with np.errstate(over="ignore", invalid="ignore"):
        beyond = (np.abs((column - centre) / scale) > LARGEST).any()
    if beyond or not scale < np.inf:
        raise InputError(
            f"Column '{name}' holds values too far from the population's mean for a model of "
            "selection. Replace them, or rescale the column."
        )


def frequent_groups(position: int, rows: TwoSamples, most: int) -> ValueGroups:
    """Return a group for each frequent category of the sample, and one for all its others.

    They are in the order of frequency. Rows of both sides count: those rare in the sample would
    tell of the rows that are held out.
    """
    column = rows.values[:, position]
    values, place = np.unique(column, return_inverse=True)  # a missing value last
    counts = np.bincount(place)
    counts[np.bincount(place[: rows.n_sample], minlength=len(values)) == 0] = 0
    order = np.argsort(-counts, kind="stable")
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.minimum(np.arange(len(values)), most)
    labels = [rows.codes.format_value(position, values[one]) for one in order[:most]]
    known = counts > 0
    n_known = int(known.sum())
    labels = labels[:n_known] + ["a rarer one"] * (n_known > most)
    return ValueGroups(values[known], ranks[known], labels)


def _centre_and_scale(
    population: FloatArray, sample: FloatArray, share: FloatArray
) -> tuple[float, float]:
    """Return mean and standard deviation of the population; of the sample if that is constant."""
    present, own = ~np.isnan(population), sample[~np.isnan(sample)]
    numbers, counted = population[present], share[present]
    if not len(numbers) or not counted.any():
        numbers, counted = own, np.ones(len(own))
    if not len(numbers):
        return 0.0, 1.0
    centre = float(np.average(numbers, weights=counted))
    for values, weights in ((numbers, counted), (own, None)):
        if len(values):
            largest = float(np.abs(values - centre).max())  # so that no square overflows
            if largest > 1e-12 * max(1.0, abs(centre)):
                squares = np.average(np.square((values - centre) / largest), weights=weights)
                return centre, largest * float(np.sqrt(squares))
    return centre, 1.0


def _knots(column: FloatArray, share: FloatArray, quantiles: tuple[float, ...]) -> FloatArray:
    """Return distinct weighted quantiles of a column; none at its ends, where a hinge is no use."""
    present = ~np.isnan(column)
    numbers, counted = column[present], share[present]
    if not len(numbers) or not quantiles:
        return np.empty(0)
    order = np.argsort(numbers, kind="stable")
    below = np.cumsum(counted[order]) / counted.sum()
    # A little lower, so that rounding decides nothing where a quantile lies between two rows.
    places = np.searchsorted(below, np.array(quantiles) - 1e-9)
    knots = np.unique(numbers[order][places])
    return knots[(knots > numbers.min()) & (knots < numbers.max())]
