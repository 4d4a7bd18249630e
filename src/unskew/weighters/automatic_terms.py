"""The features that calibration matches where none are named, and what it says of the others.

Means and shares of single columns come first, then what held-out rows show to matter (see
:mod:`unskew.weighters.feature_choice`). Beyond that, the sample decides what can be matched:

- A column with many levels has all of them matched where there are twenty rows a level, or where
  they tell of selection or of the outcome as a group; else its rarest levels are one.
- A mean that no weights reach, since the population has a few values that the sample has not, is
  left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.numerics.typing import FloatArray
from unskew.overlap import LIMIT, OverlapRule
from unskew.population.about import About
from unskew.population.feature_rules import ROWS_PER_FEATURE, Candidates
from unskew.population.feature_sums import FeatureSums
from unskew.rows.features import FeatureSet, Levels, Number
from unskew.rows.sample import Sample
from unskew.weighters.feature_choice import choose_terms, evenly, levels_matter

MATTERS = 1.64
"""Standard deviations above which levels tell something as a group: 1 of 20 by chance."""
ROWS_PER_LEVEL = 2
"""Sample rows for each level of all columns with many, at least."""
NOTED = 0.01
"""The share of the population without sample rows of its level above which a note says so."""


class AutomaticTerms:
    """Which terms to match, of those that were asked for.

    Parameters
    ----------
    asked : FeatureSums
        Of terms in the order of the candidates.
    sums : ndarray of shape (n_folds, n_features)
        Its sums, completed.
    sample : Sample
    candidates : Candidates
    """

    def __init__(
        self, asked: FeatureSums, sums: FloatArray, sample: Sample, candidates: Candidates
    ) -> None:
        self._asked, self._sums, self._sample = asked, sums, sample
        self._terms: list[Any] = asked.features.terms
        self._owner = asked.features.term_of_feature
        self._mass = float(asked.mass.sum())
        self._counted = sample.design > 0
        self._too_many: list[str] = []
        n_base, n_narrow = len(candidates.base), len(self._terms) - len(candidates.whole)
        self.whole = list(self._chosen_columns(range(n_narrow, len(self._terms))))
        replaced = {self._terms[place].positions for place in self.whole}
        base = [p for p in range(n_base) if self._terms[p].positions not in replaced]
        beyond = self._beyond_reach(base)
        self.is_covered = all(share <= LIMIT for share in beyond.values())
        """Whether no mean is out of reach for more of the population than may be uncovered."""
        self._left_out = {place: share for place, share in beyond.items() if share <= LIMIT}
        lost = {position for p in self._left_out for position in self._terms[p].positions}
        self._narrow = [place for place in base if place not in self._left_out]
        self._n_base = len(self._narrow)
        further = range(n_base, n_narrow)
        self._narrow += [p for p in further if not lost & {*self._terms[p].positions}]

    def _shares(self, place: int) -> FloatArray:
        """Return the population's means of the features of a term."""
        return np.asarray(self._sums[:, self._owner == place].sum(axis=0) / self._mass)

    def _chosen_columns(self, places: range) -> Iterator[int]:
        """Yield the columns of which all levels are matched, those that matter most first."""
        counted, found = self._counted, {}
        size, outcome = int(counted.sum()), self._sample.outcome
        for place in places:
            own = self._asked.sums[:, self._owner == place].sum(axis=0)
            masses = np.append(own, max(self._mass - own.sum(), 0.0))
            found[place] = np.inf
            if len(own) > size // (2 * ROWS_PER_FEATURE):
                found[place] = levels_matter(
                    self._terms[place].places(self._sample.values[counted]),
                    self._sample.design[counted],
                    masses,
                    (self._mass + self._asked.uncovered) ** 2 / max(self._asked.squares, 1e-300),
                    None if outcome is None else outcome[counted],
                )
        room = size // ROWS_PER_LEVEL
        for place in sorted(places, key=lambda place: -found[place]):
            width = len(self._terms[place].names)
            if width <= room and found[place] > MATTERS:
                room -= width
                yield place
            elif width > room:
                column = self._asked.features.columns_of(self._terms[place])[0]
                self._too_many.append(f"'{column}' ({width:,})")

    def _beyond_reach(self, base: list[int]) -> dict[int, float]:
        """Return the terms of numbers with means that no weights reach.

        With the share of the population that has other numbers in their columns than the sample.
        """
        found, ranges = {}, self._asked.ranges
        assert ranges is not None
        for place in base:
            term = self._terms[place]
            if isinstance(term, Number):
                (column,), mean = term.positions, self._shares(place)[0] + term.origin
                with np.errstate(over="ignore", invalid="ignore"):
                    (low, high), rounding = (
                        ranges[:, column],
                        1e-9 * np.abs(ranges[:, column]).sum(),
                    )
                    if mean > high + rounding or mean < low - rounding:
                        found[place] = float(self._asked.beyond[column]) / self._mass
        return found

    def choices(self) -> list[list[int]]:
        """Return which terms to match; where these cannot be, fewer, down to those of the base."""
        # Folds go by an order of the rows that does not depend on how they were shuffled.
        sample, rows = self._sample, evenly(self._sample.drawn())
        features = FeatureSet(self._asked.features.codes, [self._terms[p] for p in self._narrow])
        chosen = choose_terms(
            features.of_codes(sample.values[rows], sample.batch.take(pa.array(rows))),
            sample.design[rows],
            [len(self._terms[place].names) for place in self._narrow],
            self._n_base,
            self._sums[:, np.isin(self._owner, self._narrow)],
            self._asked.mass,
            None if sample.outcome is None else sample.outcome[rows],
        )
        whole = sorted(self.whole)
        return [[*(self._narrow[place] for place in places), *whole] for places in chosen]

    def unmatched(self, names: list[str], left: FloatArray | None) -> tuple[str, ...]:
        """Return what is not matched, in sentences.

        ``left`` is the imbalance of features that cannot be matched at once.
        """
        found = []
        for place, share in self._left_out.items():
            name, mean = self._terms[place].names[0], self._shares(place)[0]
            found.append(
                f"'{name}' is not matched: no weights reach the population's mean, "
                f"{mean + self._terms[place].origin:.6g}. {share:.2%} of the population has values "
                "out of the sample's range."
            )
        if left is not None:
            far = np.argsort(-np.abs(left), kind="stable")[:3]
            shown = [f"'{names[place]}' by {left[place]:+.2g}" for place in far]
            found.append(
                "No weights match all features at once. The largest differences that are left: "
                f"{', '.join(shown)} standard deviations."
            )
        return tuple(found)

    def stand_ins(self, names: list[str]) -> tuple[str, ...]:
        """Return of which columns levels stand for others, in sentences."""
        asked, found = self._asked, []
        if self._too_many:
            found.append(
                f"Too many levels to match each one: {', '.join(self._too_many)}. The most "
                "frequent are matched, the others as one."
            )
        for place, levels in asked.plan.levels.items():
            share = 1 - float(asked.sums[:, asked.plan.spans[place]].sum()) / self._mass
            if len(levels.positions) == 1 and levels.names[0] in names and share > NOTED:
                column = asked.features.columns_of(levels)[0]
                found.append(
                    f"{share:.1%} of the population has a value of '{column}' that no sample row "
                    "has. Other levels, the rarest of the sample if these are rare, stand for them."
                )
        return tuple(dict.fromkeys(found))


