"""The balance of each column: how far the sample is from the population, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from unskew.diagnostics.columns import CategoryTotals, NumberTotals
from unskew.diagnostics.diagnosis import (
    MISSING,
    NOT_IN_SAMPLE,
    OTHER,
    Difference,
    Distribution,
    FeatureBalance,
)
from unskew.numerics.typing import FloatArray
from unskew.population.encode import ColumnCodes
from unskew.population.kinds import Kind

__all__ = ["kolmogorov_smirnov", "measure_balance"]

MAX_BINS = 24
MAX_BARS = 20


@dataclass(frozen=True)
class _Side:
    """Values with weights that sum to one over all rows, including those of missing values."""

    values: FloatArray
    weight: FloatArray

    @property
    def present(self) -> _Side:
        known = ~np.isnan(self.values)
        return _Side(self.values[known], self.weight[known])

    def shares_of_values(self, values: FloatArray) -> FloatArray:
        known = self.present
        place = np.searchsorted(values, known.values)
        hit = place < len(values)
        hit[hit] = values[place[hit]] == known.values[hit]
        found = np.bincount(place[hit], known.weight[hit], minlength=len(values))
        return found.astype(np.float64)

    def shares_of_bins(self, edges: FloatArray) -> FloatArray:
        known = self.present
        place = np.searchsorted(edges[1:-1], known.values)  # the outermost bins are open
        return np.bincount(place, known.weight, minlength=len(edges) - 1).astype(np.float64)


def measure_balance(
    codes: ColumnCodes,
    totals: Sequence[Any],
    sample: FloatArray,
    before: FloatArray,
    after: FloatArray | None,
    drawn: FloatArray,
    drawn_weight: FloatArray,
) -> tuple[FeatureBalance, ...]:
    """Return the balance of every column, the most biased first.

    Parameters
    ----------
    codes : ColumnCodes
    totals : sequence of NumberTotals or CategoryTotals
        Counted over the whole population.
    sample : ndarray of shape (m, d)
        Codes of the sample.
    before, after : ndarray of shape (m,)
        Weights of the sample's rows.
    drawn, drawn_weight : ndarray
        Codes and weights of population rows drawn uniformly at random.
    """
    found = []
    for column, name in enumerate(codes.names):
        sides = [
            _Side(sample[:, column], weight / weight.sum())
            for weight in ([before] if after is None else [before, after])
        ]
        counted = totals[column]
        kind: Literal["number", "category", "time"]
        if isinstance(counted, CategoryTotals):
            kind = "category"
            differences, distribution = _category_balance(codes, column, counted, sides)
        else:
            kind = "time" if codes.kinds[column] == Kind.TIME else "number"
            population = _Side(drawn[:, column], drawn_weight / drawn_weight.sum())
            differences = [_number_difference(side, counted, population) for side in sides]
            distribution = _number_distribution(codes, column, sides, population)
        weighted = None if after is None else differences[1]
        found.append(FeatureBalance(name, kind, differences[0], weighted, distribution))
    return tuple(sorted(found, key=_severity))


def _severity(feature: FeatureBalance) -> tuple[float, float]:
    return -abs(feature.before.mean or 0.0), -(feature.before.distance or 0.0)


def _number_difference(side: _Side, totals: NumberTotals, population: _Side) -> Difference:
    known, theirs = side.present, population.present
    mass = float(known.weight.sum())
    share_missing = totals.missing / (totals.mass + totals.missing)
    missing = 1.0 - mass - share_missing
    of_missing = _missing_difference(missing, share_missing)
    if not mass or not totals.mass:
        return Difference(None, None, None, missing, correctable_difference=of_missing)
    weight = known.weight / mass
    base = known.values[0]  # so that the mean of equal values is that value, to the last bit
    mean = float(base + weight @ (known.values - base))
    scale = totals.deviation or float(np.abs(known.values - mean).max()) or 1.0
    deviation = scale * float(np.sqrt(weight @ ((known.values - mean) / scale) ** 2))
    difference = _standardised(mean - totals.mean, totals.deviation or deviation)
    return Difference(
        mean=difference,
        variance_ratio=(deviation / totals.deviation) ** 2 if totals.deviation else None,
        distance=kolmogorov_smirnov(known.values, weight, theirs.values, theirs.weight),
        missing=missing,
        correctable_difference=max(abs(difference), of_missing or 0.0),
    )


def _missing_difference(difference: float, population: float) -> float | None:
    """Return the absolute standardised difference of the shares of missing values.

    None if the sample has no missing value: no weights create one.
    """
    sample = population + difference
    if sample <= 1e-12:
        return None
    share = population if population > 0 else sample
    return abs(_standardised(difference, float(np.sqrt(share * max(1 - share, 0.0)))))


def _standardised(difference: float, deviation: float) -> float:
    if deviation > 0:
        return difference / deviation
    return float(np.copysign(np.inf, difference)) if difference else 0.0


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


def _category_balance(
    codes: ColumnCodes, column: int, totals: CategoryTotals, sides: Sequence[_Side]
) -> tuple[list[Difference], Distribution]:
    n_categories = len(totals.counts)
    labels = [codes.format_value(column, float(rank)) for rank in range(n_categories)]
    population = np.append(totals.counts, totals.unseen)
    population = population / (population.sum() + totals.missing)
    ranks = np.arange(n_categories, dtype=np.float64)
    shares = [np.append(side.shares_of_values(ranks), 0.0) for side in sides]
    differences = [
        _category_difference(share, population, [*labels, NOT_IN_SAMPLE]) for share in shares
    ]
    importance = np.maximum(population[:-1], shares[0][:-1])
    shown = np.sort(np.argsort(-importance, kind="stable")[:MAX_BARS])
    groups: list[tuple[str, Any]] = [(labels[rank], [rank]) for rank in shown]
    if len(shown) < n_categories:
        groups.append((OTHER, np.setdiff1d(np.arange(n_categories), shown)))
    if totals.unseen:
        groups.append((NOT_IN_SAMPLE, [n_categories]))
    distribution = _distribution(
        [label for label, _ in groups],
        None,
        [
            np.array([share[members].sum() for _, members in groups])
            for share in (*shares, population)
        ],
        n_special=len(groups) - len(shown),
    )
    return differences, distribution


def _category_difference(
    share: FloatArray, population: FloatArray, labels: Sequence[str]
) -> Difference:
    mass, their_mass = float(share.sum()), float(population.sum())
    missing = their_mass - mass
    of_missing = _missing_difference(missing, 1.0 - their_mass)
    if not mass or not their_mass:
        return Difference(None, None, None, missing, correctable_difference=of_missing)
    mine, theirs = share / mass, population / their_mass
    each = _share_differences(mine, theirs)
    worst = int(np.argmax(np.abs(each)))
    seen = population[:-1]  # the last share is that of the unseen categories
    among_seen = (
        np.abs(_share_differences(mine[:-1], seen / seen.sum())).max() if seen.any() else np.inf
    )
    return Difference(
        mean=float(each[worst]),
        variance_ratio=None,
        distance=float(np.abs(mine - theirs).sum() / 2),
        missing=missing,
        category=labels[worst],
        correctable_difference=max(float(among_seen), of_missing or 0.0),
    )


def _share_differences(mine: FloatArray, theirs: FloatArray) -> FloatArray:
    variances = theirs * (1 - theirs)
    variances = np.where(variances > 0, variances, mine * (1 - mine))
    pairs = zip(mine - theirs, np.sqrt(np.maximum(variances, 0.0)), strict=True)
    return np.array([_standardised(float(d), float(v)) for d, v in pairs])


def _number_distribution(
    codes: ColumnCodes, column: int, sides: Sequence[_Side], population: _Side
) -> Distribution:
    everyone = (*sides, population)
    values = np.concatenate([side.present.values for side in everyone])
    few = len(np.unique(values[:1000])) <= MAX_BINS  # mostly so many rows show that it is not
    if few and len(distinct := np.unique(values)) <= MAX_BINS:
        labels = _distinct_texts(codes, column, distinct)
        return _distribution(labels, None, [side.shares_of_values(distinct) for side in everyone])
    low, high = np.quantile(values, [0.005, 0.995])
    if not high > low:
        low, high = values.min(), values.max()
    edges = np.linspace(low, high, MAX_BINS + 1)
    borders = _distinct_texts(codes, column, edges)
    labels = [f"{a} – {b}" for a, b in pairwise(borders)]
    labels[0], labels[-1] = f"≤ {borders[1]}", f"> {borders[-2]}"
    shares = [side.shares_of_bins(edges) for side in everyone]
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
    return Distribution(
        labels=tuple(labels),
        edges=edges,
        sample=sample,
        weighted=weighted[0] if weighted else None,
        population=population,
        n_special=n_special,
    )
