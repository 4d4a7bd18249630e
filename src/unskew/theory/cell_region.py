r"""Weights that the counts of cells allow: binomial counts, and the region they leave.

A cell weighter's weights are ratios of counts. Given the population, the number of sample rows of a
cell is binomial, so that the counts confine the relative error t of each cell's weight to a box and
an ellipsoid (:mod:`unskew.numerics.joint_region`). A row's perfect weight over its estimated one is
:math:`\rho = s + f\,(1 + t)`, which :class:`BinomialCells` keeps for each row. On the leaves of a
tree, :func:`coarser` merges cells that may share one probability of selection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from unskew.numerics.joint_region import RelativeErrors, relative_errors
from unskew.numerics.typing import FloatArray, IntArray
from unskew.theory.assumption_tests import EvenSelection, even_selection
from unskew.theory.bound import not_covered
from unskew.theory.cell_bounds import PARTITION
from unskew.theory.regions import (
    Contributions,
    LinearContributions,
    RegionWords,
    WeightRegion,
    why_no_region,
)
from unskew.weighters.cells import CellWeighter

MOST_UNCOVERED = 0.01
"""The share of the population without sample rows up to which the certificate neglects it, and says
so among its assumptions: the share at which weighters begin to warn."""


@dataclass(frozen=True)
class BinomialCells:
    r"""Cells whose counts are binomial, and how the weights depend on the counts.

    A row's perfect weight over its estimated one is :math:`\rho = s + f\,(1 + t)`, where t is the
    relative error of its cell's count. For a partition that counts every sample row, s is 0 and f
    is 1.

    Attributes
    ----------
    of_row : ndarray of int of shape (m,)
        The cell of each sample row.
    successes, trials : ndarray of shape (k,)
        The binomial counts.
    unseen : int
        How many further cells there may be, that hold population rows but no sample row.
    shift, factor : ndarray of shape (m,)
        The s and f of each row.
    names : ndarray of int of shape (k,)
        What the weighter calls each cell.
    sample, population : ndarray of shape (k,)
        How many rows each cell holds.
    assumptions : tuple of str
    even : EvenSelection
        The test of whether selection is even within the cells.
    """

    of_row: IntArray
    successes: FloatArray
    trials: FloatArray
    unseen: int
    shift: FloatArray
    factor: FloatArray
    names: IntArray
    sample: FloatArray
    population: FloatArray
    assumptions: tuple[str, ...]
    even: EvenSelection

    def errors(self, delta: float) -> RelativeErrors:
        """Return the region that holds the relative errors with probability 1 − δ."""
        # Cells that hold no sample row count among the cells of the union bound; their own weights
        # are zero. There are at most as many as population rows outside of the other cells.
        successes = np.append(self.successes, np.zeros(self.unseen))
        trials = np.append(self.trials, np.ones(self.unseen))
        return relative_errors(successes, trials, delta).first(len(self.successes))

    def named(self, place: int) -> tuple[int, float, float]:
        """Return what the weighter calls a cell, and how many rows of both sides it holds."""
        return self.names[place], self.sample[place], self.population[place]

    def ratios(self, rows: IntArray, errors: FloatArray) -> FloatArray:
        """Return perfect over estimated weight of these rows, for relative errors of the cells."""
        return self.shift[rows] + self.factor[rows] * (1 + errors[self.of_row[rows]])


@dataclass(frozen=True)
class CellRegion(WeightRegion):
    """All weights that the counts of cells allow."""

    cells: BinomialCells
    errors: RelativeErrors
    rows: IntArray
    """The places in the sample of the rows that contribute."""
    factors: csr_array = field(init=False)
    """A column for each cell: by how much an error of its count changes each row's ratio."""
    fixed: FloatArray = field(init=False)
    """Each row's change of the ratio that no count leaves open."""
    least: FloatArray = field(init=False)
    most: FloatArray = field(init=False)

    words: RegionWords = WeightRegion.words

    @classmethod
    def from_cells(
        cls, cells: BinomialCells, delta: float, rows: IntArray, *, coarse: bool = False
    ) -> CellRegion:
        """Return the region that holds the perfect weights with probability 1 − δ."""
        terms: dict[str, float] = {"delta": delta}
        if cells.even.p_value is not None:
            terms["p-value of even selection within cells"] = cells.even.p_value
        if coarse:
            terms["cells"] = len(cells.successes)
        shared = "all leaves under one node of the pruned tree share one probability of selection"
        likely = f"With probability {100 * (1 - delta):.6g} %"
        words = RegionWords(
            headline=f"{cells.even.headline(likely)}, estimating the weights has moved",
            region=f"the counts of {len(cells.successes)} cells",
            assumptions=(*cells.assumptions, shared) if coarse else cells.assumptions,
            remarks=(cells.even.remark,),
            terms=terms,
        )
        return cls(cells, cells.errors(delta), rows, words=words)

    def __post_init__(self) -> None:
        size = (len(self.rows), len(self.cells.successes))
        entries = (np.arange(size[0]), self.cells.of_row[self.rows])
        factors = csr_array((self.cells.factor[self.rows], entries), size)
        fixed = self.cells.shift[self.rows] + self.cells.factor[self.rows] - 1
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "fixed", fixed)
        object.__setattr__(self, "least", self.cells.ratios(self.rows, self.errors.low))
        object.__setattr__(self, "most", self.cells.ratios(self.rows, self.errors.high))

    def has_few_rows(self, fewest: int) -> bool:
        """Whether cells hold fewer rows than so many on average."""
        return len(self.cells.successes) * fewest > len(self.rows)

    def pull(self, rows: Contributions) -> tuple[float, int]:
        """Return the largest norm over the counts, and the cell that has the largest part."""
        # Σ_i (ρ_i − 1) v_i is a sum over cells times their errors t, and what is fixed whatever
        # they are: ρ − 1 = (s + f − 1) + f t.
        worst, dominant = rows.worst(self.errors, self.factors)
        if self.fixed.any():
            worst += math.sqrt(max(float(rows.gram(self._fixed_column)[0, 0]), 0.0))
        return worst, dominant

    @cached_property
    def _fixed_column(self) -> FloatArray:
        return self.fixed[:, None]

    def along(self, rows: LinearContributions) -> tuple[FloatArray, FloatArray]:
        """Return the sums of the cells' vectors in units of the ellipsoid, and what is fixed."""
        # Σ c t² ≤ r is t = (r / c)^{1/2} e with |e| ≤ 1.
        scale = math.sqrt(self.errors.radius) / np.sqrt(self.errors.stiffness)
        vectors = scale[:, None] * rows.sums(self.factors)
        if len(vectors) > vectors.shape[1]:  # the same ellipsoid, with fewer numbers
            vectors = np.asarray(np.linalg.qr(vectors, mode="r"))
        return vectors, rows.sums(self._fixed_column)[0]

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray:
        """Draw each cell's probability of selection from its posterior under Jeffreys' prior."""
        # The error of a cell's weight is t = q̂ / q − 1 for its probability q.
        m, n = self.cells.successes, self.cells.trials
        rate = random.beta(m + 0.5, n - m + 0.5, size=(number, len(m)))
        errors = (m / n) / rate - 1
        return np.column_stack([self.cells.ratios(self.rows, row) for row in errors])


