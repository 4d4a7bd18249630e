"""Weights by distinct points."""

from __future__ import annotations

import numpy as np

from unskew.population.encode import ColumnCodes
from unskew.weighters.base import Sample
from unskew.weighters.cells import Cells, CellWeighter, Empty
from unskew.weighters.grid import GridPartition, Values
from unskew.weighters.typing import Total


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

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
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

    def __init__(self, *, empty: Empty = "merge", total: Total = "sample") -> None:
        self.empty = empty
        self.total = total

    def _cells(self, sample: Sample) -> Cells:
        encoder = ColumnCodes().fit(sample.rows.batch)
        values = encoder.transform(sample.rows.batch, side="sample").values
        partition = GridPartition([Values.of(column) for column in values.T], values)
        return Cells(encoder, partition, np.arange(len(sample)))
