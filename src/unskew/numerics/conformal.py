r"""Weighted quantiles of conformity scores, with a mass at infinity.

Tibshirani, Foygel Barber, Candès and Ramdas, *Conformal prediction under covariate shift* (NeurIPS
2019). Calibration rows have scores :math:`s_i` and weights :math:`w_i`. A new row of weight
:math:`w(x)` is one of those that could have been drawn, but its score is not known: its mass sits
at infinity. The quantile of its score is

.. math:: q(x) = \inf\{t : \sum_i w_i 1\{s_i \le t\} \ge c\,(\sum_i w_i + w(x))\},

infinite where no t is enough. Scores are sorted once; each new row is one binary search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.numerics.row_keys import hash_rows
from unskew.numerics.typing import FloatArray, IntArray

ROUNDING = 1e-10
"""The share of the mass wanted by which sums of weights may fall short of it."""
_MOST_HALVINGS = 64
"""After these, what is left of an interval of floating-point numbers holds one or two of them."""
_BLOCK = 1 << 16
"""New rows that are searched for at a time, so that their positions stay in the cache."""


@dataclass(frozen=True)
class ScoreDistribution:
    """Scores of calibration rows with their weights, in one group or several.

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
        Sorted by group, then by score.
    cumulated : ndarray of shape (n_rows,)
        The weight of all rows up to here, with the weight of each group scaled to one.
    ends : ndarray of int of shape (n_groups,)
        One past the last row of each group.
    totals : ndarray of shape (n_groups,)
        The weight of each group.
    """

    scores: FloatArray
    cumulated: FloatArray
    ends: IntArray
    totals: FloatArray

    @classmethod
    def from_scores(
        cls,
        scores: FloatArray,
        weights: FloatArray,
        groups: IntArray | None = None,
        n_groups: int = 1,
    ) -> ScoreDistribution:
        """Sort the scores; a row of a negative group counts in none."""
        # Each group's weights are scaled to one: one cumulated sum then serves all groups, as the
        # sum before a group is about its number.
        if groups is None:
            groups = np.zeros(len(scores), dtype=np.intp)
        inside = np.flatnonzero(groups >= 0)
        order = inside[np.lexsort((scores[inside], groups[inside]))]
        sorted_groups, sorted_weights = groups[order], weights[order]
        totals = np.bincount(sorted_groups, sorted_weights, minlength=n_groups).astype(float)
        divisors = np.where(totals > 0, totals, 1.0)
        cumulated = np.cumsum(sorted_weights / divisors[sorted_groups])
        ends = np.searchsorted(sorted_groups, np.arange(n_groups), side="right")
        return cls(scores[order], cumulated, ends, totals)

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.totals.sum())

    def finite_up_to(self, own: FloatArray, groups: IntArray | None = None) -> FloatArray:
        """Return the coverage up to which new rows of these weights have a finite quantile."""
        totals = np.append(self.totals, 0.0)  # group -1 has none
        total = totals[0] if groups is None else totals[groups]
        whole = total + own
        return np.divide(total, whole, out=np.zeros(len(own)), where=whole > 0)

    def quantile(
        self, coverage: float, own: FloatArray, groups: IntArray | None = None
    ) -> FloatArray:
        """Return the quantile q(x) of new rows of these weights, infinite where there is none.

        Examples
        --------
        >>> scores = ScoreDistribution.from_scores(np.array([3.0, 1.0, 2.0]), np.ones(3))
        >>> scores.quantile(0.5, np.array([1.0, 3.0, 4.0]))
        array([ 2.,  3., inf])
        """
        reached = self.finite_up_to(own, groups)
        # Of the calibration rows' own mass, which is one, this is the share that is wanted.
        wanted = np.divide(
            coverage * (1 - ROUNDING), reached, out=np.full(len(own), 2.0), where=reached > 0
        )
        if groups is None:
            groups = np.zeros(len(own), dtype=np.intp)
        before = np.append(0.0, np.append(0.0, self.cumulated)[self.ends[:-1]])
        place = np.searchsorted(self.cumulated, before[groups] + wanted)
        found = place < self.ends[groups]
        return np.where(found, np.append(self.scores, np.inf)[place], np.inf)


@dataclass(frozen=True)
class CrossedScores:
    """Scores of folds, each made by a model of its own, that did not see the fold's rows.

    Barber, Candès, Ramdas and Tibshirani, *Predictive inference with the jackknife+* (2021), with
    weights. The bound of a new row is a quantile of what the folds' models say of it,
    ``centre_k(x) + scale_k(x) s_i`` for each calibration row i of fold k.
    """

    folds: Sequence[ScoreDistribution]

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return sum(fold.total for fold in self.folds)

    def wanted(self, coverage: float, own: FloatArray) -> FloatArray:
        """Return the calibration mass that new rows of these weights ask for."""
        return coverage * (1 - ROUNDING) * (self.total + own)

    def mass_below(self, number: int, values: FloatArray) -> FloatArray:
        """Return the mass of one fold's scores below these values."""
        fold = self.folds[number]
        below = np.append(0.0, fold.cumulated)[np.searchsorted(fold.scores, values)]
        return fold.total * below

    def quantile(
        self, coverage: float, own: FloatArray, centres: FloatArray, scales: FloatArray
    ) -> FloatArray:
        """Return the quantile of ``centres + scales * score``, infinite where there is none.

        Parameters
        ----------
        coverage : float
        own : ndarray of shape (n_rows,)
            The weights of the new rows.
        centres, scales : ndarray of shape (n_folds, n_rows)
            What each fold's model says of them; scales are positive.

        Examples
        --------
        >>> folds = [ScoreDistribution.from_scores(np.array([1.0, 2.0]), np.ones(2))] * 2
        >>> centres = np.array([[0.0], [0.5]])  # the four values are 1, 2 and 1.5, 2.5
        >>> CrossedScores(folds).quantile(0.6, np.ones(1), centres, np.ones((2, 1)))
        array([2.])
        """
        # A new row whose own weight alone is more than the rest allows has no finite quantile.
        wanted = self.wanted(coverage, own)
        found = np.full(len(own), np.inf)
        finite = np.flatnonzero(wanted <= self.total)
        used = np.flatnonzero([fold.total > 0 for fold in self.folds])
        for begin in range(0, len(finite), _BLOCK):
            rows = finite[begin : begin + _BLOCK]
            chosen = np.ix_(used, rows)
            folds = [fold for fold in self.folds if fold.total > 0]
            found[rows] = _crossed(folds, wanted[rows], centres[chosen], scales[chosen])
        return found


