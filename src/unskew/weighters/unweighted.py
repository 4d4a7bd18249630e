"""Every row counts once: the baseline."""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.numerics.typing import FloatArray
from unskew.population.population import Population
from unskew.weighters.base import InductiveWeighter, Sample
from unskew.weighters.rules import Rule
from unskew.weighters.typing import OnUncovered, Total


class Unweighted(InductiveWeighter):
    """Equal weights: no correction at all, for comparison.

    The paper's *Unweighted* column. Design weights, where given, are kept.

    Parameters
    ----------
    total : {"sample", "population"}, default="sample"
        What the weights sum to: the number of sample rows, or the population's size.
    overlap : {"warn", "raise", "ignore"} or float, default="ignore"
        What to do where the sample does not reach part of the population. "warn" if the method
        leaves more than 1 % of it uncovered, or if regions without sample rows hold more than 5 %
        of it; "raise" an ``OverlapError`` at 1 % and 5 %, a number at that share of either.
        ``overlap_`` tells in words which regions. "ignore" also saves the time that looking for
        them takes.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
    overlap_ : Overlap or None
        Which part of the population the sample does not reach, and where; None if ignored.

    Examples
    --------
    >>> from unskew import Unweighted
    >>> Unweighted().fit([[1.0], [2.0]], population=[[1.0], [2.0], [3.0]]).weights_
    array([1., 1.])
    """

    _not_certifiable = (
        "Unweighted makes no correction, so there is no estimate whose error could be bounded."
    )

    def __init__(self, *, total: Total = "sample", overlap: OnUncovered = "ignore") -> None:
        self.total = total
        self.overlap = overlap

    def _fit(self, sample: Sample, population: Population) -> FloatArray:
        population.mass  # noqa: B018  (an empty or unreadable population is an error here too)
        return sample.design

    def _weigh(self, sample: Sample) -> FloatArray:
        return np.ones(len(sample))

    def _rule(self) -> Rule:
        return _even


def _even(batch: Any) -> FloatArray:
    return np.ones(len(batch))
