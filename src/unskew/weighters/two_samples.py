"""Sample and population rows as a model that distinguishes them sees them."""

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
from unskew.numerics.row_hash import Words, hash_rows
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.overlap import align
from unskew.population.encode import ColumnCodes
from unskew.population.forms import Form
from unskew.population.kinds import Kind, in_common_form
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.weighters.value_folds import ValueFolds, row_ranks


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
        A random number for each distinct row; see :mod:`unskew.weighters.value_folds`.
    exact : ndarray of shape (n_rows, n_columns), optional
        ``values`` as they were before they were rounded.
    rounded : dict of int to str
        The columns in which they are rounded, with a sentence on each.
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

    @classmethod
    def of(
        cls, sample: Sample, drawn: Reservoir, most: int | None = None, random_state: Any = 0
    ) -> TwoSamples:
        """Encode the sample, or as many of its rows, and the rows drawn from the population."""
        counted = sample.drawn(most)
        batch, weight = drawn.rows, drawn.weight
        theirs, unseen = sample.codes.transform(batch, side="population")
        mass, uncovered, marked = float(weight.sum()), 0.0, None
        kept = np.ones(len(weight), dtype=bool) if unseen is None else ~unseen
        weighted = sample.values[sample.design > 0]
        if len(weighted) < len(sample):
            kept &= _are_among(theirs, weighted, sample.codes)
        uncovered = float(weight[~kept].sum()) / mass
        if len(counted) < len(weighted):  # what only the others cover is weighed as unknown
            kept &= _are_among(theirs, sample.values[counted], sample.codes)
        if not kept.any():
            raise OverlapError(nothing_covered(sample.codes), 1.0)
        if drawn.selected is not None:
            marked = float(weight[kept & drawn.selected].sum() / weight[kept].sum())
            if (kept & ~drawn.selected).any():
                kept &= ~drawn.selected
            else:  # the sample is the population
                marked = None
        values = np.concatenate([sample.values[counted], theirs[kept]])
        shares = Sided(*(side / side.sum() for side in (sample.design[counted], weight[kept])))
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
            Sided(shares.mine[order], shares.theirs),
            counted,
            marked,
            uncovered,
            ordered,
            batch.filter(pa.array(kept)),
            (theirs, batch, weight),
            kept,
            columns,
            keys,
        )

    def reweighed(self, design: FloatArray, weight: FloatArray) -> TwoSamples:
        """Return the same rows with other weights of the sample and of all rows drawn."""
        sides = design[self.order], weight[self.kept]
        return replace(self, shares=Sided(*(side / side.sum() for side in sides)))

    def aligned(self) -> TwoSamples:
        """Return the rows with columns in which only one side is rounded rounded on both."""
        *sides, rounded = align(self.codes, *self.split(self.values))
        if not rounded:
            return self
        return replace(self, values=np.concatenate(sides), exact=self.values, rounded=rounded)

    @property
    def n_mine(self) -> int:
        """The number of sample rows."""
        return len(self.shares.mine)

    def split(self, values: NDArray[Any]) -> Sided:
        """Return numbers of all rows by their side."""
        return Sided(values[: self.n_mine], values[self.n_mine :])

    @cached_property
    def is_mine(self) -> BoolArray:
        """Which rows are the sample's."""
        return np.arange(len(self.values)) < self.n_mine

    @cached_property
    def balanced(self) -> FloatArray:
        """Weights under which both sides have the same mass, with a mean of one."""
        return np.concatenate(self.shares) * (len(self.values) / 2)

    @property
    def given(self) -> FloatArray:
        """The values before they were rounded."""
        return self.values if self.exact is None else self.exact

    @property
    def whole_population(self) -> Sided:
        """The codes of rows that stand for all that is covered, and their shares."""
        if self.marked is None:
            return Sided(self.given[self.n_mine :], self.shares.theirs)
        shares = (self.marked * self.shares.mine, (1 - self.marked) * self.shares.theirs)
        return Sided(self.given, np.concatenate(shares))

    @cached_property
    def hashes(self) -> Words:
        """A hash of the values of each row."""
        return hash_values(self.given)

    def folds(self, n_folds: int | None, expected: float = np.inf) -> ValueFolds:
        """Return folds by the values of a row."""
        shares = np.concatenate(self.shares)
        return ValueFolds.of(self.hashes, self.keys, shares, self.n_mine, n_folds, expected)

    def dealt(self, folds: ValueFolds) -> IntArray:
        """Return the fold that each row is in, in training."""
        ends = (slice(0, self.n_mine), slice(self.n_mine, None))
        dealt = [folds.deal(self.hashes[e], self.keys[e], p) for p, e in enumerate(ends)]
        return np.concatenate(dealt)

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


def _are_among(theirs: FloatArray, mine: FloatArray, codes: ColumnCodes) -> BoolArray:
    """Return which rows have no category, or missing value, that no row of the sample has."""
    found = np.ones(len(theirs), dtype=bool)
    for place, column in enumerate(mine.T):
        if codes.counts_categories(place):
            found &= np.isin(theirs[:, place], column) | np.isnan(theirs[:, place])
        if not np.isnan(column).any():
            found &= ~np.isnan(theirs[:, place])
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
    for mine, theirs in zip(*(batch.columns for batch in batches), strict=True):
        kind = theirs.type if pa.types.is_null(mine.type) else mine.type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        try:
            parts = [mine.cast(kind), theirs.cast(kind)]
        except pa.ArrowException:
            first, second = in_common_form(mine), in_common_form(theirs)
            parts = [first, second.cast(first.type)]
        columns.append(pa.chunked_array(parts))
    return pa.table(columns, names=batches[0].schema.names)
