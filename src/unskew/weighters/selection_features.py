"""Features of the logistic model of selection: numbers with hinges, levels, missing values."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray, IntArray
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


class SelectionFeatures:
    """One, then numbers scaled by the population with hinges, missing flags, one-hot levels.

    A hinge is half of (x − q)₊ with q a quantile of the population, scaled as the number is.
    """

    def fit(self, rows: TwoSamples, *, hinges: bool) -> Self:
        """Learn scales and knots from the population's rows, levels from the sample's."""
        sample, population = rows.split(rows.values)
        share = rows.shares.population
        is_category = np.array([kind == Kind.CATEGORY for kind in rows.codes.kinds])
        self.numbers = np.flatnonzero(~is_category)
        self.flags = np.flatnonzero(~is_category & rows.codes.has_missing)
        self.levels = [LevelCodes.learn(int(place), rows) for place in np.flatnonzero(is_category)]
        fixed = 1 + len(self.flags) + sum(level.width for level in self.levels)
        room = MAX_FEATURES - fixed
        quantiles = next(q for q in KNOTS if len(self.numbers) * (1 + len(q)) <= room or not q)
        scales = [
            _centre_and_scale(population[:, place], sample[:, place], share)
            for place in self.numbers
        ]
        self.centre, self.scale = np.array(scales).reshape(-1, 2).T
        self._check_reach(rows)
        self.knots = [
            _knots(population[:, place], share, quantiles if hinges else ())
            for place in self.numbers
        ]
        self.n_features = fixed + len(self.numbers) + sum(len(knots) for knots in self.knots)
        return self

    def _check_reach(self, rows: TwoSamples) -> None:
        """Refuse numbers too far from the population's mean to be summed, naming the column."""
        with np.errstate(over="ignore", invalid="ignore"):
            reach = np.abs((rows.values[:, self.numbers] - self.centre) / self.scale)
            beyond = np.flatnonzero((reach > LARGEST).any(axis=0) | ~(self.scale < np.inf))
        for place in beyond:
            raise InputError(
                f"Column '{rows.codes.names[self.numbers[place]]}' holds values too far from the "
                "population's mean for a model of selection. Replace them, or rescale the column."
            )

    def transform(self, codes: FloatArray) -> FloatArray:
        """Return the features of rows; a missing number counts as the mean."""
        features = np.zeros((len(codes), self.n_features))
        features[:, 0] = 1.0
        place = 1
        for column, centre, scale, knots in zip(
            self.numbers, self.centre, self.scale, self.knots, strict=True
        ):
            number = codes[:, column]
            with np.errstate(over="ignore"):
                features[:, place] = _scaled(number - centre, scale)
                for knot in knots:
                    place += 1
                    hinge = _scaled(np.maximum(number - knot, 0.0), scale)
                    features[:, place] = HINGE_SCALE * hinge
            place += 1
        features[:, place : place + len(self.flags)] = np.isnan(codes[:, self.flags])
        place += len(self.flags)
        for level in self.levels:
            output = level.of(codes[:, level.position])
            known = np.flatnonzero(output >= 0)
            features[known, place + output[known]] = 1.0
            place += level.width
        return features


def _scaled(distance: FloatArray, scale: float) -> FloatArray:
    """Return distances over the scale, zero if missing; new rows may lie too far away to sum."""
    scaled = np.clip(distance / scale, -LARGEST, LARGEST)
    scaled[np.isnan(scaled)] = 0.0
    return np.asarray(scaled)


class LevelCodes(NamedTuple):
    """A column of categories: the one-hot column of each code, in order of frequency."""

    position: int
    outputs: IntArray
    """By code; the last entry is that of a missing value."""
    width: int

    @classmethod
    def learn(cls, position: int, rows: TwoSamples, most: int = MAX_LEVELS) -> LevelCodes:
        """Give a column to each category of the sample that is frequent, and one to all the others.

        Rows of both sides count: those rare in the sample would tell of the rows that are held out.
        """
        column = rows.values[:, position]
        n_codes = rows.codes.n_categories(position)
        codes = np.where(np.isnan(column), n_codes, column).astype(np.int64)
        counts = np.bincount(codes, minlength=n_codes + 1)
        counts[np.bincount(codes[: rows.n_sample], minlength=n_codes + 1) == 0] = 0
        ranks = np.empty(n_codes + 1, dtype=np.int64)
        ranks[np.argsort(-counts, kind="stable")] = np.arange(n_codes + 1)
        outputs = np.minimum(ranks, most)
        width = int(np.count_nonzero(counts))
        return cls(position, outputs, min(width, most + 1))

    def of(self, column: FloatArray) -> IntArray:
        """Return each row's one-hot column; -1 where it has none."""
        unseen = column < 0
        codes = np.where(np.isnan(column), len(self.outputs) - 1, column).astype(np.int64)
        known = np.clip(codes, 0, len(self.outputs) - 1)
        found = np.where(unseen | (codes >= len(self.outputs)), -1, self.outputs[known])
        return np.where(found < self.width, found, -1)


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
