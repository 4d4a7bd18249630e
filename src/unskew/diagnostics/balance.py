"""The balance of each column: how far the sample is from the population, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unskew.diagnostics.columns import CategoryTotals, NumberTotals
from unskew.diagnostics.features import (
    MISSING,
    NOT_IN_SAMPLE,
    OTHER,
    BalanceLine,
    Difference,
    Distribution,
    FeatureBalance,
)
from unskew.diagnostics.thresholds import THRESHOLDS
from unskew.numerics.grids import Grid, common_grid
from unskew.numerics.typing import FloatArray
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind
from unskew.rows.sample import Sample

MAX_BINS = 24
MAX_BARS = 20
MAX_LINES = 20
"""Categories of a column that are listed with their differences."""


class _Side(NamedTuple):
    """The values that are present, with their shares of the weight of all rows."""

    values: FloatArray
    share: FloatArray

    @property
    def mass(self) -> float:
        """The share of the rows in which the value is present."""
        return float(self.share.sum())

    def on(self, grid: Grid | None) -> _Side:
        """Return the values as they are rounded on one side; as they are, without a grid."""
        return self if grid is None else self._replace(values=grid.nearest(self.values))

    def counted(self, borders: FloatArray, n_bins: int) -> FloatArray:
        """Return the share of each bin; a border belongs to the bin below it."""
        place = np.searchsorted(borders, self.values)
        return np.bincount(place, self.share, minlength=n_bins).astype(np.float64)


def _side(values: FloatArray, weight: FloatArray) -> _Side:
    present = ~np.isnan(values)
    return _Side(values[present], (weight / weight.sum())[present])


def measure_balance(
    sample: Sample,
    after: FloatArray | None,
    totals: Sequence[NumberTotals | CategoryTotals],
    drawn: FloatArray,
    drawn_weight: FloatArray,
) -> tuple[FeatureBalance, ...]:
    """Return the balance of every column, the most biased first.

    Parameters
    ----------
    sample : Sample
    after : ndarray of shape (m,) or None
        Weights of the sample's rows; those before are its design weights.
    totals : sequence of NumberTotals or CategoryTotals
        Counted over the whole population.
    drawn, drawn_weight : ndarray
        Codes and weights of population rows drawn uniformly at random.
    """
    codes, found = sample.codes, []
    for column, (name, counted) in enumerate(zip(codes.names, totals, strict=True)):
        weights = [weight for weight in (sample.design, after) if weight is not None]
        sides = [_side(sample.values[:, column], weight) for weight in weights]
        kind: Literal["number", "category", "time"]
        if isinstance(counted, CategoryTotals):
            kind = "category"
            measured = _category_balance(codes, column, counted, sides)
            distribution = _category_distribution(codes, column, counted, sides)
        else:
            kind = "time" if codes.kinds[column] == Kind.TIME else "number"
            population = _side(drawn[:, column], drawn_weight)
            grid = common_grid(sample.values[:, column], drawn[:, column])
            measured = _number_balance(counted, sides, population, grid)
            sides, population = [one.on(grid) for one in sides], population.on(grid)
            distribution = _number_distribution(codes, column, sides, population)
        differences, lines, unlisted = measured
        lines = tuple(sorted(lines, key=lambda line: -abs(line.before or 0.0)))
        before, weighted = differences[0], None if after is None else differences[1]
        found.append(FeatureBalance(name, kind, lines, unlisted, before, weighted, distribution))
    return tuple(sorted(found, key=_severity))


def _severity(feature: FeatureBalance) -> tuple[float, float]:
    largest = max((abs(line.before or 0.0) for line in feature.lines), default=0.0)
    return -largest, -(feature.before.distance or 0.0)


class _Balance(NamedTuple):
    """A column before and after weighting, as a whole and by its means and shares."""

    differences: Sequence[Difference]
    lines: Sequence[BalanceLine]
    unlisted: int


def _line(category: str | None, differences: Sequence[float | None]) -> BalanceLine:
    return BalanceLine(category, differences[0], differences[1] if len(differences) > 1 else None)


def _number_balance(
    totals: NumberTotals, sides: Sequence[_Side], population: _Side, grid: Grid | None
) -> _Balance:
    each = [_number_difference(side, totals, population, grid) for side in sides]
    means = [mean for mean, _ in each]
    lines = [] if means == [None] * len(means) else [_line(None, means)]
    lines += _missing_line(sides, totals.mass / (totals.mass + totals.missing))
    return _Balance([difference for _, difference in each], lines, 0)


def _number_difference(
    side: _Side, totals: NumberTotals, population: _Side, grid: Grid | None
) -> tuple[float | None, Difference]:
    missing = _missing_difference(side.mass, totals.mass / (totals.mass + totals.missing))
    if not side.mass or not totals.mass:
        return None, missing
    weight = side.share / side.mass
    base = side.values[0]  # so that the mean of equal values is that value, to the last bit
    mean = float(base + weight @ (side.values - base))
    scale = totals.deviation or float(np.abs(side.values - mean).max()) or 1.0
    deviation = scale * float(np.sqrt(weight @ ((side.values - mean) / scale) ** 2))
    difference = float(_standardised(mean - totals.mean, totals.deviation or deviation))
    return difference, replace(
        missing,
        variance_ratio=(deviation / totals.deviation) ** 2 if totals.deviation else None,
        distance=kolmogorov_smirnov(side.on(grid).values, weight, *population.on(grid)),
        correctable_difference=max(abs(difference), missing.correctable_difference or 0.0),
    )


def _missing_share(mass: float) -> float:
    """Return the share that is missing; less than rounding is nothing."""
    return 1.0 - mass if mass < 1 - 1e-12 else 0.0


def _missing_line(sides: Sequence[_Side], their_mass: float) -> list[BalanceLine]:
    """Return the line of the missing values, if it is not balanced."""
    theirs = _missing_share(their_mass)
    each = [float(_share_differences(_missing_share(side.mass), theirs)) for side in sides]
    line = _line(MISSING, each)
    return [line] if line.size > THRESHOLDS.balanced_difference else []


def _missing_difference(mass: float, their_mass: float) -> Difference:
    """Return the difference of the shares of missing values, from the shares of the others.

    Weights can reduce it if the sample has missing values: no weights create one.
    """
    mine, theirs = _missing_share(mass), _missing_share(their_mass)
    size = float(np.abs(_share_differences(mine, theirs))) if mine else None
    return Difference(None, None, mine - theirs, correctable_difference=size)


def _share_differences(mine: ArrayLike, theirs: ArrayLike) -> FloatArray:
    """Return standardised differences of shares; the sample's deviation if theirs is zero."""
    sample, population = np.asarray(mine), np.asarray(theirs)
    variance = population * (1 - population)
    variance = np.where(variance > 0, variance, sample * (1 - sample))
    return _standardised(sample - population, np.sqrt(np.maximum(variance, 0.0)))