def _crossed(
    folds: Sequence[ScoreDistribution],
    wanted: FloatArray,
    centres: FloatArray,
    scales: FloatArray,
) -> FloatArray:
    """Halve an interval around each row's quantile until it holds one value.

    Within it are, of each fold, the scores from ``low`` up to, not including, ``high``; what is
    below does not have the mass wanted, and what is up to its end has it. The folds' own quantiles
    at the same level are on both sides of the one that is sought, which gives the first interval.
    """
    masses = [fold.total * np.append(0.0, fold.cumulated) for fold in folds]
    level = np.minimum(wanted / sum(fold.total for fold in folds), 1 - ROUNDING)
    place = np.array([np.searchsorted(fold.cumulated, level) for fold in folds])
    own = np.array([fold.scores[at] for fold, at in zip(folds, place, strict=True)])
    values = centres + scales * own
    least, most = values.min(axis=0), values.max(axis=0)
    # The folds' own quantiles are inside, whatever the rounding of these differences.
    low = np.minimum(_positions(folds, (least - centres) / scales, "left"), place)
    high = np.maximum(_positions(folds, (most - centres) / scales, "right"), place + 1)
    active = np.flatnonzero((high - low).sum(axis=0) > 1)
    for _ in range(_MOST_HALVINGS):
        if not len(active):
            break
        # The mass up to the middle, over all folds, says in which half the quantile lies.
        middle = (least[active] + most[active]) / 2
        found = _positions(folds, (middle - centres[:, active]) / scales[:, active], "right")
        found = np.clip(found, low[:, active], high[:, active])
        mass = sum(part[at] for part, at in zip(masses, found, strict=True))
        enough = mass >= wanted[active]
        up, down = active[enough], active[~enough]
        most[up], high[:, up] = middle[enough], found[:, enough]
        least[down], low[:, down] = middle[~enough], found[:, ~enough]
        active = active[(high[:, active] - low[:, active]).sum(axis=0) > 1]
    last = np.array([fold.scores[at - 1] for fold, at in zip(folds, high, strict=True)])
    return np.where(high > low, centres + scales * last, -np.inf).max(axis=0)


def _positions(folds: Sequence[ScoreDistribution], values: FloatArray, side: str) -> IntArray:
    return np.array(
        [
            np.searchsorted(fold.scores, row, side=side)  # type: ignore[call-overload]
            for fold, row in zip(folds, values, strict=True)
        ]
    )


def adaptive_scores(chances: FloatArray) -> FloatArray:
    """Return the adaptive score (APS) of each class from the class probabilities of rows.

    The probability of all classes that are more probable, plus a part of the class's own. The part
    is uniform on [0, 1), by a hash of the row's probabilities: a function of the row, so that its
    score is one too, and no guarantee depends on how the part was drawn. Probabilities are rounded
    before, so that the last bits, which differ between machines, decide nothing.

    Examples
    --------
    >>> scores = adaptive_scores(np.array([[0.2, 0.7, 0.1]]))[0]
    >>> part = scores[1] / 0.7
    >>> bool(np.allclose(scores, [0.7 + 0.2 * part, 0.7 * part, 0.9 + 0.1 * part]))
    True
    """
    words = hash_rows([np.round(column, 9) for column in chances.T])
    part = words.astype(np.float64)[:, None] / 2.0**64
    order = np.argsort(-chances, axis=1, kind="stable")
    falling = np.take_along_axis(chances, order, axis=1)
    scores = np.empty_like(falling)
    np.put_along_axis(scores, order, np.cumsum(falling, axis=1) - falling * (1 - part), axis=1)
    return scores
