r"""The balance of each column: how far the sample is from the population, before and after.

A number is compared by its mean and a category by its share: the sample's less the population's, in
standard deviations of the population, :math:`(\bar x_S - \bar x_U) / s_U`. Means, deviations,
shares and missing values of the population are exact, from one pass over it
(:class:`ColumnTotals`); distances of distributions are from rows drawn from it. Of margins only
what they know is compared: shares of their levels, and means in standard deviations of the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unskew.diagnostics.diagnosis import (
    MISSING,
    NOT_IN_SAMPLE,
    OTHER,
    THRESHOLDS,
    BalanceLine,
    Difference,
    Distribution,
    FeatureBalance,
)
from unskew.errors import InputError
from unskew.numerics.grids import Grid, common_grid
from unskew.numerics.typing import FloatArray
from unskew.population.feature_rules import FeatureRules
from unskew.population.feature_sums import FeatureSums
from unskew.population.margins import Margins
from unskew.population.summaries import Summary
from unskew.rows.design import Design, Levels, Term
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind
from unskew.rows.sample import Sample
from unskew.rows.tables import RowBlock

MAX_BINS = 24
MAX_BARS = 20
MAX_LINES = 20
"""Categories of a column that are listed with their differences."""


class ColumnTotal(NamedTuple):
    """The totals of one column over the population.

    Attributes
    ----------
    missing, mass : float
        The total weight of the rows in which the value is missing, and of the others.
    mean, deviation : float
        Of numbers and times; NaN if every value is missing. The divisor of the variance is the
        mass.
    counts : ndarray, optional
        Of categories: the mass of each of the sample's, then of all others.
    """

    missing: float
    mass: float
    mean: float = float("nan")
    deviation: float = float("nan")
    counts: FloatArray | None = None

    @property
    def present(self) -> float:
        """The share of the population in which the value is present."""
        return self.mass / (self.mass + self.missing)


class ColumnTotals(Summary):
    """Totals of every column in one pass.

    Attributes
    ----------
    rows : int
    sums : ndarray
        The sums of each column, one column after the other. Of categories, the mass of missing
        values, of unseen categories, and of each of the sample's. Of numbers, the mass of missing
        values and of the others, and the sums of distances and squared distances from the sample's
        mean, in units of its standard deviation: columns far from zero keep their digits, and large
        ones their squares.
    """

    shared = frozenset({"codes", "_scaling", "_borders"})
    added = ("rows", "sums")

    def __init__(self, codes: ColumnCodes, sample: FloatArray) -> None:
        self.codes = codes
        self._scaling = [
            None if codes.counts_categories(position) else centre_and_scale(values)
            for position, values in enumerate(sample.T)
        ]
        widths = [
            2 + codes.n_categories(position) if scaling is None else 4
            for position, scaling in enumerate(self._scaling)
        ]
        self._borders = np.cumsum(widths)[:-1]
        self.rows = 0
        self.sums = np.zeros(sum(widths))

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block."""
        self.rows += len(rows)
        mass = float(rows.weight.sum())
        views = np.split(self.sums, self._borders)
        for position, (sums, scaling) in enumerate(zip(views, self._scaling, strict=True)):
            column = rows.batch.column(position)
            values = self.codes.encode_column(column, position, side="population")
            if scaling is None:
                places = np.where(np.isnan(values), -2.0, values).astype(np.int64) + 2
                sums += np.bincount(places, weights=rows.weight, minlength=len(sums))
                continue
            with np.errstate(over="ignore", invalid="ignore"):  # looked for at the end
                sums += _sums_of_numbers(values, rows.weight, mass, *scaling)

    @property
    def columns(self) -> list[ColumnTotal]:
        """The totals of each column."""
        found = []
        parts = np.split(self.sums, self._borders)
        for name, sums, scaling in zip(self.codes.names, parts, self._scaling, strict=True):
            if not np.isfinite(sums).all():
                raise InputError(
                    f"Column '{name}' of the population holds infinite values, or values too large "
                    "to add up. Replace them, or rescale the column."
                )
            missing, mass = float(sums[0]), float(sums[1])
            if scaling is None:
                counts = np.append(sums[2:], sums[1])
                found.append(ColumnTotal(missing, float(counts.sum()), counts=counts))
            elif not mass:
                found.append(ColumnTotal(missing, 0.0))
            else:
                centre, scale = scaling
                mean = float(sums[2]) / mass
                deviation = float(np.sqrt(max(float(sums[3]) / mass - mean**2, 0.0)))
                found.append(ColumnTotal(missing, mass, centre + scale * mean, scale * deviation))
        return found


