"""The sample as a weighter sees it.

A sample owns its encodings and makes each of them once, when it is first needed: column codes,
feature spaces, and an order of its rows that does not depend on how they were shuffled. Parts of a
sample (``take``, ``select``, ``with_design``) share its code book: a value has one number,
whichever rows or columns are looked at.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from unskew.errors import InputError, OverlapError
from unskew.numerics.row_keys import order_by, row_keys
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import check_design, scale_to_total
from unskew.rows.design import Design, Scaling, point_design
from unskew.rows.encode import ColumnCodes
from unskew.rows.labels import checked_labels
from unskew.rows.tables import Form, RowBlock, Rows, as_rows

BLOCK = 2**14
"""Rows of which features are computed at a time."""


class Rule(Protocol):
    """Computes the weights of a batch with the columns that the weighter weighs by, in order."""

    def __call__(self, batch: pa.RecordBatch) -> FloatArray:
        """Return one weight per row, in the scale of the weighter's ``_solve``."""


Points = tuple[Design, FloatArray]
"""A feature space, and the sample in it."""


class Sample:
    """Rows that were not drawn uniformly, their labels and their design weights.

    Parameters
    ----------
    rows : Rows
        The columns to weigh by.
    labels : ndarray or None
    design : ndarray of shape (m,)
        The caller's ``sample_weight``, or ones.
    given : object
        X as the caller gave it, in the order of ``rows``; None where the order is another.
    all_rows : Rows, optional
        All columns of X, where ``rows`` has only some of them.
    like : object, optional
        X in its own order, where that of ``rows`` is another; it shows the form of X.
    """

    outcome: FloatArray | None = None
    """Numbers of the rows, one column or several, whose means over the population are wanted."""
    redrawn: FloatArray | float = 1.0
    """How often each row counts in a replicate, of once in the sample."""
    in_memory = True
    """Whether all rows of the sample are here; if not, these are a random part of them."""

    def __init__(
        self,
        rows: Rows,
        labels: Any,
        design: FloatArray,
        given: Any = None,
        all_rows: Rows | None = None,
        like: Any = None,
    ) -> None:
        self.rows = rows
        self.labels = labels
        self.design = design
        self.given = given
        self._like = given if like is None else like
        self.all_rows = rows if all_rows is None else all_rows
        self._part_of: tuple[Sample, IntArray] | None = None
        self._selected: dict[tuple[str, ...], Self] = {}
        self._points: dict[Scaling, Points] = {}
        self._narrow: NDArray[np.float32] | None = None

    @classmethod
    def from_data(cls, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Sample:
        """Return a sample with all columns of X, checked; an empty one has no rows."""
        rows = as_rows(X, name="X")
        design = check_design(sample_weight, name="sample_weight", n_rows=len(rows))
        return cls(rows, checked_labels(y, len(rows)), design, X)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def size(self) -> int:
        """The number of rows of the whole sample, also where only some are in memory."""
        return len(self)

    @property
    def form(self) -> Form:
        """The form in which the caller gave X."""
        return Form(self._like)

    @property
    def batch(self) -> pa.RecordBatch:
        """All rows as one record batch."""
        return self.rows.batch

    @cached_property
    def _codes_and_values(self) -> tuple[ColumnCodes, FloatArray]:
        if self._part_of is not None:
            whole, positions = self._part_of
            values = whole.values[positions]
            return whole.codes.of_rows(values), values
        codes = ColumnCodes()
        return codes, codes.fit_transform(self.batch, encoded=self.rows.encoded)

    @property
    def codes(self) -> ColumnCodes:
        """The encoder of columns to numbers."""
        return self._codes_and_values[0]

    @property
    def values(self) -> FloatArray:
        """The codes of the sample's own rows."""
        return self._codes_and_values[1]

    def values_in(self, dtype: type[np.float32]) -> NDArray[np.float32]:
        """Return the codes in another floating-point type; one too large for it is an error."""
        if self._narrow is None:
            with np.errstate(over="ignore"):
                narrow = self.values.astype(dtype)
            self.codes.in_precision(dtype).check_finite(narrow, self.batch, side="sample")
            self._narrow = narrow
        return self._narrow

    def points(self, scaling: Scaling = "standard") -> Points:
        """Return the feature space with this scaling, and the sample in it."""
        if scaling not in self._points:
            space = point_design(self.codes, self.values, scaling)
            self._points[scaling] = space, space.of_codes(self.values)
        return self._points[scaling]

    @cached_property
    def order(self) -> IntArray:
        """A permutation of the rows that does not depend on how they were shuffled.

        Ties in growing a tree, starting k-means or finding the nearest row are then broken the same
        way, so that permuting the rows permutes the weights and changes nothing else. Labels decide
        last: a weighter that does not use them gives the same weights with and without them.
        """
        keys = [*self.values.T, self.design]
        if self.labels is not None:
            labels = self.labels.reshape(len(self), -1)
            keys[:0] = [np.unique(column, return_inverse=True)[1] for column in labels.T]
        return order_by(keys)

    def drawn(self, most: int | None = None) -> IntArray:
        """Return the positions of rows that count, in that order: all, or a uniform draw."""
        counted = self.order[self.design[self.order] > 0]
        if most is None or len(counted) <= most:
            return counted
        return counted[np.sort(np.argpartition(row_keys(0, 0, len(counted)), most)[:most])]

    @cached_property
    def ordered(self) -> Sample:
        """The sample in that order."""
        ordered = self.take(self.order)
        ordered._codes_and_values = self.codes, self.values[self.order]
        ordered._part_of = None  # a weighter that keeps these rows need not keep the others
        ordered.order = np.arange(len(self))
        return ordered

    def take(self, positions: IntArray) -> Sample:
        """Return some of the rows, in the order given; their codes are those of this sample."""
        if np.array_equal(positions, np.arange(len(self))):
            return self
        taken = self.keep(positions)
        taken._part_of = self, positions
        return taken

    def keep(self, positions: IntArray) -> Sample:
        """Return some of the rows as a sample of its own, as if there had been no others."""
        places = pa.array(positions)
        rows = all_rows = replace(self.rows, table=self.rows.table.take(places))
        if self.all_rows is not self.rows:
            all_rows = replace(self.all_rows, table=self.all_rows.table.take(places))
        labels = None if self.labels is None else self.labels[positions]
        taken = Sample(rows, labels, self.design[positions], None, all_rows, self._like)
        taken.outcome = None if self.outcome is None else self.outcome[positions]
        return taken

    def blocks(self) -> Iterator[Sample]:
        """Yield consecutive rows, so few at a time that features of them take little memory."""
        for begin in range(0, len(self), BLOCK):
            rows, all_rows = (
                replace(one, table=one.table.slice(begin, BLOCK))
                for one in (self.rows, self.all_rows)
            )
            design = self.design[begin : begin + BLOCK]
            yield Sample(rows, None, design, None, all_rows, self._like)

    def select(self, columns: Sequence[str]) -> Self:
        """Return the sample with these of its columns to weigh by."""
        names, chosen = self.rows.table.column_names, tuple(columns)
        if list(chosen) == names:
            return self
        if chosen not in self._selected:
            twin = copy.copy(self)
            encoded = twin.__dict__.pop("_codes_and_values", None)
            for name in ("order", "ordered"):
                twin.__dict__.pop(name, None)
            twin._points, twin._narrow, twin._selected = {}, None, {}
            twin.rows = replace(self.rows, table=self.rows.table.select(list(chosen)))
            if encoded is not None:
                places = [names.index(name) for name in chosen]
                twin._codes_and_values = encoded[0].select(places), encoded[1][:, places]
            elif self._part_of is not None:
                whole, positions = self._part_of
                twin._part_of = whole.select(chosen), positions
            self._selected[chosen] = twin
        return self._selected[chosen]

    def under_names(self) -> Self:
        """Return the sample with columns that are matched by name, also where X has none."""
        twin = copy.copy(self)
        twin.rows = twin.all_rows = replace(self.rows, named=True, numbered=False)
        twin._selected = {}
        return twin

    def with_design(self, design: FloatArray) -> Self:
        """Return the same rows with other design weights; their encodings are shared."""
        twin = copy.copy(self)
        self.order  # noqa: B018  (made once, for the original weights)
        twin.__dict__["order"] = self.order
        twin.__dict__.pop("ordered", None)
        twin._selected = {}
        twin.design = design
        return twin

    def replicate(self, counts: FloatArray) -> Self:
        """Return the same rows, each as often as it was drawn again."""
        twin = self.with_design(self.design * counts)
        twin.redrawn = counts
        return twin

    def reduce(self, summary: Any) -> Any:
        """Answer a question about the sample."""
        summary.check_empty()
        summary.update(RowBlock(self.batch, self.design))
        summary.finish()
        return summary

    def scaled(
        self,
        raw: FloatArray,
        rule: Callable[[], Rule],  # noqa: ARG002
        columns: Sequence[str],  # noqa: ARG002
        total: float,
    ) -> tuple[float, FloatArray | None]:
        """Return the factor that makes raw weights sum to ``total``, and the weights.

        Where rows are not in memory, the sum is that of ``rule``, which needs these columns, over
        all rows, and there are no weights to hold.
        """
        if not raw.any():
            raise no_overlap()
        with np.errstate(over="ignore", invalid="ignore"):
            scale = scale_to_total(raw, total)
            weights = raw * scale
        if not np.isfinite(weights).all():
            raise InputError(
                "The weights are too large for floating point: a selection probability or a design "
                "weight is too far from the others."
            )
        return scale, weights


def no_overlap() -> OverlapError:
    """Return the error for a sample of which no row would count."""
    return OverlapError("Every sample row would get weight zero: no overlap is left.", 1.0)
