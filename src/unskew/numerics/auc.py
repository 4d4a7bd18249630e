"""The area under the curve that ranks rows of one side above rows of the other."""

from __future__ import annotations

import numpy as np

from unskew.numerics.typing import FloatArray


def weighted_auc(
    scores: FloatArray, mine: FloatArray, theirs: FloatArray
) -> tuple[float, float, float]:
    """Return the weighted AUC, its standard error, and its standard error under the null.

    The first standard error is DeLong's, DeLong's and Clarke-Pearson's (Biometrics 44, 1988), with
    weights: it uses the placement of each row among the rows of the other side. The second assumes
    that the scores are independent of the sides.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    mine, theirs : ndarray of shape (n,)
        The mass of each row in the sample and in the population. A row may be in both: its two
        placements are those of one row, and largely cancel.

    Examples
    --------
    >>> mine = np.array([0, 0, 1, 1])
    >>> auc, *_ = weighted_auc(np.array([0.1, 0.4, 0.3, 0.9]), mine, 1 - mine)
    >>> auc
    0.75
    """
    mine, theirs = mine / mine.sum(), theirs / theirs.sum()
    above = _share_below(scores, scores, theirs)
    below = 1.0 - _share_below(scores, scores, mine)
    auc = float(mine @ above)
    variance = float(np.square(mine * (above - auc) + theirs * (below - auc)).sum())
    # Under the null a placement is uniform, with variance 1/12; ties reduce it.
    pooled = (mine + theirs) / 2
    spread = float(pooled @ (_share_below(scores, scores, pooled) - 0.5) ** 2)
    null_variance = spread * float(np.square(mine - theirs).sum())
    return auc, float(np.sqrt(variance)), float(np.sqrt(null_variance))


def _share_below(values: FloatArray, others: FloatArray, share: FloatArray) -> FloatArray:
    """Return the share of the others below each value, plus half of the share equal to it."""
    order = np.argsort(others, kind="stable")
    ordered, cumulative = others[order], np.append(0.0, share[order].cumsum())
    lower = cumulative[np.searchsorted(ordered, values, side="left")]
    upper = cumulative[np.searchsorted(ordered, values, side="right")]
    return np.asarray((lower + upper) / 2)
