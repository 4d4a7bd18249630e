"""Features of rows, of which many rows have the same.

A one-hot level, or a combination of several, is the same for all rows of a cell. Such features are
a small table and each row's place in it; their weighted sums are sums over cells, and those of
their products sums over pairs of cells: a few additions for each row, however many levels there
are. Indicators of more levels than a table holds have no table: theirs is the identity. Other
features are columns of a matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array

from unskew.numerics.cores import available_cores
from unskew.numerics.typing import BoolArray, FloatArray, IntArray

BLOCK_ENTRIES = 2**18
MAX_CELLS = 512
"""Tables are combined up to this many cells: those of a pair of tables then fit a core's cache."""


@dataclass(frozen=True)
class Indicators:
    """Indicators, at most one of which is one in each row.

    Parameters
    ----------
    places : ndarray of int of shape (n_rows,)
        Which; -1 for none.
    width : int
        How many indicators there are.
    """

    places: IntArray
    width: int

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def n_cells(self) -> int:
        """How many different rows there can be; the last has no level, if any row has none."""
        return self.width + int((self.places < 0).any())


@dataclass(frozen=True)
class _Table:
    """Features that are the same for all rows of a cell."""

    columns: IntArray
    values: FloatArray
    cells: IntArray

    def masses(self, weights: FloatArray) -> FloatArray:
        return _counted(self.cells, weights, len(self.values))

    def scores(self, multipliers: FloatArray) -> FloatArray:
        return np.asarray((self.values @ multipliers[self.columns])[self.cells])

    def sums(self, weights: FloatArray) -> FloatArray:
        return np.asarray(self.masses(weights) @ self.values)

    def spread(self, shares: FloatArray) -> FloatArray:
        return weighted_spread(self.values, self.masses(shares))

    def any_one(self, chosen: BoolArray) -> BoolArray:
        ones = (self.values[:, chosen[self.columns]] == 1.0).any(axis=1)
        return np.asarray(ones[self.cells])

    def standardised(self, centre: FloatArray, spread: FloatArray) -> _Table:
        values = (self.values - centre[self.columns]) / spread[self.columns]
        return replace(self, values=values)

    def of_columns(self, own: BoolArray, columns: IntArray) -> _Table:
        return replace(self, columns=columns, values=np.ascontiguousarray(self.values[:, own]))

    def dense(self) -> FloatArray:
        return np.asarray(self.values[self.cells])


@dataclass(frozen=True)
class _Wide:
    """Indicators of many cells, each minus its centre and over its scale; -1 is no cell."""

    columns: IntArray
    cells: IntArray
    centre: FloatArray
    scale: FloatArray

    def masses(self, weights: FloatArray) -> FloatArray:
        return _counted(self.cells + 1, weights, len(self.columns) + 1)[1:]

    def scores(self, multipliers: FloatArray) -> FloatArray:
        own = multipliers[self.columns] / self.scale
        return np.asarray(np.append(own, 0.0)[self.cells] - self.centre @ own)

    def sums(self, weights: FloatArray) -> FloatArray:
        return np.asarray((self.masses(weights) - weights.sum() * self.centre) / self.scale)

    def spread(self, shares: FloatArray) -> FloatArray:
        own = self.masses(shares)
        spread = np.sqrt(own * (shares.sum() - own))
        return np.where(spread > 0, spread, 1.0)

    def any_one(self, chosen: BoolArray) -> BoolArray:
        return np.asarray(np.append(chosen[self.columns], False)[self.cells])

    def standardised(self, centre: FloatArray, spread: FloatArray) -> _Wide:
        own = self.columns
        return replace(self, centre=centre[own], scale=spread[own])

    def of_columns(self, own: BoolArray, columns: IntArray) -> _Wide:
        place = np.append(np.where(own, np.cumsum(own) - 1, -1), -1)  # the last is that of no cell
        return _Wide(columns, place[self.cells], self.centre[own], self.scale[own])

    def dense(self) -> FloatArray:
        ones = np.equal.outer(self.cells, np.arange(len(self.columns)))
        return np.asarray((ones - self.centre) / self.scale)


class WeightedMoments(NamedTuple):
    """Sums of features, and of their products."""

    sums: FloatArray
    gram: FloatArray

    def of_columns(self, chosen: BoolArray) -> WeightedMoments:
        """Return those of some of the features."""
        return WeightedMoments(self.sums[chosen], self.gram[np.ix_(chosen, chosen)])


