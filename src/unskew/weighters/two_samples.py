r"""A sample and rows drawn from the population, as a model that distinguishes them sees them.

Both sides are in one encoding, the sample's rows first. Each row has a share of the mass of its
side. Population rows with values that no sample row has train nothing, and count as uncovered.
Where the population marks its rows that are in the sample, the other rows stand for it, and with
the share q of those that are marked, the ratio to the whole is :math:`q + (1 - q)\, r(x)`.

A pair takes memory: the codes of its rows, and features of these. Of a population it takes few
rows, of a large sample too: beyond those that fit, more rows of one side hardly help, because the
error has a part of either, and both sides get half of the room. All sample rows are weighed, in
blocks, whichever have been learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from unskew.errors import OverlapError
from unskew.numerics.ratio_loss import Sided
from unskew.numerics.row_keys import Words, hash_rows
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.value_folds import ValueFolds, row_ranks
from unskew.numerics.weight_vectors import balanced
from unskew.overlap.measure import align
from unskew.population.reservoir import Reservoir
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind, in_common_form
from unskew.rows.sample import Sample
from unskew.rows.tables import Form

LEAST = 100_000
PER_SAMPLE_ROW = 20
"""Drawing that many population rows for each sample row adds about 5 % to the variance that the
sample's own rows cause."""
MEMORY = 2**30
"""The bytes that the rows of both sides may take, with what is computed of them."""
BYTES_PER_VALUE = 8
FEWEST = 1_000


