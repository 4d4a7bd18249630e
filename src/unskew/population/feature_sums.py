"""The sums of features over a population: what calibration asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.summaries import Summary
from unskew.rows.design import (
    MAX_TABLE,
    Design,
    Levels,
    Number,
    Product,
    Term,
    is_plain_number,
)
from unskew.rows.tables import RowBlock

RARE = 5
"""A level of at most this many sample rows is like those that no sample row has."""
MOST_EACH = 4
"""How many times as much as an average row each of the rows that stand for such levels adds."""
RAREST_ROWS = 20
"""How many sample rows stand for such levels: at least this many, and a share of one over it."""
BLOCK = 8192
"""Rows whose features are computed at a time; a block of 40 features then fits a core's cache."""


class SumPlan:
    """How to sum features: products of numbers by one multiplication of matrices, levels by counts.

    Parameters
    ----------
    features : Design

    Attributes
    ----------
    spans : list of slice
        Where the features of each term are.
    levels : dict of int to Levels
        Indicators, by the number of their term.
    apart : dict of int to int
        Of those of several columns, where the counts of combinations apart end.
    others : Design
        The features that are neither numbers, products of two, nor indicators.
    """

    def __init__(self, features: Design) -> None:
        ends = np.cumsum([0, *(len(term.names) for term in features.terms)])
        factors: dict[tuple[int, float], int] = {}

        def place(number: Number) -> int:
            return factors.setdefault((number.positions[0], number.origin), len(factors))

        numbers, products, rest = [], [], list[Term]()
        others = list[IntArray]()
        self.spans = [slice(begin, end) for begin, end in pairwise(ends)]
        self.levels: dict[int, Levels] = {}
        self.apart: dict[int, int] = {}
        for number, (term, begin, end) in enumerate(
            zip(features.terms, ends, ends[1:], strict=False)
        ):
            if is_plain_number(term):
                numbers.append((begin, place(term)))
            elif isinstance(term, Product) and (
                is_plain_number(left := term.left) and is_plain_number(right := term.right)
            ):
                products.append((begin, place(left), place(right)))
            elif isinstance(term, Levels):
                self.levels[number] = term
                if len(term.positions) > 1:
                    self.apart[number] = max(self.apart.values(), default=0) + n_counted(term)
            else:
                rest.append(term)
                others.append(np.arange(begin, end))
        self.positions = [position for position, _ in factors]
        self.origins = np.array([origin for _, origin in factors])
        self.numbers: IntArray = np.array(numbers, dtype=np.intp).reshape(-1, 2).T
        self.products: IntArray = np.array(products, dtype=np.intp).reshape(-1, 3).T
        self.others = Design(features.codes, rest)
        self.other_places: IntArray = np.concatenate([np.empty(0, np.intp), *others])
        self.width = int(ends[-1])

    def factors_of(self, codes: FloatArray) -> FloatArray:
        """Return the numbers, from their origins."""
        return np.asarray(codes[:, self.positions] - self.origins)

    def sums(
        self, factors: FloatArray, others: FloatArray, places: list[IntArray], weight: FloatArray
    ) -> FloatArray:
        """Return the weighted sums of all features."""
        sums = np.empty(self.width)
        sums[self.other_places] = weight @ others
        sums[self.numbers[0]] = (weight @ factors)[self.numbers[1]]
        if self.products.size:
            gram = (factors * weight[:, None]).T @ factors
            sums[self.products[0]] = gram[self.products[1], self.products[2]]
        for (number, term), place in zip(self.levels.items(), places, strict=True):
            counted = np.bincount(place + 1, weight, len(term.names) + 1)  # the first has none
            sums[self.spans[number]] = counted[1:]
        return sums