@dataclass(frozen=True)
class RowFeatures:
    """The features of rows.

    Examples
    --------
    >>> numbers, towns = np.array([[3.0], [1.0], [2.0]]), Indicators(np.array([0, 1, 1]), 2)
    >>> features = RowFeatures.from_parts([numbers, towns])
    >>> features.dense()
    array([[3., 1., 0.], [1., 0., 1.], [2., 0., 1.]])
    >>> features.moments(np.ones(3)).gram
    array([[14.,  3.,  3.], [ 3.,  1.,  0.], [ 3.,  0.,  2.]])
    """

    n_rows: int
    width: int
    columns: IntArray
    """The positions of the features that are in the matrix."""
    matrix: FloatArray
    tables: tuple[_Table, ...]
    wide: tuple[_Wide, ...] = ()

    @classmethod
    def from_parts(cls, parts: Sequence[FloatArray | Indicators]) -> RowFeatures:
        """Return features from matrices and indicators, in their order."""
        widths = [one.width if isinstance(one, Indicators) else one.shape[1] for one in parts]
        ends = np.cumsum(widths)
        spans = [np.arange(end - width, end) for end, width in zip(ends, widths, strict=True)]
        levels, dense = [], [np.empty(0, np.intp)]
        matrices: list[FloatArray] = [np.empty((len(parts[0]), 0))]
        for span, one in zip(spans, parts, strict=True):
            if isinstance(one, Indicators):
                levels.append((span, one))
            elif len(span):
                dense.append(span)
                matrices.append(one)
        matrix = matrices[-1] if len(matrices) <= 2 else np.hstack(matrices)
        wide = tuple(
            _Wide(span, one.places, np.zeros(one.width), np.ones(one.width))
            for span, one in levels
            if one.n_cells > MAX_CELLS
        )
        tables = _tables([pair for pair in levels if pair[1].n_cells <= MAX_CELLS])
        return cls(len(matrix), int(ends[-1]), np.concatenate(dense), matrix, tables, wide)

    def scores(self, multipliers: FloatArray) -> FloatArray:
        """Return the sum of each row's features times multipliers."""
        total = self.matrix @ multipliers[self.columns]
        for table in self._all:
            total += table.scores(multipliers)
        return np.asarray(total)

    def sums(self, weights: FloatArray) -> FloatArray:
        """Return the weighted sum of each feature."""
        sums = np.empty(self.width)
        sums[self.columns] = weights @ self.matrix
        for table in self._all:
            sums[table.columns] = table.sums(weights)
        return sums

    def squares(self, weights: FloatArray) -> FloatArray:
        """Return the weighted sum of each feature's square."""
        squares = np.empty(self.width)
        squares[self.columns] = weights @ self.matrix**2
        for table in self.tables:
            squares[table.columns] = table.masses(weights) @ table.values**2
        for one in self.wide:
            own, centre = one.masses(weights), one.centre
            squares[one.columns] = (
                own * (1 - 2 * centre) + weights.sum() * centre**2
            ) / one.scale**2
        return squares

    @property
    def _all(self) -> tuple[_Table | _Wide, ...]:
        return (*self.tables, *self.wide)

    def moments(self, weights: FloatArray) -> WeightedMoments:
        """Return the weighted sums of the features and of the products of all pairs of them."""
        if self.wide:
            return weighted_moments(self.dense(), weights)
        # 1) Columns of the matrix among themselves: one product.
        sums, gram = np.empty(self.width), np.empty((self.width, self.width))
        if len(self.columns):
            inner = np.ix_(self.columns, self.columns)
            sums[self.columns], gram[inner] = weighted_moments(self.matrix, weights)
        # 2) A table's features V with itself, Vᵀ diag(mass) V, and with the matrix, by sums over
        #    its cells: rows of a cell have the same values.
        for one in self.tables:
            mass = one.masses(weights)
            sums[one.columns] = mass @ one.values
            gram[np.ix_(one.columns, one.columns)] = one.values.T @ (mass[:, None] * one.values)
            if len(self.columns):
                joint = one.values.T @ _sums_by_cell(one, self.matrix, weights)
                _set_both(gram, one.columns, self.columns, joint)
        # 3) Two tables: the weight of each pair of cells is all that their products need.
        for (one, other), cells in zip(_pairs(self.tables), self._pair_cells, strict=True):
            shape = len(one.values), len(other.values)
            counts = _counted(cells, weights, shape[0] * shape[1]).reshape(shape)
            _set_both(gram, one.columns, other.columns, one.values.T @ (counts @ other.values))
        return WeightedMoments(sums, gram)

    @cached_property
    def _pair_cells(self) -> list[IntArray]:
        return [one.cells * len(other.values) + other.cells for one, other in _pairs(self.tables)]

    def standardised(self, centre: FloatArray, spread: FloatArray) -> RowFeatures:
        """Return the features minus their centres, over their spreads."""
        tables = tuple(t.standardised(centre, spread) for t in self.tables)
        wide = tuple(t.standardised(centre, spread) for t in self.wide)
        matrix = self.matrix - centre[self.columns]
        matrix /= spread[self.columns]
        return replace(self, matrix=matrix, tables=tables, wide=wide)

    def spread(self, shares: FloatArray) -> FloatArray:
        """Return the standard deviation of each feature, as :func:`weighted_spread` does."""
        spread = np.empty(self.width)
        spread[self.columns] = weighted_spread(self.matrix, shares)
        for table in self._all:
            spread[table.columns] = table.spread(shares)
        return spread

    def are_indicators(self) -> BoolArray:
        """Return which features are zero or one in every row."""
        found = np.ones(self.width, dtype=bool)
        parts = [(self.columns, self.matrix), *((t.columns, t.values) for t in self.tables)]
        for columns, values in parts:
            found[columns] = ((values == 0.0) | (values == 1.0)).all(axis=0)
        return found

    def any_one(self, chosen: BoolArray) -> BoolArray:
        """Return the rows at which a chosen feature is one."""
        if not chosen.any():
            return np.zeros(self.n_rows, dtype=bool)
        found = (self.matrix[:, chosen[self.columns]] == 1.0).any(axis=1)
        for table in self._all:
            found |= table.any_one(chosen)
        return np.asarray(found)

    def of_rows(self, chosen: BoolArray) -> RowFeatures:
        """Return the features of some of the rows."""
        if chosen.all():
            return self
        tables = tuple(replace(t, cells=t.cells[chosen]) for t in self.tables)
        wide = tuple(replace(t, cells=t.cells[chosen]) for t in self.wide)
        count, matrix = int(np.count_nonzero(chosen)), self.matrix[chosen]
        return replace(self, n_rows=count, matrix=matrix, tables=tables, wide=wide)

    def of_columns(self, chosen: BoolArray) -> RowFeatures:
        """Return some of the features."""
        if chosen.all():
            return self
        place = np.cumsum(chosen) - 1

        def fewer_of(table: Any) -> Any:
            own = chosen[table.columns]
            return table.of_columns(own, place[table.columns[own]])

        tables, wide = (tuple(map(fewer_of, group)) for group in (self.tables, self.wide))
        own = chosen[self.columns]
        matrix = self.matrix if own.all() else np.ascontiguousarray(self.matrix[:, own])
        columns, width = place[self.columns[own]], int(np.count_nonzero(chosen))
        fewer = replace(self, width=width, columns=columns, matrix=matrix, tables=tables, wide=wide)
        if "_pair_cells" in self.__dict__:  # they depend on the cells alone
            fewer.__dict__["_pair_cells"] = self._pair_cells
        return fewer

    def dense(self) -> FloatArray:
        """Return all features as one matrix."""
        if not self._all:
            return self.matrix
        whole = np.empty((self.n_rows, self.width))
        whole[:, self.columns] = self.matrix
        for table in self._all:
            whole[:, table.columns] = table.dense()
        return whole