def rows_within(population_rows: int | str | None, sample_rows: int, width: int) -> tuple[int, int]:
    """Return the rows of sample and population: for "auto", all and max(100,000, 20 m).

    Where these do not fit in 1 GB with ``width`` numbers a row, the population gets fewer, down to
    half of the room, and only then the sample.

    Examples
    --------
    >>> rows_within("auto", 1_000, 128), rows_within("auto", 50_000, 128)
    ((1000, 100000), (50000, 998576))
    >>> rows_within("auto", 2_000_000, 128), rows_within(500, 2_000_000, 128)
    ((524288, 524288), (1048076, 500))
    """
    room = max(2 * FEWEST, MEMORY // (BYTES_PER_VALUE * max(width, 1)))
    given = population_rows if isinstance(population_rows, int) else None
    wanted = given or max(LEAST, PER_SAMPLE_ROW * sample_rows)
    learned_from = min(sample_rows, max(room // 2, room - wanted))
    return learned_from, given or max(FEWEST, min(wanted, room - learned_from))


@dataclass(frozen=True)
class TwoSamples:
    """Rows of both sides in one encoding, without population rows that hold unseen values.

    Attributes
    ----------
    codes : ColumnCodes
    values : ndarray of shape (n_rows, n_columns)
        The codes of the sample's rows, in an order that does not depend on how they were shuffled,
        or their columns arranged, then of the population's.
    shares : Sided
        The mass of each row, which sums to one on either side.
    order : ndarray of int
        Which sample row is which.
    marked : float or None
        The share of the population that is marked as being in the sample; the rows are then those
        of the rest. None without marks.
    uncovered : float
        The share of the population that holds unseen values.
    sample : Sample
        The sample's rows, in that order.
    batch : pyarrow.RecordBatch
        The population's rows.
    whole : tuple of ndarray, pyarrow.RecordBatch and ndarray
        The codes, the rows and the weights of all population rows that were drawn.
    kept : ndarray of bool
        Which of these are among the rows.
    columns : ndarray of int
        An order of the columns that does not depend on the one they came in.
    keys : ndarray of uint64
        A random number for each distinct row; see :mod:`unskew.numerics.value_folds`.
    exact : ndarray of shape (n_rows, n_columns), optional
        ``values`` as they were before they were rounded.
    rounded : dict of int to str
        The columns in which they are rounded, with a sentence on each.
    folds : ValueFolds
        Which model weighs a row; by default one model of all rows.
    """

    codes: ColumnCodes
    values: FloatArray
    shares: Sided
    order: IntArray
    marked: float | None
    uncovered: float
    sample: Sample
    batch: pa.RecordBatch
    whole: tuple[FloatArray, pa.RecordBatch, FloatArray]
    kept: BoolArray
    columns: IntArray
    keys: Words
    exact: FloatArray | None = None
    rounded: dict[int, str] = field(default_factory=dict)
    folds: ValueFolds = field(default_factory=ValueFolds.none)

    @classmethod
    def from_reservoir(
        cls,
        sample: Sample,
        drawn: Reservoir,
        most: int | None = None,
        random_state: Any = 0,
        *,
        apart: bool = True,
    ) -> TwoSamples:
        """Encode the sample, or as many of its rows, and the rows drawn from the population.

        ``apart``: population rows that are marked as the sample's are left to the sample.
        """
        counted = sample.drawn(most)
        batch, weight = drawn.rows, drawn.weight
        codes, unseen = sample.codes.transform(batch, side="population")
        marked = None
        kept = np.ones(len(weight), dtype=bool) if unseen is None else ~unseen
        weighted = sample.values[sample.design > 0]
        if len(weighted) < len(sample):
            kept &= _are_among(codes, weighted, sample.codes)
        uncovered = float(weight[~kept].sum()) / float(weight.sum())
        if len(counted) < len(weighted):  # what only the others cover is weighed as unknown
            kept &= _are_among(codes, sample.values[counted], sample.codes)
        if not kept.any():
            raise OverlapError(nothing_covered(sample.codes), 1.0)
        if apart and drawn.selected is not None:
            marked = float(weight[kept & drawn.selected].sum() / weight[kept].sum())
            if (kept & ~drawn.selected).any():
                kept &= ~drawn.selected
            else:  # the sample is the population
                marked = None
        values = np.concatenate([sample.values[counted], codes[kept]])
        shares = Sided(sample.design[counted], weight[kept]).map(_as_shares)
        columns, ranks = row_ranks(values, np.concatenate(shares), len(counted))
        seed = check_random_state(random_state).randint(2**31 - 1)
        keys = hash_rows(list(np.ascontiguousarray(ranks.T[columns])), seed=seed)
        order = np.argsort(keys[: len(counted)], kind="stable")
        values[: len(order)], keys[: len(order)] = values[order], keys[order]
        counted = counted[order]
        ordered = sample.take(counted)
        # A category that only rows without weight have keeps its code.
        ordered._codes_and_values = sample.codes, values[: len(order)]
        return cls(
            sample.codes,
            values,
            Sided(shares.sample[order], shares.population),
            counted,
            marked,
            uncovered,
            ordered,
            batch.filter(pa.array(kept)),
            (codes, batch, weight),
            kept,
            columns,
            keys,
        )

    def reweighed(self, design: FloatArray, weight: FloatArray) -> TwoSamples:
        """Return the same rows with other weights of the sample and of all rows drawn."""
        shares = Sided(design[self.order], weight[self.kept]).map(_as_shares)
        return replace(self, shares=shares, whole=(*self.whole[:2], weight))

    def aligned(self) -> TwoSamples:
        """Return the rows with columns in which only one side is rounded rounded on both."""
        *sides, rounded = align(self.codes, *self.split(self.values))
        if not rounded:
            return self
        return replace(self, values=np.concatenate(sides), exact=self.values, rounded=rounded)

    @property
    def n_sample(self) -> int:
        """The number of sample rows."""
        return len(self.shares.sample)

    def split(self, values: NDArray[Any]) -> Sided:
        """Return numbers of all rows by their side."""
        return Sided(values[: self.n_sample], values[self.n_sample :])

    @cached_property
    def is_sample(self) -> BoolArray:
        """Which rows are the sample's."""
        return np.arange(len(self.values)) < self.n_sample

    @property
    def given(self) -> FloatArray:
        """The values before they were rounded."""
        return self.values if self.exact is None else self.exact

    @cached_property
    def hashes(self) -> Words:
        """A hash of the values of each row."""
        return hash_values(self.given)

    def in_folds(self, n_folds: int | None, expected: float = np.inf) -> TwoSamples:
        """Return the rows in folds by their values.

        Those of which an even sample would have ``expected`` rows count as frequent.
        """
        shares = np.concatenate(self.shares)
        given = self.hashes, self.keys, shares, self.n_sample
        return replace(self, folds=ValueFolds.from_rows(*given, n_folds, expected))

    @property
    def has_levels(self) -> bool:
        """Whether a column holds categories."""
        return any(map(self.codes.n_categories, range(len(self.codes.names))))

    @property
    def n_folds(self) -> int:
        """The number of folds, and of models."""
        return self.folds.n_folds

    @cached_property
    def fold(self) -> IntArray:
        """The fold that each row is in, in training."""
        sides = zip(self.split(self.hashes), self.split(self.keys), strict=True)
        return np.concatenate([self.folds.fold(*side, n) for n, side in enumerate(sides)])

    def inside(self, number: int) -> IntArray:
        """Return the rows of a fold; all rows, if there is one."""
        return np.flatnonzero(self.fold == number)

    def outside(self, number: int) -> IntArray:
        """Return the rows that train a model: those outside its fold.

        All rows, if there is one fold, or if a side has no row outside.
        """
        train = np.flatnonzero(self.fold != number)
        one_sided = len(set(self.is_sample[train].tolist())) < 2
        return np.arange(len(self.fold)) if one_sided else train

    def balanced(self, train: IntArray) -> FloatArray:
        """Return the weights of some rows, with the same mass on either side and a mean of one."""
        return balanced(np.concatenate(self.shares)[train], self.is_sample[train])

    @cached_property
    def joined_table(self) -> pa.Table:
        """All rows, in the types of the sample's where they can be compared."""
        return _concatenated((self.sample.batch, self.batch))

    def in_form(self, form: Form) -> Any:
        """Return all rows as the caller gave X, with numbers rounded as ``values`` are."""
        table = self.joined_table
        for column in self.rounded:
            own = table.field(column)
            if self.codes.kinds[column] == Kind.NUMBER:
                values = pa.array(self.values[:, column], from_pandas=True)
                table = table.set_column(column, own, values.cast(own.type, safe=False))
        return form.of(table)


def hash_values(codes: FloatArray) -> Words:
    """Return a hash of the codes of each row."""
    return hash_rows([np.ascontiguousarray(column) for column in codes.T])


def _as_shares(weight: FloatArray) -> FloatArray:
    return weight / weight.sum()


def _are_among(population: FloatArray, sample: FloatArray, codes: ColumnCodes) -> BoolArray:
    """Return which rows have no category, or missing value, that no row of the sample has."""
    found = np.ones(len(population), dtype=bool)
    for place, column in enumerate(sample.T):
        if codes.counts_categories(place):
            found &= np.isin(population[:, place], column) | np.isnan(population[:, place])
        if not np.isnan(column).any():
            found &= ~np.isnan(population[:, place])
    return found


def nothing_covered(codes: ColumnCodes) -> str:
    """Return the message for a population of which every row has a value that the sample lacks."""
    sizes = {name: codes.n_categories(place) for place, name in enumerate(codes.names)}
    first = max(sizes, key=sizes.__getitem__)
    text = (
        "Every row of the population has a value that no sample row has: an unseen category, or "
        "none where the sample has no missing values. columns= chooses what to weigh by."
    )
    if sizes[first]:
        text += f" Look at column '{first}', with {sizes[first]} categories in the sample: if it "
        text += "is an identifier, leave it out."
    return text


def _concatenated(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return both in one table, in the types of the first where they can be compared."""
    columns = []
    for first, second in zip(*(batch.columns for batch in batches), strict=True):
        kind = second.type if pa.types.is_null(first.type) else first.type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        try:
            parts = [first.cast(kind), second.cast(kind)]
        except pa.ArrowException:
            common = in_common_form(first)
            parts = [common, in_common_form(second).cast(common.type)]
        columns.append(pa.chunked_array(parts))
    return pa.table(columns, names=batches[0].schema.names)