class FeatureSums(Summary):
    """The sums of features over rows whose values the sample has, by folds of the rows.

    Attributes
    ----------
    sums : ndarray of shape (n_folds, n_features)
    mass : ndarray of shape (n_folds,)
        The weight of the rows that were summed.
    uncovered : float
        The weight of the rows with a value that no sample row has.
    apart : ndarray
        The weight of the rows that were summed, but whose combination of values no sample row has:
        by combination, for each of the plan's joint levels in turn. Features of joint levels are
        zero there.
    partly, beyond, squares : float, ndarray of shape (n_columns,), float
        With ``ranges``, the weight of rows that were summed although no sample row has one of their
        levels, and have no feature of that column; the weight of rows with numbers out of the
        ranges; and the sum of squared weights.

    Parameters
    ----------
    features : Design
    n_folds : int
    ranges : ndarray of shape (2, n_columns), optional
        The smallest and the largest number of each column in the sample.
    """

    shared = frozenset({"features", "plan", "ranges"})
    added = ("sums", "lost", "mass", "uncovered", "apart", "partly", "beyond", "squares")

    def __init__(
        self, features: Design, n_folds: int = 1, ranges: FloatArray | None = None
    ) -> None:
        self.features, self.ranges = features, ranges
        self.partly = self.squares = 0.0
        self.beyond = np.zeros(len(features.codes.names))
        self.plan = SumPlan(features)
        self.sums = np.zeros((n_folds, len(features)))
        self.lost = np.zeros((n_folds, len(features)))  # in rounding, so far
        self.mass = np.zeros(n_folds)
        self.uncovered = 0.0
        self.apart = np.zeros(max(self.plan.apart.values(), default=0))

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block."""
        codes = self.features.codes.transform(rows.batch, side="population").values
        with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the sums checks them
            self._add(rows, codes)

    def _add(self, rows: RowBlock, codes: FloatArray) -> None:
        n_folds, plan = len(self.mass), self.plan
        for begin in range(0, len(codes), BLOCK):
            part = codes[begin : begin + BLOCK]
            batch, weight = rows.batch.slice(begin, BLOCK), rows.weight[begin : begin + BLOCK]
            factors = plan.factors_of(part)
            values = plan.others.of_codes(part, batch)
            places = [levels.places(part) for levels in plan.levels.values()]
            unseen = np.zeros(len(part), dtype=bool)
            if np.isnan(factors.sum() + values.sum()):
                unseen |= np.isnan(factors).any(axis=1) | np.isnan(values).any(axis=1)
            unknown, apart = np.zeros(len(part), dtype=bool), []
            for (number, levels), place in zip(plan.levels.items(), places, strict=True):
                if (place < 0).any():
                    combination = levels.combine(part) if number in plan.apart else place
                    unknown |= combination < 0
                    if number in plan.apart:
                        room = n_counted(levels)
                        cell = plan.apart[number] - room + np.minimum(combination, room - 1)
                        apart.append(np.where((place < 0) & (combination >= 0), cell, -1))
            if self.ranges is None:
                unseen |= unknown
            else:
                self.partly += float(weight[unknown & ~unseen].sum())
                outside = (part < self.ranges[0]) | (part > self.ranges[1])
                self.beyond += weight @ outside
                self.squares += float(weight @ weight)
            if unseen.any():
                self.uncovered += float(weight[unseen].sum())
                factors[unseen], values[unseen] = 0.0, 0.0
                weight = np.where(unseen, 0.0, weight)
            for place in apart:
                self.apart += np.bincount(place + 1, weight, len(self.apart) + 1)[1:]
            for fold in range(n_folds):
                own = slice((fold - rows.start - begin) % n_folds, None, n_folds)
                places_of_block = [place[own] for place in places]
                sums = plan.sums(factors[own], values[own], places_of_block, weight[own])
                self._add_sums(fold, sums)
                self.mass[fold] += weight[own].sum()

    def completed(self, counts: Callable[[Levels], IntArray]) -> tuple[FloatArray, list[int]]:
        """Return the sums, those of levels such that every row that was summed has one.

        Rows with a level that no sample row has go to the sample's rarest levels, as those of which
        a few more rows would have been such levels; where none is rare, to all levels as they are.
        Rows with a combination that no sample row has go to the others such that each column keeps
        its own shares, by raking.

        Parameters
        ----------
        counts : callable
            Returns the number of sample rows of each level.

        Returns
        -------
        sums : ndarray of shape (n_folds, n_features)
        contradictory : list of int
            The joint terms that cannot have all shares of their columns.
        """
        sums, mass, contradictory = self.sums.copy(), float(self.mass.sum()), []
        alone = {}
        for place, span in enumerate(self.plan.spans):
            levels = self.features.terms[place]
            own = sums[:, span].sum(axis=0)
            if not isinstance(levels, Levels) or levels.of_margin is not None:
                continue
            if len(levels.positions) == 1:
                if self.partly > 0 and 0 < own.sum() < mass:
                    grouping: Any = levels.groupings[0]
                    merged = len(getattr(grouping, "values", ())) > len(grouping.labels)
                    scale = mass / own.sum() if merged else _with_unseen(own, mass, counts(levels))
                    sums[:, span] *= scale
                alone[levels.positions[0]] = levels, sums[:, span].sum(axis=0)
            elif 0 < own.sum() < mass:
                margins = [
                    (alone[position][0].places_of(levels, position), alone[position][1])
                    for position in levels.positions
                    if position in alone
                ]
                raked = rake(own * (mass / own.sum()), margins)
                if raked is None:
                    contradictory.append(place)
                else:
                    sums[:, span] *= raked / np.where(own > 0, own, 1.0)
        return sums, contradictory

    def unseen_combinations(self, place: int) -> dict[tuple[str, ...], float]:
        """Return the combinations of a joint term that no sample row has, and their weights."""
        levels: Any = self.features.terms[place]
        sizes = [len(one.labels) for one in levels.groupings]
        end = self.plan.apart[place]
        apart = self.apart[end - n_counted(levels) : end]
        found = {}
        for cell in np.argsort(-apart, kind="stable")[: np.count_nonzero(apart > 0)]:
            groups = np.unravel_index(int(cell), sizes)
            labels = (one.labels[g] for one, g in zip(levels.groupings, groups, strict=True))
            found[tuple(labels)] = float(apart[cell])
        return found

    def _add_sums(self, fold: int, sums: FloatArray) -> None:
        """Add sums and keep what rounding takes, so that the cut of the rows does not matter."""
        before = self.sums[fold].copy()
        self.sums[fold] += sums
        self.lost[fold] += _error(before, sums, self.sums[fold])

    def merge(self, other: FeatureSums) -> None:
        """Add the sums of later rows."""
        before = self.sums.copy()
        super().merge(other)
        self.lost += _error(before, other.sums, self.sums)

    def finish(self) -> None:
        """Add what rounding took."""
        self.sums, self.lost = self.sums + self.lost, np.zeros_like(self.lost)
        super().finish()


def _error(first: FloatArray, second: FloatArray, total: FloatArray) -> FloatArray:
    """Return what rounding took from a sum of two numbers (Knuth's exact error of an addition)."""
    with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the sums checks them
        share = total - first
        return np.asarray((first - (total - share)) + (second - share))


def n_counted(levels: Levels) -> int:
    """Return how many combinations of groups are counted apart: all, or all that there is room for.

    Of more, the last stands for the rest.
    """
    return min(math.prod(len(one.labels) for one in levels.groupings), MAX_TABLE)


def rake(masses: FloatArray, margins: Sequence[tuple[IntArray, FloatArray]]) -> FloatArray | None:
    """Return the masses of cells, scaled such that each margin has its totals; None if none do.

    Examples
    --------
    >>> cells = np.array([1.0, 1.0, 2.0])  # of a table of two by two, of which one cell is empty
    >>> rows, columns = (np.array([0, 0, 1]), [3.0, 1.0]), (np.array([0, 1, 0]), [2.0, 2.0])
    >>> rake(cells, [(place, np.array(totals)) for place, totals in (rows, columns)])
    array([1., 2., 1.])
    """
    for _ in range(1000):
        largest = 0.0
        for place, totals in margins:
            found = np.bincount(place, masses, len(totals))
            largest = max(largest, float(np.abs(found - totals).max()))
            masses = masses * (totals / np.where(found > 0, found, 1.0))[place]
        if largest <= 1e-11 * masses.sum():
            return masses
    return None


def _with_unseen(own: FloatArray, mass: float, counts: IntArray) -> FloatArray:
    """Return the factors of levels' sums that bring their total to the population's.

    The rest is that of the sample's rarest levels, up to a twentieth of its rows, if any is rare.
    """
    order = np.argsort(counts, kind="stable")
    size, unseen = int(counts.sum()), 1 - own.sum() / mass
    enough = max(RAREST_ROWS, size // RAREST_ROWS, int(unseen * size / MOST_EACH))
    n_rare = int(np.searchsorted(np.cumsum(counts[order]), enough)) + 1
    rarest = np.zeros(len(own))
    if counts[order[0]] <= RARE:
        rarest[order[:n_rare]] = counts[order[:n_rare]]
    rarest[own <= 0] = 0.0
    if not rarest.any():
        return np.full(len(own), mass / own.sum())
    return 1 + (mass - own.sum()) * rarest / rarest.sum() / np.where(own > 0, own, 1.0)
