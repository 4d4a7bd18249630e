"""Which features to calibrate to: those that predict where the population is, or the outcome.

Means and shares of single columns come first, then what held-out rows show to matter
(:class:`TermChoice`). Beyond that, the sample decides what can be matched
(:class:`AutomaticTerms`):

- A column with many levels has all of them matched where there are twenty rows a level, or where
  they tell of selection or of the outcome as a group; else its rarest levels are one.
- A mean that no weights reach, since the population has a few values that the sample has not, is
  left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.numerics.calibration import (
    CalibrationProblem,
    independent,
    pseudo_inverse,
    solve_psd,
    tilts_without_folds,
)
from unskew.numerics.distances import Raking
from unskew.numerics.row_features import RowFeatures, weighted_spread
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.overlap.overlap import LIMIT, OverlapRule
from unskew.population.feature_rules import (
    MAX_LEVELS_OF_PAIRS,
    ROWS_PER_FEATURE,
    Candidates,
    FeatureRules,
)
from unskew.population.feature_sums import FeatureSums
from unskew.population.summaries import About
from unskew.rows.design import Design, Levels, Number, Term
from unskew.rows.sample import Sample

RIDGE = 1e-3
"""For trial regressions and trial weights, so that they exist for any features."""
MAX_ROWS = 20_000
"""Sample rows by which features are chosen; evenly spread if there are more."""
COST = 2.0
"""What a term must gain for each of its features, where one that says nothing gains one."""


JUMP = 9.0
"""What a step must gain: of 39 that say nothing, the best does so in about one case of fifteen."""
CUTS = np.arange(1, 40) / 40
"""The shares of the sample below the steps that are tried."""
MAX_JUMPS = 3
"""Of a column."""
JUMP_ROWS = 4_000
"""Sample rows by which jumps are looked for; evenly spread if there are more."""


def jumps(rules: FeatureRules) -> list[Term]:
    """Return bands between the values of numbers at which the outcome jumps, by the sample alone.

    Smooth terms leave a bias there, if selection goes by the same number. Without an outcome, or a
    jump, nothing is asked of the population.
    """
    sample = rules.sample
    if sample.outcome is None:
        return []
    rows = sample.drawn()
    rows = rows[:: -(-len(rows) // JUMP_ROWS)]
    codes, outcome = sample.values[rows], sample.outcome[rows]
    shares = sample.design[rows] / sample.design[rows].sum()
    few = [term for term in rules.means() if len(term.names) <= MAX_LEVELS_OF_PAIRS]
    means = [term.of(codes, None) for term in few]
    found: list[Term] = []
    for place, curves in rules.curved():
        smooth = np.column_stack([*means, *(term.of(codes, None) for term in curves)])
        borders = _jumps_at(codes[:, place], outcome, smooth, shares)
        if len(borders):
            found.append(rules.levels((place,), (rules.bands(place, borders),)))
    return found


@np.errstate(all="ignore")  # a feature that overflows gains nothing
def _jumps_at(
    column: FloatArray, outcome: FloatArray, smooth: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return where the outcome jumps: the step that explains most first, while there is one."""

    def best(tried: FloatArray, others: list[float]) -> tuple[float, int]:
        """Return the gain of the best step beyond smooth terms and other steps, and which it is."""
        known = np.column_stack([smooth, column[:, None] >= np.array(others)])
        features = np.column_stack([known, column[:, None] >= tried]).astype(float)
        features = (features - shares @ features) / weighted_spread(features, shares)
        places = np.arange(features.shape[1])
        regression = OutcomeRegression(outcome, features, shares, places < known.shape[1])
        gains = [regression.gain(places == one) for one in places[known.shape[1] :]]
        return max(gains), int(np.argmax(gains))

    values = np.unique(column[~np.isnan(column)])
    present = np.sort(column[~np.isnan(column)])
    tried = np.unique(np.quantile(present, CUTS, method="higher"))
    tried = tried[tried > values[0]]
    chosen: list[float] = []
    while len(tried) and len(chosen) < MAX_JUMPS:
        gain, cut = best(tried, chosen)
        if not gain >= JUMP:
            break
        chosen.append(float(tried[cut]))
    exact = []
    for border in chosen:
        # A step that is off by a few rows leaves their jump unmatched, where these stand for many:
        # the best one between its neighbours among those that were tried.
        cut = int(np.searchsorted(tried, border))
        low, high = tried[max(cut - 1, 0)], tried[min(cut + 1, len(tried) - 1)]
        near = np.flatnonzero((values[1:] >= low) & (values[1:] <= high))
        place = near[best(values[1:][near], [one for one in chosen if one != border])[1]]
        exact.append((values[place] + values[place + 1]) / 2)
    return np.unique(exact)