def _sums_of_numbers(
    values: FloatArray, weight: FloatArray, total: float, centre: float, scale: float
) -> FloatArray:
    distances = np.subtract(values, centre, dtype=np.float64)
    distances /= scale
    weighted, mass = weight * distances, total
    if np.isnan(weighted.sum()):  # one sum shows whether anything is missing
        present = ~np.isnan(distances)
        distances, mass = distances[present], float(weight[present].sum())
        weighted = weight[present] * distances
    return np.array([total - mass, mass, weighted.sum(), weighted @ distances])


def centre_and_scale(values: FloatArray) -> tuple[float, float]:
    """Return the mean and the standard deviation of what is present; 0 and 1 if that is nothing."""
    present = values[~np.isnan(values)]
    if not len(present):
        return 0.0, 1.0
    largest = float(np.abs(present).max()) or 1.0  # so that no square overflows
    spread = float((present / largest).std()) * largest
    return float((present / largest).mean()) * largest, spread if spread > 0 else 1.0


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
    totals: Sequence[ColumnTotal],
    drawn: FloatArray,
    drawn_weight: FloatArray,
) -> tuple[FeatureBalance, ...]:
    """Return the balance of every column, the most biased first.

    Parameters
    ----------
    sample : Sample
    after : ndarray of shape (m,) or None
        Weights of the sample's rows; those before are its design weights.
    totals : sequence of ColumnTotal
        Counted over the whole population.
    drawn, drawn_weight : ndarray
        Codes and weights of population rows drawn uniformly at random.
    """
    codes, found = sample.codes, []
    weights = [weight for weight in (sample.design, after) if weight is not None]
    for column, (name, total) in enumerate(zip(codes.names, totals, strict=True)):
        sides = [_side(sample.values[:, column], weight) for weight in weights]
        kind: Literal["number", "category", "time"]
        if total.counts is not None:
            kind = "category"
            measured = _category_balance(codes, column, total.counts, total.missing, sides)
        else:
            kind = "time" if codes.kinds[column] == Kind.TIME else "number"
            population = _side(drawn[:, column], drawn_weight)
            grid = common_grid(sample.values[:, column], drawn[:, column])
            measured = _number_balance(codes, column, total, sides, population, grid)
        found.append(_feature(name, kind, *measured))
    return tuple(sorted(found, key=_severity))


def _feature(
    name: str,
    kind: Literal["number", "category", "time"],
    lines: Sequence[BalanceLine],
    unlisted: int,
    differences: Sequence[Difference],
    distribution: Distribution,
) -> FeatureBalance:
    """Return the balance of a column: differences before and, where there are weights, after."""
    ordered = tuple(sorted(lines, key=lambda line: -abs(line.before or 0.0)))
    before, after = (*differences, None)[:2]
    assert before is not None
    return FeatureBalance(name, kind, ordered, unlisted, before, after, distribution)


def _severity(feature: FeatureBalance) -> tuple[float, float]:
    largest = max((abs(line.before or 0.0) for line in feature.lines), default=0.0)
    return -largest, -(feature.before.distance or 0.0)


_Measured = tuple[list[BalanceLine], int, list[Difference], Distribution]
"""Lines of a column, how many more there are, its differences, its distribution."""


def _line(category: str | None, differences: Sequence[float | None]) -> BalanceLine:
    return BalanceLine(category, *(*differences, None)[:2])


