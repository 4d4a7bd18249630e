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

The p-value is the least of them, times their number (the two kinds count alike). The tree is grown
best split first by the decrease of Gini's impurity, as scikit-learn's with ``max_leaf_nodes``, from
sums over bins: with few leaves it takes a tenth of the time.

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

BINS = 128
"""Of each column, at quantiles: enough for a tree of few leaves."""

GROWING_ROWS = 10_000
"""Sample rows from which a tree grows at most: as many as a weighter keeps of the population."""

FEWEST_DRAWN = 10
"""Rows that must have been drawn from the population in a cell, where not all of them were: with
fewer the cell's mean is too uncertain, and what follows from it not normal."""


class _ScoredRows(NamedTuple):
    """The cell and the score of each row."""

    cells: IntArray
    scores: FloatArray


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
    of_sample, of_drawn = np.empty_like(sample.values), np.empty_like(drawn.values)
    for column in range(of_sample.shape[1]):
        values = np.ascontiguousarray(drawn.values[:, column])
        order = np.argsort(values)
        known = values[order]
        # The first and the last place of each value, among those sorted.
        ends = np.append(np.flatnonzero(known[1:] != known[:-1]), len(known) - 1)
        size = np.diff(ends, prepend=-1)
        middle = np.repeat(2 * ends - size + 2, size) / (2 * len(known))
        of_drawn[order, column] = middle
        values = np.ascontiguousarray(sample.values[:, column])
        order = np.argsort(values)  # sorted ones are looked up faster
        wanted = values[order]
        place = np.searchsorted(known, wanted)
        found = np.minimum(place, len(known) - 1)
        # A value between those drawn has as its rank the share of those below it.
        between = place / len(known)
        of_sample[order, column] = np.where(known[found] == wanted, middle[found], between)
    return sample._replace(values=of_sample), drawn._replace(values=of_drawn)


def _z_of_columns(sample: InCells, drawn: InCells, rest: float) -> FloatArray:
    nobody = np.zeros(len(sample.cells), dtype=bool)
    known = np.full(len(drawn.cells), not rest)

    def of_column(column: int) -> float:
        sides = (_ScoredRows(side.cells, side.values[:, column]) for side in (sample, drawn))
        return _z(next(sides), nobody, next(sides), known, rest)

    return np.array([of_column(column) for column in range(sample.values.shape[1])])


def _z_of_trees(sample: InCells, drawn: InCells, rest: float, seed: int) -> Iterator[float]:
    random = np.random.RandomState(seed)
    first = _half(len(sample.cells), random)
    known = _half(len(drawn.cells), random) if rest else np.ones(len(drawn.cells), dtype=bool)
    binned = [
        side._replace(values=np.minimum(side.values * BINS, BINS - 1).astype(np.int64))
        for side in (sample, drawn)
    ]
    for half, grow in ((first, known), (~first, ~known if rest else known)):
        of_sample, of_drawn = _tree_scores(binned[0], half, binned[1], grow, seed)
        yield _z(
            _ScoredRows(sample.cells, of_sample),
            half,
            _ScoredRows(drawn.cells, of_drawn),
            grow,
            rest,
        )


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
    sample: _ScoredRows, first: BoolArray, drawn: _ScoredRows, known: BoolArray, rest: float
) -> float:
    """Return by how many standard deviations the scores of the sample exceed what is expected.

    Sample rows that are ``first`` are not tested, but could not have been drawn again. Of the rows
    drawn from the population, the ``known`` count once, and the others stand for all that are left
    of ``rest``, the number of the population's rows.
    """
    n_cells = int(max(sample.cells.max(), drawn.cells.max())) + 1
    n_others = int((~known).sum())
    expansion = (rest - known.sum()) / n_others if n_others else 1.0
    stands_for = np.where(known, 1.0, expansion)

    def left(power: int) -> FloatArray:
        """Sum the powers of the scores that could be drawn: the population's less the first's."""
        population = np.bincount(drawn.cells, stands_for * drawn.scores**power, n_cells)
        taken = np.bincount(sample.cells[first], sample.scores[first] ** power, n_cells)
        return np.asarray(population - taken, dtype=np.float64)

    # 1) How many rows of each cell are tested, what their scores sum to, and N.
    tested = np.bincount(sample.cells[~first], minlength=n_cells)
    sums = np.bincount(sample.cells[~first], sample.scores[~first], n_cells)
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
    """Return the score of each row: the share of the sample in its leaf, if cells count evenly.

    The rows' values are in bins.
    """
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
    of_sample, of_drawn = tree_shares(
        np.concatenate([half.values, others.values]),
        np.repeat([True, False], [len(half.cells), len(others.cells)]),
        np.concatenate([ratio[half.cells], np.ones(len(others.cells))]),
        of=(sample.values, drawn.values),
        max_leaves=MAX_LEAVES,
        min_leaf=MIN_LEAF,
    )
    return of_sample, of_drawn


