"""Which features predict an outcome beyond others: a regression on the sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unskew.numerics.calibration import pseudo_inverse
from unskew.numerics.row_features import weighted_spread
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.feature_rules import MAX_LEVELS_OF_PAIRS, FeatureRules
from unskew.rows.features import Block, Term

RIDGE = 1e-3
"""For the trial regressions, so that they exist for any features."""
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
    rows = sample.order[sample.design[sample.order] > 0]
    rows = rows[:: -(-len(rows) // JUMP_ROWS)]
    block = Block(sample.values[rows], sample.batch)
    shares = sample.design[rows] / sample.design[rows].sum()
    means = [term.of(block) for term in rules.means() if len(term.names) <= MAX_LEVELS_OF_PAIRS]
    found: list[Term] = []
    for place, curves in rules.curved():
        column = block.codes[:, place]
        present = np.sort(column[~np.isnan(column)])
        tried = np.unique(np.quantile(present, CUTS, method="higher"))
        tried = tried[tried > present[0]]
        steps = (column[:, None] >= tried).astype(float)
        smooth = np.column_stack([*means, *(term.of(block) for term in curves)])
        outcome = sample.outcome[rows]
        cuts = sorted(_first_jumps(outcome, smooth, steps, shares))
        if cuts:
            exact = [_exactly(column, tried, cuts, cut, outcome, smooth, shares) for cut in cuts]
            found.append(rules.levels((place,), (rules.bands(place, np.unique(exact)),)))
    return found


def _exactly(
    column: FloatArray,
    tried: FloatArray,
    cuts: list[int],
    cut: int,
    outcome: FloatArray,
    smooth: FloatArray,
    shares: FloatArray,
) -> float:
    """Return where a jump is: the best step between the neighbours of the one that was taken.

    A step that is off by a few rows leaves their jump unmatched, where these stand for many.
    """
    low, high = (tried[np.clip(cut + side, 0, len(tried) - 1)] for side in (-1, 1))
    values = np.unique(column[~np.isnan(column)])
    near = np.flatnonzero((values[1:] >= low) & (values[1:] <= high))
    others = column[:, None] >= tried[[one for one in cuts if one != cut]]
    steps = column[:, None] >= values[1:][near]
    features = np.column_stack([smooth, others, steps]).astype(float)
    base = np.arange(features.shape[1]) < features.shape[1] - len(near)
    with np.errstate(all="ignore"):
        features = (features - shares @ features) / weighted_spread(features, shares)
        gains = OutcomeRegression(outcome, features, shares, base).gains(~base)
    best = near[int(np.argmax(gains))]
    return float((values[best] + values[best + 1]) / 2)


def _first_jumps(
    outcome: FloatArray, smooth: FloatArray, steps: FloatArray, shares: FloatArray
) -> list[int]:
    """Return which steps to take, the one that explains most first, while there is one."""
    features = np.column_stack([smooth, steps])
    width = smooth.shape[1]
    chosen: list[int] = []
    with np.errstate(all="ignore"):  # a feature that overflows gains nothing
        features = (features - shares @ features) / weighted_spread(features, shares)
        base = np.arange(features.shape[1]) < width
        while len(chosen) < MAX_JUMPS:
            base[[width + cut for cut in chosen]] = True
            gains = OutcomeRegression(outcome, features, shares, base).gains(~base)
            best = int(np.argmax(gains))
            if not gains[best] >= JUMP:
                break
            chosen.append(int(np.flatnonzero(~base)[best]) - width)
    return chosen


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

    def gains(self, own: BoolArray) -> FloatArray:
        """Return the score statistic of adding each of some features by itself."""
        if not self._left.shape[1]:
            return np.zeros(np.count_nonzero(own))
        beyond = self._beyond(self._features[:, own])
        squares = self._shares @ beyond**2
        cross = (beyond * self._shares[:, None]).T @ self._left
        effective = 1.0 / float(self._shares @ self._shares)
        known = squares > RIDGE  # others are of the base
        gains = effective * (cross**2).mean(axis=1) / np.where(known, squares, 1.0)
        return np.where(known, gains, 0.0)

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
            mine = rows[folds == fold]
            weighted = (mine * self._shares[folds == fold, None]).T
            grams.append(weighted @ mine)
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