def _share_lines(
    label: Callable[[int], str | None],
    each: Sequence[FloatArray | None],
    n_places: int,
    one_of_two: int = 1,
) -> tuple[list[BalanceLine], int]:
    """Return the lines of shares that are not balanced, or else the largest, and how many more."""
    places = np.arange(n_places)
    if n_places == 2:  # their differences are opposite
        places = places[[one_of_two]]
    known = [np.abs(values[places]) for values in each if values is not None]
    if not known or not len(places):
        return [], 0
    sizes = np.max(known, axis=0)
    notable = int((sizes > THRESHOLDS.balanced_difference).sum())
    largest = np.argsort(-sizes, kind="stable")[: max(1, min(notable, MAX_LINES))]
    lines = [
        _line(label(place), [None if values is None else float(values[place]) for values in each])
        for place in places[largest].tolist()
    ]
    return lines, max(0, notable - MAX_LINES)


def _number_balance(
    codes: ColumnCodes,
    column: int,
    total: ColumnTotal,
    sides: Sequence[_Side],
    population: _Side,
    grid: Grid | None,
) -> _Measured:
    each = [_number_difference(side, total, population, grid) for side in sides]
    means = [mean for mean, _ in each]
    lines = [] if means == [None] * len(means) else [_line(None, means)]
    lines += _missing_line(sides, total.present)
    on_grid = [side.on(grid) for side in (*sides, population)]
    distribution = _number_distribution(codes, column, on_grid)
    return lines, 0, [difference for _, difference in each], distribution


def _number_difference(
    side: _Side, total: ColumnTotal, population: _Side, grid: Grid | None
) -> tuple[float | None, Difference]:
    missing = _missing_difference(side.mass, total.present)
    if not side.mass or not total.mass:
        return None, missing
    weight = side.share / side.mass
    base = side.values[0]  # so that the mean of equal values is that value, to the last bit
    mean = float(base + weight @ (side.values - base))
    scale = total.deviation or float(np.abs(side.values - mean).max()) or 1.0
    deviation = scale * float(np.sqrt(weight @ ((side.values - mean) / scale) ** 2))
    difference = float(_standardised(mean - total.mean, total.deviation or deviation))
    return difference, replace(
        missing,
        variance_ratio=(deviation / total.deviation) ** 2 if total.deviation else None,
        distance=kolmogorov_smirnov(side.on(grid).values, weight, *population.on(grid)),
        correctable_difference=max(abs(difference), missing.correctable_difference or 0.0),
    )


def _missing_share(mass: float) -> float:
    """Return the share that is missing; less than rounding is nothing."""
    return 1.0 - mass if mass < 1 - 1e-12 else 0.0


def _missing_line(sides: Sequence[_Side], present: float) -> list[BalanceLine]:
    """Return the line of the missing values, if it is not balanced."""
    missing = _missing_share(present)
    each = [float(_share_differences(_missing_share(side.mass), missing)) for side in sides]
    line = _line(MISSING, each)
    return [line] if line.size > THRESHOLDS.balanced_difference else []


def _missing_difference(mass: float, present: float) -> Difference:
    """Return the difference of the shares of missing values, from the shares of the others.

    Weights can reduce it if the sample has missing values: no weights create one.
    """
    sample, population = _missing_share(mass), _missing_share(present)
    size = float(np.abs(_share_differences(sample, population))) if sample else None
    return Difference(None, None, sample - population, correctable_difference=size)


def _share_differences(in_sample: ArrayLike, in_population: ArrayLike) -> FloatArray:
    """Return standardised differences of shares; the sample's deviation if theirs is zero."""
    sample, population = np.asarray(in_sample), np.asarray(in_population)
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


def _category_balance(
    codes: ColumnCodes, column: int, counts: FloatArray, missing: float, sides: Sequence[_Side]
) -> _Measured:
    """Compare the shares of each category of the sample, then of all others."""
    population = counts / (counts.sum() + missing)
    n_categories = len(counts) - 1
    # A category's code is its rank; the last place is that of the unseen categories.
    ranks = np.arange(float(n_categories))
    shares = [side.counted(ranks, len(counts)) for side in sides]
    each = [_category_difference(share, population) for share in shares]

    def label(place: int) -> str:
        unseen = place == n_categories
        return NOT_IN_SAMPLE if unseen else codes.format_value(column, float(place))

    n_places = n_categories + bool(counts[-1])
    lines, unlisted = _share_lines(label, [one for one, _ in each], n_places, n_categories - 1)
    lines += _missing_line(sides, float(population.sum()))
    ranked = np.argsort(-np.maximum(population, shares[0])[:-1], kind="stable")
    groups: list[tuple[str, Any]] = [(label(rank), [rank]) for rank in np.sort(ranked[:MAX_BARS])]
    n_shown = len(groups)
    if n_shown < len(ranked):
        groups.append((OTHER, ranked[MAX_BARS:]))
    if counts[-1]:
        groups.append((NOT_IN_SAMPLE, [n_categories]))
    grouped = [
        np.array([share[members].sum() for _, members in groups]) for share in (*shares, population)
    ]
    names = [name for name, _ in groups]
    distribution = _distribution(names, None, grouped, n_special=len(groups) - n_shown)
    return lines, unlisted, [difference for _, difference in each], distribution