class OutcomeRegression:
    """Columns of an outcome, and features of the same rows.

    Parameters
    ----------
    outcome : ndarray of shape (n_rows, n_columns)
    features : ndarray of shape (n_rows, n_features)
        Standardised.
    shares : ndarray of shape (n_rows,)
        Of the rows; they sum to one.
    base : ndarray of bool of shape (n_features,)
        The features that are in the regression in any case.
    """

    def __init__(
        self, outcome: FloatArray, features: FloatArray, shares: FloatArray, base: BoolArray
    ) -> None:
        centred = outcome - shares @ outcome
        self._y = centred / weighted_spread(outcome, shares)
        self._features, self._shares = features, shares
        self._base = np.column_stack([np.ones(len(features)), features[:, base]])
        self._inverse = pseudo_inverse(self._base.T @ (self._base * shares[:, None]))
        left = self._beyond(self._y)
        spread = np.sqrt(shares @ left**2)
        known: BoolArray = spread > RIDGE  # the base explains the others, or they are constant
        self._left = left[:, known] / spread[known]

    def _beyond(self, columns: FloatArray) -> FloatArray:
        """Return what the base does not explain of columns."""
        fitted = self._inverse @ (self._base.T @ (columns * self._shares[:, None]))
        return np.asarray(columns - self._base @ fitted)

    def gain(self, own: BoolArray) -> float:
        """Return the score statistic of adding features, a column; near one where it adds none."""
        values = self._features[:, own]
        if not self._left.shape[1] or not np.isfinite(values).all():
            return 0.0
        beyond = self._beyond(values)
        weighted = beyond * self._shares[:, None]
        cross, covariance = weighted.T @ self._left, weighted.T @ beyond
        if (np.diag(covariance) <= RIDGE * (self._shares @ values**2)).all():  # of the base
            return 0.0
        explained = np.einsum("ij,ij->", cross, pseudo_inverse(covariance) @ cross)
        effective = 1.0 / float(self._shares @ self._shares)
        return effective * float(explained) / (values.shape[1] * self._left.shape[1])

    def held_out_errors(self, places: IntArray, counts: Sequence[int], n_folds: int) -> list[float]:
        """Return the squared error on held-out rows of the base and the first of other features.

        Parameters
        ----------
        places : ndarray of int
            The other features, in order.
        counts : sequence of int
            How many of them.
        n_folds : int
            Rows are in folds in turn.
        """
        rows = np.column_stack([self._base, self._features[:, places]])
        n_base = self._base.shape[1]
        folds = np.arange(len(rows)) % n_folds
        grams, crosses = [], []
        for fold in range(n_folds):
            held = rows[folds == fold]
            weighted = (held * self._shares[folds == fold, None]).T
            grams.append(weighted @ held)
            crosses.append(weighted @ self._y[folds == fold])
        gram, cross = np.sum(grams, axis=0), np.sum(crosses, axis=0)
        errors = []
        for count in counts:
            kept = slice(n_base + count)
            price = np.diag(np.append(0.0, np.full(n_base + count - 1, RIDGE)))
            error = 0.0
            for own, of_own in zip(grams, crosses, strict=True):
                beta = np.linalg.solve((gram - own)[kept, kept] + price, (cross - of_own)[kept])
                error += float(np.sum(beta * (own[kept, kept] @ beta - 2 * of_own[kept])))
            errors.append(error)  # less the squares of y, which all have in common
        return errors


