"""Each column by itself: how far the sample is from the population, before and after weighting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from unskew.diagnostics.columns import CategoryTotals, NumberTotals
from unskew.diagnostics.diagnosis import (
    NOT_IN_SAMPLE,
    Difference,
    Distribution,
    FeatureBalance,
)
from unskew.numerics.typing import FloatArray
from unskew.population.encode import ColumnCodes
from unskew.population.kinds import Kind

__all__ = ["balance_of", "kolmogorov_smirnov"]

MAX_BINS = 24
MAX_BARS = 20


@dataclass(frozen=True)
class _Side:
    """Values with weights that sum to one over all rows, missing ones included."""

    values: FloatArray
    weight: FloatArray

    @property
    def present(self) -> _Side:
        known = ~np.isnan(self.values)
        return _Side(self.values[known], self.weight[known])

    @property
    def mass(self) -> float:
        return float(self.weight.sum())

    def shares(self, edges_or_codes: FloatArray, *, codes: bool) -> FloatArray:
        known = self.present
        if codes:
            place = np.searchsorted(edges_or_codes, known.values)
            hit = place < len(edges_or_codes)
            hit[hit] = edges_or_codes[place[hit]] == known.values[hit]
            found = np.bincount(place[hit], known.weight[hit], minlength=len(edges_or_codes))
            return found.astype(np.float64)
        inner = edges_or_codes[1:-1]  # the outermost bins are open
        place = np.searchsorted(inner, known.values, side="left")
        found = np.bincount(place, known.weight, minlength=len(edges_or_codes) - 1)
        return found.astype(np.float64)


def balance_of(
    codes: ColumnCodes,
    totals: Sequence[Any],
    sample: FloatArray,
    before: FloatArray,
    after: FloatArray | None,
    drawn: FloatArray,
    drawn_weight: FloatArray,
) -> tuple[FeatureBalance, ...]:
    """Return every column's balance, the most biased first.

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
        Codes and weights of population rows drawn evenly.
    """
    found = []
    for column, name in enumerate(codes.names):
        population = _Side(drawn[:, column], drawn_weight / drawn_weight.sum())
        sides = [
            None if weight is None else _Side(sample[:, column], weight / weight.sum())
            for weight in (before, after)
        ]
        kind: Literal["number", "category", "time"] = "number"
        if isinstance(totals[column], CategoryTotals):
            kind = "category"
            differences, distribution = _category(codes, column, totals[column], sides)
        else:
            kind = "time" if codes.kinds[column] == Kind.TIME else "number"
            differences = [
                None if side is None else _number_difference(side, totals[column], population)
                for side in sides
            ]
            distribution = _number_distribution(codes, column, sides, population)
        assert differences[0] is not None
        found.append(FeatureBalance(name, kind, differences[0], differences[1], distribution))
    return tuple(sorted(found, key=_severity))


def _severity(feature: FeatureBalance) -> tuple[float, float]:
    mean = abs(feature.before.mean) if feature.before.mean is not None else 0.0
    return -mean, -(feature.before.distance or 0.0)


def _number_difference(side: _Side, totals: NumberTotals, population: _Side) -> Difference:
    known = side.present
    share_missing = totals.missing / (totals.mass + totals.missing)
    missing = 1.0 - known.mass - share_missing
    of_missing = _missing_difference(missing, share_missing)
    if not known.mass or not totals.mass:
        return Difference(None, None, None, missing, mendable=of_missing)
    weight = known.weight / known.mass
    base = known.values[0]  # so that the mean of equal values is that value, to the last bit
    mean = float(base + weight @ (known.values - base))
    scale = totals.deviation or float(np.abs(known.values - mean).max()) or 1.0
    deviation = scale * float(np.sqrt(weight @ ((known.values - mean) / scale) ** 2))
    difference = _standardised(mean - totals.mean, totals.deviation or deviation)
    return Difference(
        mean=difference,
        variance_ratio=(deviation / totals.deviation) ** 2 if totals.deviation else None,
        distance=kolmogorov_smirnov(
            known.values, weight, population.present.values, population.present.weight
        ),
        missing=missing,
        mendable=max(abs(difference), of_missing or 0.0),
    )


def _missing_difference(difference: float, population: float) -> float | None:
    """Return the standardised difference of the shares of missing values, without its sign.

    None if the sample has no missing value: what it lacks no weights bring.
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


