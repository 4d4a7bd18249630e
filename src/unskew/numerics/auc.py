"""The area under the curve that ranks rows of one side above rows of the other."""

from __future__ import annotations

import numpy as np

from unskew.numerics.typing import FloatArray


def weighted_auc(
    scores: FloatArray, sample: FloatArray, population: FloatArray
) -> tuple[float, float, float]:
    """Return the weighted AUC, its standard error, and its standard error under the null.

    The first standard error is DeLong's, DeLong's and Clarke-Pearson's (Biometrics 44, 1988), with
    weights: it uses the placement of each row among the rows of the other side. The second assumes
    that the scores are independent of the sides.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    sample, population : ndarray of shape (n,)
        The mass of each row in the sample and in the population. A row may be in both: its two
        placements are those of one row, and largely cancel.

    Examples
    --------
    >>> sample = np.array([0, 0, 1, 1])
    >>> auc, *_ = weighted_auc(np.array([0.1, 0.4, 0.3, 0.9]), sample, 1 - sample)
    >>> auc
    0.75
    """
    sample, population = sample / sample.sum(), population / population.sum()
    ranks = _Ranks(scores)
    above = ranks.share_below(population)
    below = 1.0 - ranks.share_below(sample)
    auc = float(sample @ above)
    variance = float(np.square(sample * (above - auc) + population * (below - auc)).sum())
    # Under the null a placement is uniform, with variance 1/12; ties reduce it.
    pooled = (sample + population) / 2
    spread = float(pooled @ (ranks.share_below(pooled) - 0.5) ** 2)
    null_variance = spread * float(np.square(sample - population).sum())
    return auc, float(np.sqrt(variance)), float(np.sqrt(null_variance))


class _Ranks:
    """Where each score stands among all of them."""

    def __init__(self, scores: FloatArray) -> None:
        self._order = np.argsort(scores, kind="stable")
        ordered = scores[self._order]  # in order, they are found in a fraction of the time
        places = np.empty((2, len(scores)), dtype=np.intp)
        places[0, self._order] = np.searchsorted(ordered, ordered, side="left")
        places[1, self._order] = np.searchsorted(ordered, ordered, side="right")
        self._lower, self._upper = places

    def share_below(self, share: FloatArray) -> FloatArray:
        """Return the share of the rows below each, plus half of the share equal to it."""
        cumulative = np.append(0.0, share[self._order].cumsum())
        return np.asarray((cumulative[self._lower] + cumulative[self._upper]) / 2)