N_FOLDS = 5
MAX_FEATURES = 200
CONSTANT = 1e-12
"""A variance, of features with a variance of one, up to which they are constant."""


def levels_matter(
    places: IntArray,
    design: FloatArray,
    masses: FloatArray,
    n_effective: float,
    outcome: FloatArray | None,
) -> float:
    r"""Return how much a column's levels, all together, tell of selection or of an outcome.

    Each level's own difference may be within chance where all together are not. The statistics are
    sums of squares over the levels, of sample against population and of the outcome between levels,
    less their means and over their standard deviations if rows are permuted; with few rows a level
    they are not :math:`\chi^2`. The larger one is returned.

    Parameters
    ----------
    places : ndarray of int of shape (n_rows,)
        The level of each sample row.
    design : ndarray of shape (n_rows,)
    masses : ndarray of shape (n_levels + 1,)
        The population's weight in each level, and in those that the sample lacks.
    n_effective : float
        The population's number of rows; with uneven weights, as many as tell as much.
    outcome : ndarray of shape (n_rows, n_columns), optional
    """
    size = float(design.sum() ** 2 / (design @ design))
    of_sample = size * np.bincount(places, design, len(masses)) / design.sum()
    both = of_sample + n_effective * masses / masses.sum()
    of_sample, both = of_sample[both > 0], both[both > 0]
    share = size / (size + n_effective)
    spread = share * (1 - share)
    statistic = float(((of_sample - share * both) ** 2 / (both * spread)).sum())
    variance = float((2 + (1 / spread - 6) / both).sum())
    found = [(statistic - (len(both) - 1)) / np.sqrt(max(variance, 1.0))]
    if outcome is not None and len(places) > len(both):
        counts = np.maximum(np.bincount(places), 1)
        n_rows, n_between = len(places), np.count_nonzero(np.bincount(places)) - 1
        for column in (outcome - outcome.mean(axis=0)).T:
            between = float((np.bincount(places, column) ** 2 / counts).sum())
            ratio = between / max(float(column @ column) / (n_rows - 1), np.finfo(float).tiny)
            expected_spread = np.sqrt(2 * n_between * (n_rows - 1 - n_between) / (n_rows + 1))
            found.append((ratio - n_between) / max(float(expected_spread), 1.0))
    return float(max(found))


def _by_gain(gains: dict[int, float], cost: float = COST) -> list[int]:
    """Return the terms whose gain is worth their cost, the largest gain first.

    Equal gains differ by rounding, which must not decide: the first term then comes first.
    """
    chosen = [term for term, gain in gains.items() if gain >= cost]
    return sorted(chosen, key=lambda term: (-float(f"{gains[term]:.9g}"), term))


def _sizes(ranked: list[int]) -> list[int]:
    """Return how many of the terms to try: 0, 1, 2, 4, 8, … and all."""
    return sorted({0, len(ranked), *(2**power for power in range(10) if 2**power < len(ranked))})