def _standardised(difference: ArrayLike, deviation: ArrayLike) -> FloatArray:
    """Return differences in standard deviations: infinite where a difference has none."""
    with np.errstate(all="ignore"):
        return np.where(np.equal(difference, 0), 0.0, np.divide(difference, deviation))


def kolmogorov_smirnov(
    first: FloatArray, first_weight: FloatArray, second: FloatArray, second_weight: FloatArray
) -> float:
    """Return the largest distance between two weighted distribution functions.

    Examples
    --------
    >>> kolmogorov_smirnov(np.array([0.0, 1.0]), np.ones(2), np.array([1.0, 2.0]), np.ones(2))
    0.5
    """
    if not len(first) or not len(second):
        return float("nan")
    values, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    signed = np.concatenate(
        [first_weight / first_weight.sum(), -second_weight / second_weight.sum()]
    )
    return float(np.abs(np.bincount(place, signed, minlength=len(values)).cumsum()).max())


def _category_shares(
    totals: CategoryTotals, sides: Sequence[_Side]
) -> tuple[list[FloatArray], FloatArray]:
    """Return the shares of each category of the sample, then of all others, among all rows."""
    population = np.append(totals.counts, totals.unseen)
    # A category's code is its rank; the last place is that of the unseen categories.
    ranks = np.arange(float(len(totals.counts)))
    shares = [side.counted(ranks, len(population)) for side in sides]
    return shares, population / (population.sum() + totals.missing)


def _category_balance(
    codes: ColumnCodes, column: int, totals: CategoryTotals, sides: Sequence[_Side]
) -> _Balance:
    shares, population = _category_shares(totals, sides)
    each = [_category_difference(share, population) for share in shares]
    limit, n_categories = THRESHOLDS.balanced_difference, len(totals.counts)
    places = np.arange(n_categories + bool(totals.unseen))
    if len(places) == 2:  # their differences are opposite
        places = places[n_categories - 1 : n_categories]
    lines, unlisted = [], 0
    known = [np.abs(values[places]) for values, _ in each if values is not None]
    if known and len(places):
        sizes = np.max(known, axis=0)
        notable = int((sizes > limit).sum())
        unlisted = max(0, notable - MAX_LINES)
        largest = np.argsort(-sizes, kind="stable")[: max(1, notable - unlisted)]
        for place in places[largest].tolist():
            unseen = place == n_categories
            label = NOT_IN_SAMPLE if unseen else codes.format_value(column, float(place))
            values = [None if found is None else float(found[place]) for found, _ in each]
            lines.append(_line(label, values))
    lines += _missing_line(sides, float(population.sum()))
    return _Balance([difference for _, difference in each], lines, unlisted)


