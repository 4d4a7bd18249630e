r"""Is selection even within cells? A test that looks for where it is not.

Under the hypothesis every row of a cell was equally likely to be selected. Then, given the
population, some rows of the sample (maybe none) and how many there are in each cell, the others of
a cell are an even draw, without replacement, from its population rows less the first. For any score
f(x), the sum of the :math:`s_C` scores in cell C has

.. math:: E = s_C \bar f_C, \qquad \mathrm{Var} = s_C (1 - s_C / N_C)\,\sigma^2_C,      \tag{1}

where N, the mean and the variance are those of the rows that could have been drawn. Summed over the
cells, the difference from the expectation over its standard deviation, z, is compared with a normal
distribution; small cells add up. This is the score test of the likelihood ratio between a rate for
each cell and rates that change with f. The scores are

1. the rank of each column, tested with the whole sample, on both sides;
2. what a tree learns from one half of the sample, weighted so that each cell counts as much as in
   the population: where the sample is denser than the population. The other half tests it, on one
   side, for the score says where more rows are to be expected; then the halves change places.

The p-value is the least of them, times their number (the two kinds count alike).

Where only some rows of the population were drawn, they estimate the others, each of which stands
for e rows, and the error of that adds to the variance of cell C, with :math:`k_C` such rows,

.. math:: s_C^2\, k_C\, e (e - 1)\, \sigma^2_C / N_C^2.                              \tag{2}

For the tree, one half of them learns and the other half estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from unskew.numerics.typing import BoolArray, FloatArray, IntArray

MAX_LEAVES = 16
"""Leaves of the tree: enough for a band or a corner. Not tuned."""

MIN_LEAF = 10
"""Rows in a leaf of the tree at least; fewer are noise. Not tuned."""

GROWING_ROWS = 10_000
"""Sample rows from which a tree grows at most: as many as a weighter keeps of the population."""

FEWEST_DRAWN = 10
"""Rows that must have been drawn from the population in a cell, where not all of them were: with
fewer the cell's mean is too uncertain, and what follows from it not normal."""


class InCells(NamedTuple):
    """Rows as numbers, and the cell of each; -1 for none."""

    values: NDArray[Any]
    cells: IntArray

    def take(self, where: BoolArray) -> InCells:
        """Return some of the rows."""
        return InCells(self.values[where], self.cells[where])


def even_within_cells(
    sample: InCells, drawn: InCells, n_rows: float, *, seed: int = 0
) -> float | None:
    """Return the p-value of selection that is even within cells.

    Parameters
    ----------
    sample : InCells
        Part of the population.
    drawn : InCells
        All rows of the population, or a uniform random sample of them.
    n_rows : float
        How many rows the population has.
    seed : int
        Of the halves, and of the tree's ties.

    Returns
    -------
    float or None
        None where less than half of the sample lies in cells that can be tested.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> population = InCells(random.uniform(size=(2000, 1)), np.repeat([0, 1], 1000))
    >>> even = random.uniform(size=2000) < np.repeat([0.2, 0.6], 1000)
    >>> uneven = random.uniform(size=2000) < population.values[:, 0]
    >>> even_within_cells(population.take(even), population, 2000) > 0.05
    True
    >>> even_within_cells(population.take(uneven), population, 2000) < 0.01
    True
    """
    whole = len(drawn.cells) >= n_rows
    size = len(sample.cells)
    n_rows = n_rows * float((drawn.cells >= 0).mean())
    sample, drawn = _testable(sample, drawn, 1 if whole else FEWEST_DRAWN)
    if 2 * len(sample.cells) < size or len(sample.cells) < 4:
        return None
    rest = 0.0 if whole else n_rows
    sample, drawn = _ranked(sample, drawn)
    by_column = _z_of_columns(sample, drawn, rest)
    p_columns = 2 * len(by_column) * float(norm.sf(np.abs(by_column).max()))
    p_tree = 2 * float(norm.sf(max(_z_of_trees(sample, drawn, rest, seed))))
    return min(1.0, 2 * min(p_columns, p_tree))


def _ranked(sample: InCells, drawn: InCells) -> tuple[InCells, InCells]:
    """Return each value's rank among the rows drawn, between zero and one; ties share theirs."""
    ranks = [np.empty_like(side.values) for side in (sample, drawn)]
    for column in range(drawn.values.shape[1]):
        known = np.sort(drawn.values[:, column])
        for side, rank in zip((sample, drawn), ranks, strict=True):
            # Between the first and the last place of equal values; a value that is not among those
            # drawn has the share of those below it.
            places = [
                np.searchsorted(known, side.values[:, column], end) for end in ("left", "right")
            ]
            rank[:, column] = (places[0] + places[1]) / (2 * len(known))
    return sample._replace(values=ranks[0]), drawn._replace(values=ranks[1])


def _z_of_columns(sample: InCells, drawn: InCells, rest: float) -> FloatArray:
    nobody = np.zeros(len(sample.cells), dtype=bool)
    known = np.full(len(drawn.cells), not rest)
    columns = zip(sample.values.T, drawn.values.T, strict=True)
    return np.array([_z(sample, drawn, scores, nobody, known, rest) for scores in columns])


