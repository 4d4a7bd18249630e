"""Weights by distinct points."""

from __future__ import annotations

import numpy as np

from unskew.population.encode import ColumnCodes
from unskew.weighters.base import Sample
from unskew.weighters.cells import Cells, CellWeighter, Empty
from unskew.weighters.grid import GridPartition, Values
from unskew.weighters.typing import OnUncovered, Total


class FrequencyWeights(CellWeighter):
    r"""Weights :math:`n_x / m_x`: how often a point occurs in the population and in the sample.

    The paper's estimate :math:`m_x / n_x` of :math:`\Pr[s = 1 \mid x]` for points of a discrete
    set. Use it for a few columns with few values each; other data want cells that are larger than
    a point.

    Parameters
    ----------
    empty : {"merge", "drop", "raise"}, default="merge"
        What becomes of population rows at points that no sample row has: they are counted with the
        nearest sample row's (in the standardised feature space), left out, or refused. The first
        two warn when it is more than 1 % of the population.
    total : {"sample", "population"}, default="sample"
        What the weights sum to: the number of sample rows, or the population's size.
    overlap : {"warn", "raise", "ignore"} or float, default="warn"
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
    uncovered_ : float
        The share of the population at points that no sample row has.
    cells_ : ndarray of shape (n_samples,)
        The number of each row's point.
    sample_counts_, population_counts_ : ndarray of shape (n_cells,)
        How often each point occurs.

    Examples
    --------
    >>> from unskew import FrequencyWeights
    >>> sample = [["north"], ["north"], ["south"]]
    >>> population = [["north"]] * 50 + [["south"]] * 50
    >>> FrequencyWeights().fit(sample, population=population).weights_
    array([0.75, 0.75, 1.5 ])
    """

    def __init__(
        self, *, empty: Empty = "merge", total: Total = "sample", overlap: OnUncovered = "warn"
    ) -> None:
        self.empty = empty
        self.total = total
        self.overlap = overlap

    def _partition_assumption(self) -> str:
        return "cells are points, and the points that no sample row has are allowed for"

    def _cells(self, sample: Sample) -> Cells:
        encoder = ColumnCodes().fit(sample.rows.batch)
        values = encoder.transform(sample.rows.batch, side="sample").values
        partition = GridPartition([Values.of(column) for column in values.T], values)
        return Cells(encoder, partition, np.arange(len(sample)))