def unseen_levels(features: FeatureSet, about: About, n_rows: int) -> list[OverlapRule]:
    """Return the levels of known margins that no sample row has."""
    known = {one.columns: one for one in about.levels}
    rules = []
    for term in features.terms:
        columns = tuple(features.columns_of(term))
        if isinstance(term, Levels) and term.of_margin is not None:
            margin = known[columns]
            for place in np.flatnonzero((term.of_margin < 0) & (margin.weight > 0)):
                level = zip(columns, margin.levels[place], strict=True)
                text = " and ".join(f"{column} = {label}" for column, label in level)
                share = float(margin.weight[place] / margin.weight.sum())
                rules.append(OverlapRule(text, share, 0.0, 0, n_rows, unseen=True))
    return sorted(rules, key=lambda rule: -rule.share)


def unseen_pairs(asked: FeatureSums, features: FeatureSet, n_rows: int) -> list[OverlapRule]:
    """Return the combinations of matched columns that the population has, and no sample row."""
    rules, total = [], float(asked.mass.sum())
    for place in asked.plan.apart:
        term = asked.features.terms[place]
        if any(term is one for one in features.terms):
            columns = asked.features.columns_of(term)
            for values, weight in asked.unseen_combinations(place).items():
                parts = [f"{name} = {value}" for name, value in zip(columns, values, strict=True)]
                rules.append(OverlapRule(" and ".join(parts), weight / total, 0.0, 0, n_rows))
    return rules
