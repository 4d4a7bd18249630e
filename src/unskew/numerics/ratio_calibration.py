"""A monotone map from a model's score to the logarithm of a density ratio.

A model that ranks rows well may still be too sure, or not sure enough. On scores of rows that did
not train it, a monotone map corrects that and keeps the ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.numerics.ratio_loss import Sided, pool_exponents
from unskew.numerics.typing import FloatArray


class ScoreMap(NamedTuple):
    """Linear between knots and constant beyond them; with one knot, a line of this slope.

    Examples
    --------
    >>> ScoreMap(np.array([0.0, 1.0]), np.array([0.0, 2.0]))(np.array([-1.0, 0.25, 9.0]))
    array([0. , 0.5, 2. ])
    """

    scores: FloatArray
    log_ratios: FloatArray
    slope: float = 0.0

    def __call__(self, scores: FloatArray) -> FloatArray:
        if len(self.scores) == 1:
            return self.log_ratios[0] + self.slope * (scores - self.scores[0])
        return np.interp(scores, self.scores, self.log_ratios)


def isotonic_map(scores: Sided, shares: Sided) -> ScoreMap:
    """Return the non-decreasing map with the least loss, by pooling adjacent violators.

    In each block of scores that share a value, the ratio is that of the two sides' shares, with
    half a row added to each so that no ratio is zero or infinite. Between the blocks' mean scores
    it is linear.

    Examples
    --------
    >>> scores = Sided(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))
    >>> third = np.full(3, 1 / 3)
    >>> isotonic_map(scores, Sided(third, third)).log_ratios.round(3)
    array([-0.511,  0.511])
    """
    from sklearn.isotonic import isotonic_regression

    joined = np.concatenate(scores)
    order = np.argsort(joined, kind="stable")
    ordered = joined[order]
    mine = np.concatenate([shares.mine, np.zeros(len(scores.theirs))])[order]
    theirs = np.concatenate([np.zeros(len(scores.mine)), shares.theirs])[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] > ordered[:-1]))
    mine, theirs = np.add.reduceat(mine, starts), np.add.reduceat(theirs, starts)
    kept = mine + theirs > 0
    levels, mine, theirs = ordered[starts][kept], mine[kept], theirs[kept]
    fitted = isotonic_regression(theirs / (mine + theirs), sample_weight=mine + theirs)
    blocks = np.flatnonzero(np.append(True, np.diff(fitted) > 1e-12))
    mass = np.add.reduceat(mine + theirs, blocks)
    centres = np.add.reduceat(levels * (mine + theirs), blocks) / mass
    halves = [0.5 / max(len(side), 1) for side in scores]
    ratios = (np.add.reduceat(theirs, blocks) + halves[1]) / (
        np.add.reduceat(mine, blocks) + halves[0]
    )
    # Half a row counts for more in small blocks, which can put them out of order.
    return ScoreMap(centres, np.maximum.accumulate(np.log(ratios)))


def sigmoid_map(scores: Sided, shares: Sided) -> ScoreMap:
    """Return the line with a non-negative slope that has the least loss (Platt's scaling).

    Examples
    --------
    >>> scores = Sided(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))
    >>> third = np.full(3, 1 / 3)
    >>> sigmoid_map(scores, Sided(third, third))(np.array([0.0, 1.0])).round(6)
    array([-0.693147,  0.693147])
    """
    middle = float(np.median(np.concatenate(scores)))
    spread = float(np.concatenate(scores).std()) or 1.0
    one = Sided(*(np.ones_like(side) for side in scores))
    standard = Sided(*((side - middle) / spread for side in scores))
    # The intercept may have either sign.
    slope, up, down = pool_exponents([standard, one, Sided(-one.mine, -one.theirs)], shares)
    return ScoreMap(np.array([middle]), np.array([up - down]), float(slope) / spread)