class _Split(NamedTuple):
    column: int
    last: int
    """The last bin on the left."""
    gain: float


class _Node(NamedTuple):
    """Rows, the sums over their bins, and their best split."""

    rows: IntArray
    sums: FloatArray
    split: _Split


def tree_shares(
    codes: IntArray,
    own: BoolArray,
    weight: FloatArray,
    *,
    of: tuple[IntArray, ...],
    max_leaves: int,
    min_leaf: int,
) -> list[FloatArray]:
    """Grow a tree, and return the first class's share of the weight in the leaf of each row.

    Parameters
    ----------
    codes : ndarray of int of shape (n, d)
        The bin of each value, below ``BINS``.
    own : ndarray of bool of shape (n,)
        Which rows are of the first class.
    weight : ndarray of shape (n,)
    of : tuple of ndarray of int
        Codes of the rows for which shares are returned.
    max_leaves, min_leaf : int

    Examples
    --------
    >>> codes = np.arange(100)[:, None]
    >>> shares, = tree_shares(codes, codes[:, 0] < 40, np.ones(100), of=(codes,),
    ...                       max_leaves=4, min_leaf=10)
    >>> shares[39], shares[40]
    (np.float64(1.0), np.float64(0.0))
    """
    size = codes.shape[1]
    flat = codes + BINS * np.arange(size)

    def summed(rows: IntArray) -> FloatArray:
        found = np.empty((3, size * BINS))
        for kind, some in enumerate((rows[own[rows]], rows[~own[rows]])):
            places = flat[some].reshape(-1)
            found[kind] = np.bincount(places, np.repeat(weight[some], size), size * BINS)
            counts = np.bincount(places, minlength=size * BINS)
            found[2] = counts if kind == 0 else found[2] + counts
        return found.reshape(3, size, BINS)

    everything = np.arange(len(codes))
    sums = summed(everything)
    leaves = [_Node(everything, sums, _best_splits(sums[None], min_leaf)[0])]
    places = [np.zeros(len(one), dtype=np.int64) for one in of]
    while len(leaves) < max_leaves:
        best = max(range(len(leaves)), key=lambda place: leaves[place].split.gain)
        node = leaves[best]
        column, last, gain = node.split
        if gain <= 0:
            break
        left = codes[node.rows, column] <= last
        sides = [node.rows[left], node.rows[~left]]
        # The sums of the larger side are what the smaller one leaves.
        small = int(len(sides[1]) < len(sides[0]))
        of_small = summed(sides[small])
        of_large = node.sums - of_small
        both = np.stack([of_large, of_small] if small else [of_small, of_large])
        splits = _best_splits(both, min_leaf)
        leaves[best] = _Node(sides[0], both[0], splits[0])
        for place, one in zip(places, of, strict=True):
            place[(place == best) & (one[:, column] > last)] = len(leaves)
        leaves.append(_Node(sides[1], both[1], splits[1]))
    totals = np.array([node.sums[:2, 0].sum(axis=1) for node in leaves])
    shares = totals[:, 0] / totals.sum(axis=1)
    return [shares[place] for place in places]


def _best_splits(sums: FloatArray, min_leaf: int) -> list[_Split]:
    """Return each node's split with the largest decrease of impurity; a gain of zero for none."""
    whole = sums.sum(axis=3)
    left = np.cumsum(sums, axis=3)[..., :-1]
    right = whole[..., None] - left
    impurities = _impurity(whole[:, 0], whole[:, 1])[..., None]
    gains = impurities - _impurity(left[:, 0], left[:, 1]) - _impurity(right[:, 0], right[:, 1])
    # Sums of weights are rounded, and so is a gain of zero.
    least = 1e-12 * whole[:, :2].sum(axis=(1, 2))
    allowed = (np.minimum(left[:, 2], right[:, 2]) >= min_leaf - 0.5) & (
        gains > least[:, None, None]
    )
    gains *= allowed
    flat = gains.reshape(len(gains), -1)
    found = flat.argmax(axis=1).tolist()
    width = gains.shape[2]
    return [
        _Split(place // width, place % width, float(gain[place]))
        for place, gain in zip(found, flat, strict=True)
    ]


def _impurity(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return Gini's impurity times the weight."""
    total = first + second
    product = 2 * first
    product *= second
    return np.divide(product, total, out=np.zeros_like(total), where=total > 0)