def _tables(levels: Sequence[tuple[IntArray, Indicators]]) -> tuple[_Table, ...]:
    """Return tables of indicators, as few as their sizes allow: the largest first, where it fits.

    A row without a level is in the last cell of its indicators, where all are zero.
    """
    groups: list[list[tuple[IntArray, Indicators]]] = []
    sizes: list[int] = []
    for span, one in sorted(levels, key=lambda pair: -pair[1].width):
        fits = (place for place, size in enumerate(sizes) if size * one.n_cells <= MAX_CELLS)
        place = next(fits, len(groups))
        if place == len(groups):
            groups.append([])
            sizes.append(1)
        groups[place].append((span, one))
        sizes[place] *= one.n_cells
    return tuple(_joint(group) for group in groups)


def _joint(group: Sequence[tuple[IntArray, Indicators]]) -> _Table:
    sizes = [one.n_cells for _, one in group]
    cells: IntArray = np.zeros(len(group[0][1].places), dtype=np.intp)
    for size, (_, one) in zip(sizes, group, strict=True):
        cells *= size
        cells += one.places if size == one.width else one.places % size  # -1 is the last
    parts = np.unravel_index(np.arange(int(np.prod(sizes))), sizes)
    values = [
        np.equal.outer(own, np.arange(one.width))
        for own, (_, one) in zip(parts, group, strict=True)
    ]
    columns = np.concatenate([span for span, _ in group])
    return _Table(columns, np.hstack(values).astype(float), cells)


