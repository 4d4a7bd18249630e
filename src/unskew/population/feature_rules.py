"""Which features of the columns to ask for, learned from the sample before the pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.margin_levels import MarginLevels
from unskew.population.summaries import About
from unskew.rows.design import (
    MAX_CATEGORIES,
    Bands,
    Curve,
    Function,
    Grouping,
    Levels,
    Missing,
    Number,
    Product,
    Term,
    ValueGroups,
    combined,
    distinct,
)
from unskew.rows.sample import Sample

Feature = str | int | Sequence[str | int] | Callable[[Any], Any]
Features = Literal["auto", "means", "margins"] | Sequence[Feature]

N_BANDS = 5
KNOTS = (0.2, 0.4, 0.6, 0.8)
MAX_CANDIDATES = 1000
ROWS_PER_FEATURE = 10
"""A feature that is chosen, not asked for, has at least this many sample rows."""
MAX_LEVELS_OF_PAIRS = 8
"""Pairs are tried of columns with at most this many groups."""


class Candidates(NamedTuple):
    """What may be asked for: terms of single columns, and further ones to choose among."""

    base: list[Term]
    further: list[Term]
    whole: list[Term]
    """All levels of the columns of whose levels the base has the rarest as one."""


class FeatureRules:
    """Learns features from a sample.

    Parameters
    ----------
    sample : Sample
        With rows in an order that does not depend on how they were shuffled.
    """

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.codes, self.values = sample.codes, sample.values
        self.counted = sample.design > 0

    def is_category(self, position: int) -> bool:
        """Whether a column holds categories."""
        return self.codes.counts_categories(position)

    def distinct_codes(self, position: int) -> FloatArray:
        """Return the codes of a column's values, sorted; a missing value last."""
        if not self.is_category(position) or not self.counted.all():
            return np.unique(self.values[self.counted, position])
        gap = [np.nan] if self.codes.has_missing[position] else []
        return np.append(self.codes.category_codes(position), gap)

    def means(self, most: int | None = None) -> list[Term]:
        """Return the mean of each number, and the share of each category and of missing values.

        A column with more categories than ``most``, if given, has one group of the rarest.
        """
        return [term for p in range(len(self.codes.names)) for term in self.column(p, most)]

    def margins(self) -> list[Term]:
        """Return the shares of categories and of bands of numbers."""
        groupings = [self.grouping(place) for place in range(len(self.codes.names))]
        return [self.levels((place,), (one,)) for place, one in enumerate(groupings)]

    def listed(self, features: Sequence[Feature]) -> list[Term]:
        """Return the features that a caller lists."""
        terms: list[Term] = []
        for feature in features:
            if callable(feature):
                function = Function(feature, self.sample.form, tuple(range(len(self.codes.names))))
                width = function.of(self.values, self.sample.batch).shape[1]
                name = getattr(feature, "__name__", "function")
                function.names = (
                    [name] if width == 1 else [f"{name}[{place}]" for place in range(width)]
                )
                terms.append(function)
            elif isinstance(feature, str | int):
                terms += self.column(self.position(feature))
            else:
                terms.append(self.product(*(self.position(column) for column in feature)))
        if not terms:
            raise ParameterError("features is an empty list; name columns, pairs or functions.")
        return terms

    def of_margins(self, about: About, features: Features) -> list[Term]:
        """Return features that margins can answer: all that they know, or those that are listed."""
        known: dict[frozenset[Any], MarginLevels] = {
            frozenset(one.columns): one for one in about.levels
        }
        numbers = [key for key in about.margins or () if isinstance(key, str)]
        numbers = [name for name in numbers if frozenset([name]) not in known]
        if isinstance(features, str):
            terms: list[Term] = [self.margin_levels(one) for one in about.levels]
            wanted = [] if features == "margins" else numbers
            return terms + [self.known_number(name) for name in wanted]
        terms = []
        for feature in features:
            names = [feature] if isinstance(feature, str | int) else feature
            key = frozenset[Any]() if callable(names) else frozenset(names)
            if key in known:
                terms.append(self.margin_levels(known[key]))
            elif feature in numbers:
                terms.append(self.known_number(str(feature)))
            else:
                terms += self.listed([feature])
        return terms

    def known_number(self, name: str) -> Term:
        """Return the mean of a column whose total is known."""
        term, *gaps = self.column(self.position(name))
        if gaps:
            count = int(np.isnan(self.values[:, term.positions[0]]).sum())
            raise InputError(
                f"{count} sample rows have no value in column '{name}', and margins say nothing of "
                "missing values. Fill them in, or leave these rows out."
            )
        if not isinstance(term, Number):
            raise InputError(
                f"Margins have a mean or total of column '{name}', which holds text or categories "
                "in the sample. Convert it to numbers, or give counts of its levels."
            )
        return term

    def margin_levels(self, known: MarginLevels) -> Levels:
        """Return the levels of a margin that the sample has."""
        positions = tuple(self.position(name) for name in known.columns)
        codes = np.full((len(known.levels), len(self.codes.names)), np.nan)
        groupings: list[Grouping] = []
        for position, name in zip(positions, known.columns, strict=True):
            column = known.rows[name].combine_chunks()
            codes[:, position] = self.codes.encode_column(column, position, side="population")
            own = np.unique(np.append(self.distinct_codes(position), codes[:, position]))
            groupings.append(
                known.bands.get(name) or ValueGroups(own, np.arange(len(own)), [""] * len(own))
            )
        combinations = combined(codes, positions, groupings)
        own_combinations = self._combinations(positions, groupings)
        # In the order of the sample's own levels, so that rows and margins give the same weights.
        order = np.argsort(combinations, kind="stable")
        seen = known.groups[order][np.isin(combinations[order], own_combinations)]
        present = list(dict.fromkeys(seen.tolist()))
        place = {group: feature for feature, group in enumerate(present)}
        feature_of = np.array([place.get(group, -1) for group in known.groups.tolist()])
        labels = known.group_labels
        names = [
            ", ".join(f"{c}={part}" for c, part in zip(known.columns, labels[int(g)], strict=True))
            for g in present
        ]
        return Levels(
            positions, names, tuple(groupings), combinations[order], feature_of[order], feature_of
        )

    def candidates(self) -> Candidates:
        """Return the terms of ``means``, squares, knots and pairs, and columns' levels in full."""
        # Levels that would take more than half of the features that may be kept are too many.
        most = max(2, min(MAX_CATEGORIES, int(self.counted.sum()) // (2 * ROWS_PER_FEATURE)))
        base, further = self.means(most), list[Term]()
        numbers = [place for place in range(len(self.codes.names)) if not self.is_category(place)]
        for place in numbers:
            further += self.curves(place)
        room = MAX_CANDIDATES - sum(len(term.names) for term in [*base, *further])
        pairs = list[Term]()
        for left, right in combinations(range(len(self.codes.names)), 2):
            widths = [
                1 if p in numbers else len(self.codes.category_codes(p)) for p in (left, right)
            ]
            if max(widths) <= MAX_LEVELS_OF_PAIRS:
                pairs.append(self.product(left, right, standard=True))
        if sum(len(term.names) for term in pairs) <= room:  # all of them, or none
            further += pairs
        whole = [
            term
            for place in range(len(self.codes.names))
            if self.is_category(place)
            for term in self.column(place)
            if len(term.names) > most
        ]
        return Candidates(base, further, whole)

    def ranges(self) -> FloatArray:
        """Return the smallest and the largest number of each column; of categories, no bounds."""
        bounds = np.tile([[-np.inf], [np.inf]], len(self.codes.names))
        for place in range(len(self.codes.names)):
            column = self.values[self.counted, place]
            if not self.is_category(place) and not np.isnan(column).all():
                bounds[:, place] = np.nanmin(column), np.nanmax(column)
        return bounds

    def position(self, column: str | int) -> int:
        """Return the position of a column that a feature names."""
        names = self.codes.names
        name = f"x{column}" if isinstance(column, int) and not self.sample.rows.named else column
        if isinstance(name, str) and name in names:
            return names.index(name)
        listing = ", ".join(f"'{one}'" for one in names[:10])
        raise ParameterError(
            f"features names {column!r}, which is not a column to weigh by: {listing}."
        )

    def column(self, position: int, most: int | None = None) -> list[Term]:
        """Return the mean of a number, or the shares of categories."""
        name = self.codes.names[position]
        if self.is_category(position):
            return [self.levels((position,), (self.grouping(position, most=most),))]
        mean = self.mean(position)
        # A whole origin keeps whole sums whole, and takes nothing from the digits of large values.
        origin = float(np.rint(mean))
        gaps = bool(self.codes.has_missing[position])
        terms: list[Term] = [Number((position,), [name], origin, mean - origin if gaps else np.nan)]
        return [*terms, Missing((position,), [f"{name} missing"])] if gaps else terms

    def mean(self, position: int) -> float:
        """Return the mean of a column over the rows that have a value; zero if none has."""
        if not self.codes.has_missing[position]:
            return float(self._means[position])
        column = self.values[self.counted, position]
        column = column[~np.isnan(column)]
        with np.errstate(over="ignore", invalid="ignore"):  # such a column is refused by name
            return float(column.mean()) if len(column) else 0.0

    @cached_property
    def _means(self) -> FloatArray:
        """The means of all columns at once, by which the rows are read once."""
        with np.errstate(over="ignore", invalid="ignore"):
            shares = self.counted / np.count_nonzero(self.counted)
            return np.asarray(shares @ self.values)

    def grouping(self, position: int, *, most: int | None = None) -> Grouping:
        """Return the categories of a column, or bands of its numbers with equal shares."""
        column = self.values[self.counted, position]
        if self.is_category(position):
            return ValueGroups.from_codes(self.codes, position, column, most)
        present = np.sort(column[~np.isnan(column)])
        distinct = np.unique(column)  # a missing value last
        if len(np.unique(present)) <= N_BANDS:
            return ValueGroups.from_codes(self.codes, position, column)
        cuts = np.unique(np.quantile(present, np.arange(1, N_BANDS) / N_BANDS, method="higher"))
        # Where most rows have the smallest value, it is a band of its own.
        return self.bands(
            position, cuts[cuts > present[0]] if cuts[-1] > present[0] else distinct[1:2]
        )

    def bands(self, position: int, cuts: FloatArray) -> Bands:
        """Return the bands of a column's numbers between cuts."""
        shown = [self.codes.format_value(position, cut) for cut in cuts]
        labels = [
            f"below {shown[0]}",
            *(f"{low} to {high}" for low, high in pairwise(shown)),
            f"from {shown[-1]}",
        ]
        labels += ["missing"] if np.isnan(self.values[self.counted, position]).any() else []
        return Bands(np.append(-np.inf, cuts), np.append(cuts, np.inf), labels)

    def levels(self, positions: tuple[int, ...], groupings: tuple[Grouping, ...]) -> Levels:
        """Return indicators of the combinations of groups that the sample has."""
        known = self._combinations(positions, groupings)
        names = []
        for combination in known:
            parts = []
            for place in reversed(range(len(groupings))):
                combination, group = divmod(combination, len(groupings[place].labels))
                name = self.codes.names[positions[place]]
                parts.append(f"{name}={groupings[place].labels[group]}")
            names.append(", ".join(reversed(parts)))
        return Levels(positions, names, groupings, known, np.arange(len(known)))

    def _combinations(self, positions: tuple[int, ...], groupings: Sequence[Grouping]) -> IntArray:
        """Return the combinations of groups that the sample has, sorted."""
        if len(positions) == 1:
            rows = self.distinct_codes(positions[0])[:, None]
        else:
            rows = self.values[:, positions]
            rows = rows if self.counted.all() else rows[self.counted]
        found = combined(rows, range(len(positions)), groupings)
        size = math.prod(len(one.labels) for one in groupings)
        return distinct(found[found >= 0], size)[0]

    def curved(self) -> list[tuple[int, list[Term]]]:
        """Return the columns of numbers with enough values, and their squares and knots."""
        numbers = [place for place in range(len(self.codes.names)) if not self.is_category(place)]
        return [(place, terms) for place in numbers if (terms := self.curves(place))]

    def curves(self, position: int) -> list[Term]:
        """Return the square and the knots of a column of numbers that has enough values."""
        name, column = self.codes.names[position], self.values[self.counted, position]
        present = column[~np.isnan(column)]
        with np.errstate(over="ignore", invalid="ignore"):
            few = len(present) == 0
            centre, scale = (0.0, 0.0) if few else (float(present.mean()), float(present.std()))
        if len(np.unique(present)) < 3 or not np.isfinite(scale) or scale <= 0:
            return []
        z = (present - centre) / scale
        knots = np.unique(np.quantile(z, KNOTS, method="higher"))
        knots = knots[(knots > z.min()) & (knots < z.max())]
        gaps = bool(self.codes.has_missing[position])
        empty = np.full(len(knots), np.nan)
        square = np.array([(z * z).mean() if gaps else np.nan])
        bends = np.array([np.maximum(z - k, 0).mean() for k in knots]) if gaps else empty
        shown = [self.codes.format_value(position, centre + scale * knot) for knot in knots]
        terms: list[Term] = [
            Curve((position,), [f"{name}²"], centre, scale, None, square),
            Curve((position,), [f"{name} above {k}" for k in shown], centre, scale, knots, bends),
        ]
        return terms[: 2 if len(knots) else 1]

    def product(self, *positions: int, standard: bool = False) -> Term:
        """Return the product of columns: joint shares, products of numbers, or both."""
        categories = tuple(place for place in positions if self.is_category(place))
        numbers = [place for place in positions if not self.is_category(place)]
        term: Term | None = None
        if categories:
            term = self.levels(categories, tuple(self.grouping(place) for place in categories))
        for place in numbers:
            factor = self._factor(place, standard=standard)
            if term is None:
                term = factor
                continue
            names = [f"{one} × {other}" for one in term.names for other in factor.names]
            term = Product(term.positions + factor.positions, names, term, factor)
        assert term is not None
        return term

    def _factor(self, position: int, *, standard: bool) -> Number:
        """Return a number as a factor of a product: as it is, or from its mean."""
        mean, gaps = self.mean(position), bool(self.codes.has_missing[position])
        origin = mean if standard else 0.0
        return Number(
            (position,), [self.codes.names[position]], origin, mean - origin if gaps else np.nan
        )