def _category_difference(
    share: FloatArray, population: FloatArray
) -> tuple[FloatArray | None, Difference]:
    """Return the standardised difference of each category's share, and that of the column."""
    mass, present = float(share.sum()), float(population.sum())
    missing = _missing_difference(mass, present)
    if not mass or not present:
        return None, missing
    in_sample, in_population = share / mass, population / present
    seen = population[:-1]
    among_seen = _share_differences(in_sample[:-1], seen / seen.sum()) if seen.any() else np.inf
    return _share_differences(in_sample, in_population), replace(
        missing,
        distance=float(np.abs(in_sample - in_population).sum() / 2),
        correctable_difference=max(
            float(np.abs(among_seen).max()), missing.correctable_difference or 0.0
        ),
    )


def _number_distribution(
    codes: ColumnCodes, column: int, everyone: Sequence[_Side]
) -> Distribution:
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


def measure_margins(
    sample: Sample, margins: Margins, after: FloatArray | None
) -> tuple[tuple[FeatureBalance, ...], float]:
    """Return the balance of each margin, the most biased first, and the share that is uncovered.

    Differences of shares are in standard deviations of the population, those of means in standard
    deviations of the sample: that of the population is not known.
    """
    terms = FeatureRules(sample).of_margins(margins.about, "auto")
    asked = margins.reduce(FeatureSums(Design(sample.codes, terms)))
    values = asked.features.of_codes(sample.values, sample.batch)
    targets = asked.sums[0] / asked.mass[0]
    weights = [one / one.sum() for one in (sample.design, after) if one is not None]
    found, begin = [], 0
    for term in terms:
        own = slice(begin, begin + len(term.names))
        begin += len(term.names)
        columns = asked.features.columns_of(term)
        kind: Literal["number", "category"] = "category" if isinstance(term, Levels) else "number"
        measured = _margin_balance(columns, term, values[:, own], targets[own], weights)
        found.append(_feature(" × ".join(columns), kind, *measured))
    uncovered = float(asked.uncovered / (asked.mass.sum() + asked.uncovered))
    return tuple(sorted(found, key=_severity)), uncovered


def _margin_balance(
    columns: Sequence[str],
    term: Term,
    values: FloatArray,
    targets: FloatArray,
    weights: list[FloatArray],
) -> _Measured:
    means = [weight @ values for weight in weights]
    if not isinstance(term, Levels):
        deviation = np.sqrt(weights[0] @ (values - means[0]) ** 2)
        each = [_standardised(mean - targets, deviation) for mean in means]
        differences = [Difference(None, None, 0.0, float(np.abs(one).max())) for one in each]
        nothing = Distribution((), None, (), None, ())  # of a mean alone, none is known
        return [_line(None, [float(one[0]) for one in each])], 0, differences, nothing
    each = [_share_differences(mean, targets) for mean in means]
    labels = [_level(name, columns) for name in term.names]
    lines, unlisted = _share_lines(labels.__getitem__, each, len(labels))
    distances = [float(np.abs(mean - targets).sum() / 2) for mean in means]
    differences = [
        Difference(None, distance, 0.0, float(np.abs(one).max()))
        for distance, one in zip(distances, each, strict=True)
    ]
    return lines, unlisted, differences, _distribution(labels, None, [*means, targets])


def _level(name: str, columns: Sequence[str]) -> str:
    """Return the levels in the name of a feature: "a=x, b=u" is "x, u"."""
    for place, column in enumerate(columns):
        before = ", " if place else ""
        name = name.replace(f"{before}{column}=", before, 1)
    return name
