"""Weights by distinct points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unskew.rows.sample import Sample
from unskew.weighters.cells import FEWEST_ROWS_A_CELL, Cells, CellWeighter
from unskew.weighters.grid import GridPartition, Values
from unskew.weighters.next_step import NextStep


class FrequencyWeights(CellWeighter):
    r"""Weights :math:`n_x / m_x`: how often a point occurs in the population and in the sample.

    The paper's estimate :math:`m_x / n_x` of :math:`\Pr[s = 1 \mid x]` for points of a discrete
    set. Use it for a few columns with few values each; other data need cells that are larger than
    a point.

    Parameters
    ----------
    <CellWeighter parameters>
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
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

    traits = replace(
        CellWeighter.traits,
        assumes="rows with equal values are equally likely to be selected",
        uncovered_means="the share of the population at points that no sample row has",
        saved_types=(
            *CellWeighter.traits.saved_types,
            "unskew.numerics.row_keys.DistinctRows",
            "unskew.weighters.grid.GridPartition",
            "unskew.weighters.grid.Values",
        ),
    )

    @property
    def partition_assumption(self) -> str:
        """What a certificate has to assume of the points."""
        return "cells are points, and the points that no sample row has are allowed for"

    def coverage_advice(self) -> NextStep | None:
        """Return how to leave less of the population uncovered."""
        points, rows = len(self.sample_counts_), self.sample_counts_.sum()
        if points * FEWEST_ROWS_A_CELL <= rows:
            return None
        return NextStep(
            f"{rows:,.0f} sample rows are {points:,} distinct points, and a point represents only "
            "population rows that equal it",
            weighters=("TreeWeights", "HistogramWeights"),
            fewer_columns=True,
        )

    def _cells(self, sample: Sample) -> list[Cells]:
        values = sample.values
        partition = GridPartition([Values.of(column) for column in values.T], values)
        return [Cells(sample.codes, partition, values, np.arange(len(sample)))]
