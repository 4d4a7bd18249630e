"""Resampling: an unweighted sample in place of a weighted one, for learners without weights."""

from __future__ import annotations

import numpy as np

from unskew.numerics.typing import BoolArray, FloatArray, IntArray


def multiplicities(weights: FloatArray, size: int, random: np.random.RandomState) -> IntArray:
    r"""Return how often each row occurs in a sample of ``size`` rows that follows the weights.

    The paper's :math:`S'`, in which a row's multiplicity reflects its weight. Rounding is by
    systematic sampling: a row that should occur :math:`a` times occurs :math:`\lfloor a \rfloor` or
    :math:`\lceil a \rceil` times and :math:`a` times on average, so that rows with small weights
    are kept in proportion.

    Examples
    --------
    >>> multiplicities(np.array([2.0, 1.0, 1.0]), 8, np.random.RandomState(0))
    array([4, 2, 2])
    """
    reached = np.cumsum(weights)
    reached *= size / reached[-1]
    reached[-1] = size
    # Systematic sampling: points one apart with a random offset; each row gets those that fall
    # into its interval of the cumulated weights.
    points_below = np.ceil(reached - random.uniform()).astype(np.int64)
    return np.diff(np.clip(points_below, 0, size), prepend=0)


def rejection(weights: FloatArray, random: np.random.RandomState) -> BoolArray:
    """Return which rows are accepted, each with probability ``w / max w``.

    Zadrozny, Langford and Abe, "Cost-sensitive learning by cost-proportionate example weighting",
    ICDM 2003: the accepted rows are an unweighted sample of the distribution that the weights
    describe.

    Examples
    --------
    >>> rejection(np.array([1.0, 0.0, 1.0]), np.random.RandomState(0))
    array([ True, False,  True])
    """
    accepted: BoolArray = random.uniform(size=len(weights)) * weights.max() < weights
    return accepted