class TermChoice:
    """Which terms to keep, by rows of the sample and sums of the population.

    1. At most a tenth as many features as sample rows are kept, and at most 200.
    2. Terms of the base come first. If they do not all fit, those that differ most between sample
       and population, in standard errors, are kept.
    3. The others are put in the order of how much of them the base leaves unbalanced.
    4. Of the first 0, 1, 2, 4, 8, … of these, as many are kept as give the smallest loss of the
       tilt e^(λᵀφ) on held-out rows of sample and population.
    5. With an outcome, also those that predict it: in the order of how much of it they explain
       beyond the base, as many as give the smallest squared error on held-out rows. A bias is what
       both selection and outcome depend on, and either choice can miss a weak dependence (double
       selection; Belloni, Chernozhukov and Hansen 2014).

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Of the sample, in an order that does not depend on how it was shuffled.
    design : ndarray of shape (n_rows,)
    widths : sequence of int
        How many features each term has.
    sums, mass : ndarray of shape (n_folds, n_features) and (n_folds,)
        Of the population's features.
    """

    def __init__(
        self,
        features: FloatArray,
        design: FloatArray,
        widths: Sequence[int],
        sums: FloatArray,
        mass: FloatArray,
    ) -> None:
        self.shares = design / design.sum()
        centre = self.shares @ features
        spread = weighted_spread(features, self.shares)
        self.features = (features - centre) / spread
        self.mass = mass
        self.sums = (sums - np.outer(mass, centre)) / spread
        self.ends = np.cumsum(widths)
        self.widths = list(widths)
        self._near = np.zeros(features.shape[1])  # where the next trial starts

    def choose(self, n_base: int, outcome: FloatArray | None) -> list[list[int]]:
        """Return which terms to keep; where these cannot be matched, fewer, down to the base.

        ``n_base`` terms, the first ones, are means and shares of single columns; ``outcome`` holds
        columns of numbers whose means over the population are wanted.
        """
        n_rows, n_terms = len(self.features), len(self.widths)
        budget = max(2, min(n_rows // ROWS_PER_FEATURE, MAX_FEATURES))
        base = self.within(budget, self.ranked(range(n_base), [], cost=0.0))
        room, others = budget - self.width(base), range(n_base, n_terms)
        if n_rows < 2 * N_FOLDS:
            return [sorted(base)]
        by_selection, by_outcome = list[int](), list[int]()
        if (self.mass > 0).all():
            ranked = self.within(room, self.ranked(others, base, cost=COST))
            if ranked:
                losses = [self.held_out_loss([*base, *ranked[:size]]) for size in _sizes(ranked)]
                by_selection = ranked[: _sizes(ranked)[int(np.argmin(losses))]]
        if outcome is not None:
            regression = OutcomeRegression(outcome, self.features, self.shares, self.columns(base))
            gains = {term: regression.gain(self.columns([term])) for term in others}
            ranked = self.within(room, _by_gain(gains))
            places = [np.flatnonzero(self.columns([term])) for term in ranked]
            counts = [self.width(ranked[:size]) for size in _sizes(ranked)]
            errors = regression.held_out_errors(
                np.concatenate([[], *places]).astype(int), counts, N_FOLDS
            )
            by_outcome = ranked[: _sizes(ranked)[int(np.argmin(errors))]]
        both = self.within(room, list(dict.fromkeys([*by_outcome, *by_selection])))
        found = [sorted([*base, *further]) for further in (both, by_outcome, by_selection, [])]
        return [kept for place, kept in enumerate(found) if kept not in found[:place]]

    def width(self, terms: Sequence[int]) -> int:
        return sum(self.widths[term] for term in terms)

    def columns(self, terms: Sequence[int]) -> BoolArray:
        kept = np.zeros(self.features.shape[1], dtype=bool)
        for term in terms:
            kept[self.ends[term] - self.widths[term] : self.ends[term]] = True
        return kept

    def within(self, budget: int, terms: Sequence[int]) -> list[int]:
        """Return the first terms that fit; one that does not is passed over."""
        kept: list[int] = []
        for term in terms:
            if self.width(kept) + self.widths[term] <= budget:
                kept.append(term)
        return kept

    def ranked(self, terms: Sequence[int], fitted: Sequence[int], *, cost: float) -> list[int]:
        """Return terms by what is left of them after a tilt to others, as in a score test.

        The statistic of w features is near w where nothing is left; those below ``cost`` times w
        are dropped.
        """
        kept, sums = self.columns(fitted), self.sums.sum(axis=0) / self.mass.sum()
        scores = self.features[:, kept] @ _tilt(self.features[:, kept], self.shares, sums[kept])
        counted = self.shares * np.exp(scores - scores.max(initial=0.0))
        counted /= counted.sum()
        effective = 1.0 / float(counted @ counted)
        means = counted @ self.features
        left = sums - means
        variances = counted @ (self.features - means) ** 2
        gains = {}
        for term in terms:
            own = slice(self.ends[term] - self.widths[term], self.ends[term])
            if not (np.isfinite(variances[own]).all() and np.isfinite(left[own]).all()):
                gains[term] = 0.0
            elif self.widths[term] == 1:
                gain = float(effective * left[own][0] ** 2 / variances[own][0])
                matchable = variances[own][0] > CONSTANT and np.isfinite(gain)
                gains[term] = gain if matchable else 0.0
            else:
                centred = self.features[:, own] - means[own]
                covariance = centred.T @ (centred * counted[:, None])
                gains[term] = effective * _gain(covariance, left[own])
        return _by_gain(gains, cost)

    def held_out_loss(self, terms: Sequence[int]) -> float:
        """Return the mean over folds of the loss log mean_S e^(λᵀφ) − λᵀ mean_U φ."""
        kept = self.columns(terms)
        features, sums = self.features[:, kept], self.sums[:, kept]
        targets = (sums.sum(axis=0) - sums) / (self.mass.sum() - self.mass)[:, None]
        folds = np.arange(len(features)) % N_FOLDS
        centre = _tilt(features, self.shares, targets.mean(axis=0), self._near[kept])
        tilts = tilts_without_folds(features, self.shares, targets, RIDGE, centre)
        if tilts is None:  # they differ too much from the tilt of all rows
            tilts = np.array(
                [
                    _tilt(features[folds != fold], self.shares[folds != fold], target, centre)
                    for fold, target in enumerate(targets)
                ]
            )
        self._near[kept] = centre
        scores = (features * tilts[folds]).sum(axis=1)
        losses = [
            _log_mean(scores[fold::N_FOLDS], self.shares[fold::N_FOLDS])
            - float(sums[fold] @ tilts[fold]) / self.mass[fold]
            for fold in range(N_FOLDS)
        ]
        return float(np.mean(losses))


def _tilt(
    features: FloatArray, shares: FloatArray, target: FloatArray, near: FloatArray | None = None
) -> FloatArray:
    """Return the tilt of shares to a target; ``near`` is one to start from."""
    width = features.shape[1]
    if not width:
        return np.zeros(0)
    centred, shares = features - target, shares / shares.sum()
    start = None if near is None else (-_log_mean(centred @ near, shares), near)
    problem = CalibrationProblem(
        RowFeatures.from_parts([centred]),
        shares,
        Raking(),
        1.0,
        np.zeros(width),
        np.full(width, RIDGE),
    )
    return problem.solve(start).multipliers


def _gain(covariance: FloatArray, left: FloatArray) -> float:
    """Return what is left of features in the metric of their covariance, over their number."""
    kept = independent(covariance)
    if not kept.any():
        return 0.0
    inner = covariance[np.ix_(kept, kept)]
    return float(left[kept] @ solve_psd(inner, left[kept])) / int(kept.sum())


def _log_mean(scores: FloatArray, shares: FloatArray) -> float:
    """Return log of the mean of e^score."""
    largest = scores.max()
    return float(largest + np.log(shares @ np.exp(scores - largest) / shares.sum()))


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
        sample, rows = self._sample, self._sample.drawn()
        rows = rows[:: -(-len(rows) // MAX_ROWS)]
        features = Design(self._asked.features.codes, [self._terms[p] for p in self._narrow])
        with np.errstate(all="ignore"):  # a feature that overflows is not chosen
            chosen = TermChoice(
                features.of_codes(sample.values[rows], sample.batch.take(pa.array(rows))),
                sample.design[rows],
                [len(self._terms[place].names) for place in self._narrow],
                self._sums[:, np.isin(self._owner, self._narrow)],
                self._asked.mass,
            ).choose(self._n_base, None if sample.outcome is None else sample.outcome[rows])
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


def unseen_levels(features: Design, about: About, n_rows: int) -> list[OverlapRule]:
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


def unseen_pairs(asked: FeatureSums, features: Design, n_rows: int) -> list[OverlapRule]:
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