def read_cells(weighter: Any, weights: FloatArray) -> BinomialCells:
    """Return the counts of a fitted cell weighter, or raise why they are not binomial."""
    # 1) Refuse what the theory does not cover.
    _check_covered(weighter, weights)
    cells, sample = weighter.cells_, weighter.sample_counts_
    population = np.rint(weighter.population_counts_)
    held = np.bincount(cells[cells >= 0], minlength=len(sample)).astype(np.float64)
    _check_binomial(weighter, held)
    # 2) Number the cells that hold sample rows, and count those that do not.
    used = np.flatnonzero(held > 0)
    place = np.full(len(sample) + 1, -1)
    place[used] = np.arange(len(used))
    of_row = place[cells]
    m, n, rows = sample[used], population[used], held[used]
    total = float(weighter.population_counts_.sum())
    unseen = int(np.ceil(weighter.uncovered_ * total)) + int(((population > 0) & (held == 0)).sum())
    rest = _assumptions(weighter), even_selection(weighter)
    # 3) Each sample row was counted with the probability of selection q, and the weight is n/m.
    if not weighter.counts_one_half:
        ones = np.ones(len(cells))
        return BinomialCells(of_row, m, n, unseen, 0 * ones, ones, used, rows, n, *rest)
    # Or each selected row went to the counted half with probability 1/2. Given the other half, on
    # which the tree grew, a row outside it was counted with probability π = (q/2) / (1 - q/2), so
    # that 2/q = 1 + 1/π: the ratio is (m/n)(1 + 1/π) = m/n + (1 - grown/n)(1 + t).
    trials = n - (rows - m)
    shift, factor = (m / n)[of_row], (trials / n)[of_row]
    return BinomialCells(of_row, m, trials, unseen, shift, factor, used, rows, n, *rest)