def _category(
    codes: ColumnCodes, column: int, totals: CategoryTotals, sides: Sequence[_Side | None]
) -> tuple[list[Difference | None], Distribution]:
    n_categories = len(totals.counts)
    labels = [codes.format_value(column, float(rank)) for rank in range(n_categories)]
    all_mass = float(totals.counts.sum() + totals.unseen + totals.missing)
    population = np.append(totals.counts, totals.unseen) / all_mass
    ranks = np.arange(n_categories, dtype=np.float64)
    shares = [
        None if side is None else np.append(side.shares(ranks, codes=True), 0.0) for side in sides
    ]
    differences = [
        None if share is None else _category_difference(share, population, [*labels, NOT_IN_SAMPLE])
        for share in shares
    ]
    first = shares[0]
    assert first is not None
    importance = np.maximum(population[:-1], first[:-1])
    shown = np.sort(np.argsort(-importance, kind="stable")[:MAX_BARS])
    rest = np.setdiff1d(np.arange(n_categories), shown)
    groups: list[tuple[str, Any]] = [(labels[rank], [rank]) for rank in shown]
    if len(rest):
        groups.append(("(other)", rest))
    if totals.unseen:
        groups.append((NOT_IN_SAMPLE, [n_categories]))
    texts = [label for label, _ in groups]

    def grouped(share: FloatArray) -> list[float]:
        return [float(share[members].sum()) for _, members in groups]

    columns = [None if share is None else grouped(share) for share in shares]
    population_bars = grouped(population)
    missing = [None if side is None else 1.0 - side.present.mass for side in sides]
    return differences, _with_missing(
        texts, None, columns, population_bars, missing, totals.missing / all_mass
    )


def _category_difference(
    share: FloatArray, population: FloatArray, labels: Sequence[str]
) -> Difference:
    mass, their_mass = float(share.sum()), float(population.sum())
    missing = their_mass - mass
    of_missing = _missing_difference(missing, 1.0 - their_mass)
    if not mass or not their_mass:
        return Difference(None, None, None, missing, mendable=of_missing)
    mine, theirs = share / mass, population / their_mass
    each = _share_differences(mine, theirs)
    worst = int(np.argmax(np.abs(each)))
    own = population[:-1]  # the last one is what the sample lacks
    within = np.abs(_share_differences(mine[:-1], own / own.sum())).max() if own.any() else np.inf
    return Difference(
        mean=float(each[worst]),
        variance_ratio=None,
        distance=float(np.abs(mine - theirs).sum() / 2),
        missing=missing,
        category=labels[worst],
        mendable=max(float(within), of_missing or 0.0),
    )


def _share_differences(mine: FloatArray, theirs: FloatArray) -> FloatArray:
    variances = theirs * (1 - theirs)
    variances = np.where(variances > 0, variances, mine * (1 - mine))
    pairs = zip(mine - theirs, np.sqrt(np.maximum(variances, 0.0)), strict=True)
    return np.array([_standardised(float(d), float(v)) for d, v in pairs])


def _number_distribution(
    codes: ColumnCodes, column: int, sides: Sequence[_Side | None], population: _Side
) -> Distribution:
    known = [side.present for side in (*sides, population) if side is not None]
    values = np.concatenate([side.values for side in known])
    missing = [None if side is None else 1.0 - side.present.mass for side in sides]
    their_missing = 1.0 - population.present.mass
    if not len(values):
        empty: list[list[float] | None] = [None if side is None else [] for side in sides]
        return _with_missing([], None, empty, [], missing, their_missing)
    distinct = np.unique(values)
    if len(distinct) <= MAX_BINS:
        labels = _told(codes, column, distinct)
        shares = [None if s is None else s.shares(distinct, codes=True).tolist() for s in sides]
        bars = population.shares(distinct, codes=True).tolist()
        return _with_missing(labels, None, shares, bars, missing, their_missing)
    low, high = np.quantile(values, [0.005, 0.995])
    if not high > low:
        low, high = distinct[0], distinct[-1]
    edges = np.linspace(low, high, MAX_BINS + 1)
    told = _told(codes, column, edges)
    labels = [f"{a} – {b}" for a, b in pairwise(told)]
    labels[0], labels[-1] = f"≤ {told[1]}", f"> {told[-2]}"
    shares = [None if side is None else side.shares(edges, codes=False).tolist() for side in sides]
    bars = population.shares(edges, codes=False).tolist()
    return _with_missing(labels, tuple(edges.tolist()), shares, bars, missing, their_missing)


def _told(codes: ColumnCodes, column: int, values: FloatArray) -> list[str]:
    """Write values so that no two read alike, if need be with all their digits."""
    told = [codes.format_value(column, float(value)) for value in values]
    if len(set(told)) == len(told) or codes.kinds[column] != Kind.NUMBER:
        return told
    return [f"{float(value):,.15g}" for value in values]


def _with_missing(
    labels: list[str],
    edges: tuple[float, ...] | None,
    shares: Sequence[list[float] | None],
    population: list[float],
    missing: Sequence[float | None],
    their_missing: float,
) -> Distribution:
    """Add a last bar for missing values where there are any."""
    if their_missing > 1e-12 or (missing[0] or 0.0) > 1e-12:
        labels = [*labels, "(missing)"]
        population = [*population, their_missing]
        shares = [
            None if share is None else [*share, float(gap or 0.0)]
            for share, gap in zip(shares, missing, strict=True)
        ]
    before, after = shares
    assert before is not None
    return Distribution(
        labels=tuple(labels),
        edges=edges,
        sample=tuple(before),
        weighted=None if after is None else tuple(after),
        population=tuple(population),
    )
