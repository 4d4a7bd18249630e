"""Which features to calibrate to: those that predict where the population is, or the outcome."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unskew.numerics.calibration import (
    CalibrationProblem,
    independent,
    solve_psd,
    tilts_without_folds,
)
from unskew.numerics.distances import Raking
from unskew.numerics.row_features import RowFeatures, weighted_spread
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.feature_rules import ROWS_PER_FEATURE
from unskew.weighters.outcome_features import COST, MAX_ROWS, OutcomeRegression

N_FOLDS = 5
MAX_FEATURES = 200
CONSTANT = 1e-12
"""A variance, of features with a variance of one, up to which they are constant."""
RIDGE = 1e-3
"""For the trial weights, so that they exist for any features."""


def evenly(rows: IntArray) -> IntArray:
    """Return evenly spread rows, as many as are enough to choose features by."""
    return rows[:: -(-len(rows) // MAX_ROWS)]


def choose_terms(
    features: FloatArray,
    design: FloatArray,
    widths: Sequence[int],
    n_base: int,
    sums: FloatArray,
    mass: FloatArray,
    outcome: FloatArray | None = None,
) -> list[list[int]]:
    """Return which terms to keep; where these cannot be matched, fewer, down to those of the base.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Of the sample, in an order that does not depend on how it was shuffled.
    design : ndarray of shape (n_rows,)
    widths : sequence of int
        How many features each term has.
    n_base : int
        How many of the terms, the first ones, are means and shares of single columns.
    sums, mass : ndarray of shape (n_folds, n_features) and (n_folds,)
        Of the population's features.
    outcome : ndarray of shape (n_rows, n_columns), optional
        Numbers of the sample's rows whose means over the population are wanted.

    Notes
    -----
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
    """
    with np.errstate(all="ignore"):  # a feature that overflows is not chosen
        return _choose(features, design, widths, n_base, sums, mass, outcome)


def _choose(
    features: FloatArray,
    design: FloatArray,
    widths: Sequence[int],
    n_base: int,
    sums: FloatArray,
    mass: FloatArray,
    outcome: FloatArray | None,
) -> list[list[int]]:
    rows = evenly(np.flatnonzero(design > 0))
    choice = _Choice(features[rows], design[rows], widths, sums, mass)
    budget = max(2, min(int(np.count_nonzero(design)) // ROWS_PER_FEATURE, MAX_FEATURES))
    base = choice.within(budget, choice.ranked(range(n_base), [], cost=0.0))
    room, others = budget - choice.width(base), range(n_base, len(widths))
    if len(rows) < 2 * N_FOLDS:
        return [sorted(base)]
    by_selection, by_outcome = list[int](), list[int]()
    if (mass > 0).all():
        ranked = choice.within(room, choice.ranked(others, base, cost=COST))
        sizes = _sizes(ranked)
        if ranked:
            losses = [choice.held_out_loss([*base, *ranked[:size]]) for size in sizes]
            by_selection = ranked[: sizes[int(np.argmin(losses))]]
    if outcome is not None:
        columns = choice.columns(base)
        regression = OutcomeRegression(outcome[rows], choice.features, choice.shares, columns)
        gains = {term: regression.gain(choice.columns([term])) for term in others}
        ranked = choice.within(room, _by_gain(gains))
        places = [np.flatnonzero(choice.columns([term])) for term in ranked]
        sizes = _sizes(ranked)
        counts = [choice.width(ranked[:size]) for size in sizes]
        errors = regression.held_out_errors(
            np.concatenate([[], *places]).astype(int), counts, N_FOLDS
        )
        by_outcome = ranked[: sizes[int(np.argmin(errors))]]
    both = choice.within(room, list(dict.fromkeys([*by_outcome, *by_selection])))
    found = [sorted([*base, *further]) for further in (both, by_outcome, by_selection, [])]
    return [kept for place, kept in enumerate(found) if kept not in found[:place]]


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
    mine = size * np.bincount(places, design, len(masses)) / design.sum()
    both = mine + n_effective * masses / masses.sum()
    mine, both = mine[both > 0], both[both > 0]
    share = size / (size + n_effective)
    spread = share * (1 - share)
    statistic = float(((mine - share * both) ** 2 / (both * spread)).sum())
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


class _Choice:
    """The sample's features, standardised, and the population's means of them."""

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
        counted = self._tilted(fitted, self.features, self.shares, self.sums.sum(axis=0))
        effective = 1.0 / float(counted @ counted)
        means = counted @ self.features
        left = self.sums.sum(axis=0) / self.mass.sum() - means
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
        tilts = tilts_without_folds(features, self.shares, targets, RIDGE, self._near[kept])
        folds = np.arange(len(features)) % N_FOLDS
        if tilts is None:  # far from the sample: by the solver that goes there step by step
            tilts = np.array(
                [
                    self._tilt(features[folds != fold], self.shares[folds != fold], targets[fold])
                    for fold in range(N_FOLDS)
                ]
            )
        self._near[kept] = tilts.mean(axis=0)
        scores = (features * tilts[folds]).sum(axis=1)
        losses = [
            _log_mean(scores[fold::N_FOLDS], self.shares[fold::N_FOLDS])
            - float(sums[fold] @ tilts[fold]) / self.mass[fold]
            for fold in range(N_FOLDS)
        ]
        return float(np.mean(losses))

    def _tilted(
        self, terms: Sequence[int], features: FloatArray, shares: FloatArray, sums: FloatArray
    ) -> FloatArray:
        """Return the shares after a tilt to some of the terms."""
        kept = self.columns(terms)
        target = sums[kept] / self.mass.sum()
        scores = features[:, kept] @ self._tilt(features[:, kept], shares, target)
        tilted = shares * np.exp(scores - scores.max(initial=0.0))
        return tilted / tilted.sum()

    @staticmethod
    def _tilt(features: FloatArray, shares: FloatArray, target: FloatArray) -> FloatArray:
        width = features.shape[1]
        if not width:
            return np.zeros(0)
        problem = CalibrationProblem(
            RowFeatures.of([features - target]),
            shares / shares.sum(),
            Raking(),
            1.0,
            np.zeros(width),
            np.full(width, RIDGE),
        )
        return problem.solve().multipliers


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