def _category_difference(
    share: FloatArray, population: FloatArray
) -> tuple[FloatArray | None, Difference]:
    """Return the standardised difference of each category's share, and that of the column."""
    mass, their_mass = float(share.sum()), float(population.sum())
    missing = _missing_difference(mass, their_mass)
    if not mass or not their_mass:
        return None, missing
    mine, theirs = share / mass, population / their_mass
    seen = population[:-1]
    among_seen = _share_differences(mine[:-1], seen / seen.sum()) if seen.any() else np.inf
    return _share_differences(mine, theirs), replace(
        missing,
        distance=float(np.abs(mine - theirs).sum() / 2),
        correctable_difference=max(
            float(np.abs(among_seen).max()), missing.correctable_difference or 0.0
        ),
    )


def _category_distribution(
    codes: ColumnCodes, column: int, totals: CategoryTotals, sides: Sequence[_Side]
) -> Distribution:
    shares, population = _category_shares(totals, sides)
    importance = np.maximum(population, shares[0])[:-1]
    ranked = np.argsort(-importance, kind="stable")
    groups: list[tuple[str, Any]] = [
        (codes.format_value(column, float(rank)), [rank]) for rank in np.sort(ranked[:MAX_BARS])
    ]
    n_shown = len(groups)
    if n_shown < len(ranked):
        groups.append((OTHER, ranked[MAX_BARS:]))
    if totals.unseen:
        groups.append((NOT_IN_SAMPLE, [len(ranked)]))
    grouped = [
        np.array([share[members].sum() for _, members in groups]) for share in (*shares, population)
    ]
    names = [label for label, _ in groups]
    return _distribution(names, None, grouped, n_special=len(groups) - n_shown)


def _number_distribution(
    codes: ColumnCodes, column: int, sides: Sequence[_Side], population: _Side
) -> Distribution:
    everyone = (*sides, population)
    values = np.concatenate([side.values for side in everyone])
    few = len(np.unique(values[:1000])) <= MAX_BINS  # mostly so many rows show that it is not
    if few and len(distinct := np.unique(values)) <= MAX_BINS:
        labels = _distinct_texts(codes, column, distinct)
        shares = [side.counted(distinct, len(distinct)) for side in everyone]
        return _distribution(labels, None, shares)
    low, high = np.quantile(values, [0.005, 0.995])
    if not high > low:
        low, high = values.min(), values.max()
    edges = np.linspace(low, high, MAX_BINS + 1)
    borders = _distinct_texts(codes, column, edges)
    labels = [f"{a} – {b}" for a, b in pairwise(borders)]
    labels[0], labels[-1] = f"≤ {borders[1]}", f"> {borders[-2]}"
    shares = [side.counted(edges[1:-1], MAX_BINS) for side in everyone]  # the outer bins are open
    return _distribution(labels, tuple(edges.tolist()), shares)


def _distinct_texts(codes: ColumnCodes, column: int, values: FloatArray) -> list[str]:
    """Format distinct values as distinct texts, with all their digits if need be."""
    texts = [codes.format_value(column, float(value)) for value in values]
    if len(set(texts)) == len(texts) or codes.kinds[column] != Kind.NUMBER:
        return texts
    return [f"{float(value):,.15g}" for value in values]


def _distribution(
    labels: list[str],
    edges: tuple[float, ...] | None,
    shares: list[FloatArray],
    *,
    n_special: int = 0,
) -> Distribution:
    """Put the shares of sample, weighted sample (if any) and population together.

    Where they do not sum to one, the rest is missing values.
    """
    missing = [1.0 - float(share.sum()) for share in shares]
    if max(missing) > 1e-9:  # less is rounding
        labels, n_special = [*labels, MISSING], n_special + 1
        shares = [
            np.append(share, max(0.0, gap)) for share, gap in zip(shares, missing, strict=True)
        ]
    sample, *weighted, population = (tuple(share.tolist()) for share in shares)
    after = weighted[0] if weighted else None
    return Distribution(tuple(labels), edges, sample, after, population, n_special)