def _z_of_trees(sample: InCells, drawn: InCells, rest: float, seed: int) -> Iterator[float]:
    random = np.random.RandomState(seed)
    first = _half(len(sample.cells), random)
    known = _half(len(drawn.cells), random) if rest else np.ones(len(drawn.cells), dtype=bool)
    for half, grow in ((first, known), (~first, ~known if rest else known)):
        scores = _tree_scores(sample, half, drawn, grow, seed)
        yield _z(sample, drawn, scores, half, grow, rest)


def _testable(sample: InCells, drawn: InCells, least: int) -> tuple[InCells, InCells]:
    """Return the rows in cells with enough rows drawn; values that are missing become the least."""
    sample, drawn = (side.take(side.cells >= 0) for side in (sample, drawn))
    n_cells = int(max(sample.cells.max(initial=-1), drawn.cells.max(initial=-1))) + 1
    enough = np.bincount(drawn.cells, minlength=n_cells) >= least
    sample, drawn = (side.take(enough[side.cells]) for side in (sample, drawn))
    stacked = np.nan_to_num(np.concatenate([sample.values, drawn.values]), nan=-np.inf)
    # Cells get numbers without gaps, so that counts are short.
    _, cells = np.unique(np.concatenate([sample.cells, drawn.cells]), return_inverse=True)
    m = len(sample.cells)
    return InCells(stacked[:m], cells[:m]), InCells(stacked[m:], cells[m:])


def _half(size: int, random: np.random.RandomState) -> BoolArray:
    half = np.zeros(size, dtype=bool)
    half[random.permutation(size)[: size // 2]] = True
    return half


def _z(
    sample: InCells,
    drawn: InCells,
    scores: tuple[FloatArray, FloatArray],
    first: BoolArray,
    known: BoolArray,
    rest: float,
) -> float:
    """Return by how many standard deviations the scores of the sample exceed what is expected.

    ``scores`` are those of the sample's rows and of the rows drawn. Sample rows that are ``first``
    are not tested, but could not have been drawn again. Of the rows drawn from the population, the
    ``known`` count once, and the others stand for all that are left of ``rest``, the number of the
    population's rows.
    """
    of_sample, of_drawn = scores
    n_cells = int(max(sample.cells.max(), drawn.cells.max())) + 1
    n_others = int((~known).sum())
    expansion = (rest - known.sum()) / n_others if n_others else 1.0
    stands_for = np.where(known, 1.0, expansion)

    def left(power: int) -> FloatArray:
        """Sum the powers of the scores that could be drawn: the population's less the first's."""
        population = np.bincount(drawn.cells, stands_for * of_drawn**power, n_cells)
        taken = np.bincount(sample.cells[first], of_sample[first] ** power, n_cells)
        return np.asarray(population - taken, dtype=np.float64)

    # 1) How many rows of each cell are tested, what their scores sum to, and N.
    tested = np.bincount(sample.cells[~first], minlength=n_cells)
    sums = np.bincount(sample.cells[~first], of_sample[~first], n_cells)
    rows = left(0)
    # A cell of one row has no variance; one with fewer rows than were tested was estimated badly.
    used = (tested > 0) & (rows >= np.maximum(tested, 2) - 0.5)
    s, N = tested[used], rows[used]
    # 2) The mean and the variance of the scores that could be drawn, the latter without bias.
    mean = left(1)[used] / N
    variance = np.maximum(left(2)[used] / N - mean**2, 0.0) * N / (N - 1)
    # 3) The difference from the expectation, and its variance by (1) and (2).
    more = float((sums[used] - s * mean).sum())
    estimated = np.bincount(drawn.cells[~known], minlength=n_cells)[used]
    noise = s**2 * estimated * expansion * (expansion - 1) / N**2
    spread = float((variance * (s * np.maximum(1 - s / N, 0.0) + noise)).sum())
    return more / np.sqrt(spread) if spread > 0 else 0.0


def _tree_scores(
    sample: InCells, first: BoolArray, drawn: InCells, growing: BoolArray, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return the score of each row: the share of the sample in its leaf, if cells count evenly."""
    from sklearn.tree import DecisionTreeClassifier

    n_cells = int(max(sample.cells.max(), drawn.cells.max())) + 1
    grown = np.flatnonzero(first)
    if len(grown) > GROWING_ROWS:
        grown = np.random.RandomState(seed).choice(grown, GROWING_ROWS, replace=False)
    half, others = InCells(sample.values[grown], sample.cells[grown]), drawn.take(growing)
    in_half, in_drawn = (np.bincount(side.cells, minlength=n_cells) for side in (half, others))
    both = (in_half > 0) & (in_drawn > 0)
    # Sample rows count as many times as makes their cell as large as in the population: what the
    # tree finds are differences within cells, not between them.
    ratio = np.divide(in_drawn, in_half, out=np.zeros(n_cells), where=both)
    half, others = (side.take(both[side.cells]) for side in (half, others))
    if not len(half.cells):
        return np.zeros(len(sample.cells)), np.zeros(len(drawn.cells))
    tree = DecisionTreeClassifier(
        max_leaf_nodes=MAX_LEAVES, min_samples_leaf=MIN_LEAF, random_state=seed
    ).fit(
        np.concatenate([half.values, others.values]),
        np.repeat([1, 0], [len(half.cells), len(others.cells)]),
        sample_weight=np.concatenate([ratio[half.cells], np.ones(len(others.cells))]),
    )
    return tree.predict_proba(sample.values)[:, 1], tree.predict_proba(drawn.values)[:, 1]