def _counted(cells: IntArray, weights: FloatArray, size: int) -> FloatArray:
    sums: FloatArray = np.bincount(cells, weights, size)  # type: ignore[assignment]  # its stubs
    return sums


def _pairs(tables: Sequence[_Table]) -> Iterator[tuple[_Table, _Table]]:
    return ((one, other) for place, one in enumerate(tables) for other in tables[place + 1 :])


def _sums_by_cell(table: _Table, matrix: FloatArray, weights: FloatArray) -> FloatArray:
    shape = len(table.values), len(matrix)
    cells = csc_array((weights, table.cells, np.arange(len(matrix) + 1)), shape=shape)
    return np.asarray(cells @ matrix)


def _set_both(gram: FloatArray, one: IntArray, other: IntArray, joint: FloatArray) -> None:
    gram[np.ix_(one, other)] = joint
    gram[np.ix_(other, one)] = joint.T


def row_blocks(matrix: FloatArray) -> Iterator[slice]:
    """Yield blocks of rows that fit a core's cache."""
    step = max(1, BLOCK_ENTRIES // max(matrix.shape[1], 1))
    return (slice(begin, begin + step) for begin in range(0, len(matrix), step))


def weighted_moments(features: FloatArray, weights: FloatArray) -> WeightedMoments:
    """Return the weighted sums of features and of the products of all pairs of them.

    Large matrices are shared among threads of our own: those of BLAS wait for each other after
    every block, which takes many times as long where other processes keep a core busy. Parts are
    added in the order of the rows, however many threads there are.
    """
    roots = np.sqrt(weights)
    blocks = list(row_blocks(features))
    parts = [blocks[begin : begin + 8] for begin in range(0, len(blocks), 8)]
    total = WeightedMoments(np.zeros(features.shape[1]), np.zeros((features.shape[1],) * 2))
    if len(parts) == 1:
        return _moments_of(features, roots, parts[0])
    with ThreadPoolExecutor(min(available_cores(), len(parts) or 1)) as pool:
        for sums, gram in pool.map(lambda part: _moments_of(features, roots, part), parts):
            np.add(total.sums, sums, out=total.sums)
            np.add(total.gram, gram, out=total.gram)
    return total


def _moments_of(
    features: FloatArray, roots: FloatArray, blocks: Sequence[slice]
) -> WeightedMoments:
    sums, gram = np.zeros(features.shape[1]), np.zeros((features.shape[1],) * 2)
    for rows in blocks:
        some, root = features[rows], roots[rows]
        if not root.all():  # rows without weight are not worth a product
            some, root = some[root != 0], root[root != 0]
        scaled = some * root[:, None]
        sums += root @ scaled
        gram += scaled.T @ scaled
    return WeightedMoments(sums, gram)


def weighted_spread(features: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the standard deviations of features; never zero, so that one can divide by them.

    A feature whose spread is within the rounding error of its mean counts as constant.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        means = shares @ features
        ends = np.abs([features.min(axis=0) - means, features.max(axis=0) - means])
        largest = np.maximum(ends.max(axis=0), np.finfo(float).tiny)
        squares = np.zeros(features.shape[1])
        for rows in row_blocks(features):  # scaled, so that no square overflows or vanishes
            squares += shares[rows] @ ((features[rows] - means) / largest) ** 2
        spread = largest * np.sqrt(squares)
        constant = spread <= 1e-14 * np.sqrt(len(features)) * np.abs(means)
    return np.where(constant, np.maximum(np.abs(means), 1.0), spread)