def _check_covered(weighter: Any, weights: FloatArray) -> None:
    """Raise an error unless the weights are ratios of counts, for all but a few rows."""
    if not isinstance(weighter, CellWeighter):
        not_covered(why_no_region(weighter))
    if weighter.uncovered_ > MOST_UNCOVERED:
        not_covered(
            f"{weighter.uncovered_:.1%} of the population lies in cells without sample rows, and "
            "the counts cannot bound the error that follows. Use larger cells."
        )
    cells = weighter.cells_
    if (cells[weights > 0] < 0).any():
        not_covered(
            f"{int((cells[weights > 0] < 0).sum())} sample rows lie in cells in which no row was "
            "counted, so their weights were not estimated. Use larger cells."
        )


def _check_binomial(weighter: CellWeighter, held: FloatArray) -> None:
    """Raise an error unless counts are whole and the sample can be part of the population."""
    population = np.rint(weighter.population_counts_)
    sample = weighter.sample_counts_
    whole = np.array_equal(sample, held) or (
        weighter.counts_one_half and (sample == np.rint(sample)).all()
    )
    if not whole or (
        weighter.uncovered_ == 0 and not np.allclose(weighter.population_counts_, population)
    ):
        not_covered("design weights give counts that are not binomial.")
    used = held > 0
    if (population[used] < held[used]).any():
        cell = int(np.flatnonzero(used & (population < held))[0])
        not_covered(
            f"cell {cell} has {held[cell]:.0f} sample rows and {population[cell]:.0f} population "
            "rows, but the theory needs a sample that is part of the population."
        )


def coarser(cells: BinomialCells, weighter: Any, least: int) -> BinomialCells | None:
    """Return the cells of the pruned tree in which each counts ``least`` rows, or None.

    None where the cells are not leaves of a tree, or are large enough already. The weights stay
    those of the leaves; what is assumed is that all leaves of a coarser cell share one probability,
    so that the differences between their estimates are noise of known size.
    """
    if not hasattr(weighter, "tree_") or cells.successes.min() >= least:
        return None
    tree = weighter.tree_.tree_
    counted = np.zeros(tree.node_count)
    counted[cells.names] = cells.successes
    ancestor = _pruned(tree.children_left, tree.children_right, counted, least)
    merged, group = np.unique(ancestor[cells.names], return_inverse=True)
    if len(merged) == len(cells.names):
        return None
    successes, trials = sums_by(group, cells.successes), sums_by(group, cells.trials)
    fine, coarse = cells.successes / cells.trials, successes / trials
    # π̂_C / π_D = (π̂_C / π̂_D)(1 + t_D).
    return replace(
        cells,
        of_row=group[cells.of_row],
        successes=successes,
        trials=trials,
        factor=cells.factor * (fine / coarse[group])[cells.of_row],
        names=merged,
        sample=sums_by(group, cells.sample),
        population=sums_by(group, cells.population),
        even=even_selection(weighter, ancestor),
    )


def sums_by(group: IntArray, values: FloatArray, n_groups: int = 0) -> FloatArray:
    """Return the sum of the values in each group."""
    return np.bincount(group, weights=values, minlength=n_groups).astype(np.float64)


def _pruned(left: IntArray, right: IntArray, counts: FloatArray, least: int) -> IntArray:
    """Return each node's coarser cell: a node is split only if both children are large enough."""
    total = counts.copy()
    for node in range(len(left) - 1, -1, -1):  # scikit-learn numbers children after their parents
        if left[node] >= 0:
            total[node] = total[left[node]] + total[right[node]]
    ancestor = np.arange(len(left))
    for node in range(len(left)):
        if left[node] < 0:
            continue
        stop = ancestor[node] != node or min(total[left[node]], total[right[node]]) < least
        for child in (left[node], right[node]):
            ancestor[child] = ancestor[node] if stop else child
    return ancestor


def _assumptions(weighter: CellWeighter) -> tuple[str, ...]:
    selected, _, shared = PARTITION
    assumptions = (selected, weighter.partition_assumption, shared)
    if weighter.uncovered_ == 0:
        return assumptions
    return (
        *assumptions,
        f"the {weighter.uncovered_:.2%} of the population in cells without sample rows are "
        "neglected",
    )
