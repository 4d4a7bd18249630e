"""Features whose sums a population is asked for: means, levels, bands, squares, products.

They are fixed before the pass, learned from the sample alone, and computed with NumPy and PyArrow
alone, so that they travel to wherever the rows are. A feature is NaN at a row with a value that no
sample row has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.encode import ColumnCodes
from unskew.population.forms import Form
from unskew.population.summaries import RowBlock, Summary

if TYPE_CHECKING:
    from unskew.numerics.row_features import RowFeatures

BLOCK = 8192
"""Rows whose features are computed at a time; a block of 40 features then fits a core's cache."""


MAX_TABLE = 4096
"""Whole numbers of a range up to this are looked up in a table."""


class Grouping(ABC):
    """The groups of a column's values."""

    labels: list[str]

    @abstractmethod
    def of(self, column: FloatArray) -> IntArray:
        """Return the group of each code; -1 for none."""


@dataclass(frozen=True)
class ValueGroups(Grouping):
    """Groups of single values, such as categories.

    Parameters
    ----------
    values : ndarray
        Codes, sorted; NaN last.
    groups : ndarray of int
        The group of each.
    labels : list of str
        Of the groups.
    """

    values: FloatArray
    groups: IntArray
    labels: list[str]

    def of(self, column: FloatArray) -> IntArray:
        """Return the group of each code; -1 for none."""
        numbers = self.values[~np.isnan(self.values)]
        groups = looked_up(numbers, self.groups[: len(numbers)], column)
        if len(numbers) < len(self.values):
            groups[np.isnan(column)] = self.groups[-1]
        return groups


@dataclass(frozen=True)
class Bands(Grouping):
    """Groups of numbers from one border to the next.

    Parameters
    ----------
    lows, highs : ndarray
        Band i holds the numbers from ``lows[i]`` up to, but not including, ``highs[i]``.
    labels : list of str
        Of the bands; one more where missing values have a group of their own.
    """

    lows: FloatArray
    highs: FloatArray
    labels: list[str]

    def of(self, column: FloatArray) -> IntArray:
        """Return the band of each code; -1 for none."""
        band = np.searchsorted(self.lows, column, side="right") - 1
        inside = (band >= 0) & (column < self.highs[band])
        missing = len(self.lows) if len(self.labels) > len(self.lows) else -1
        return np.where(np.isnan(column), missing, np.where(inside, band, -1))


@dataclass(frozen=True)
class Block:
    """Rows as features see them."""

    codes: FloatArray
    batch: pa.RecordBatch


class Term(ABC):
    """One or several features of the same columns."""

    positions: tuple[int, ...]
    names: list[str]

    @abstractmethod
    def of(self, rows: Block) -> FloatArray:
        """Return one column for each feature; NaN at values that no sample row has."""


@dataclass(frozen=True)
class Number(Term):
    """A column of numbers, counted from an origin; a missing value counts as ``fill``."""

    positions: tuple[int, ...]
    names: list[str]
    origin: float
    fill: float

    def of(self, rows: Block) -> FloatArray:
        """Return x - origin."""
        column = rows.codes[:, self.positions[0]] - self.origin
        return (column if np.isnan(self.fill) else filled(column, self.fill))[:, None]


@dataclass(frozen=True)
class Missing(Term):
    """Whether a number is missing."""

    positions: tuple[int, ...]
    names: list[str]

    def of(self, rows: Block) -> FloatArray:
        """Return one where it is missing."""
        return np.isnan(rows.codes[:, self.positions[0]]).astype(float)[:, None]


@dataclass(frozen=True)
class Curve(Term):
    """The square of a standardised number, or what it exceeds knots by, in standard deviations."""

    positions: tuple[int, ...]
    names: list[str]
    centre: float
    scale: float
    knots: FloatArray | None
    fill: FloatArray

    def of(self, rows: Block) -> FloatArray:
        """Return the square, or a column for each knot."""
        z = (rows.codes[:, self.positions[0]] - self.centre) / self.scale
        if self.knots is None:
            return filled(z * z, self.fill[0])[:, None]
        out = np.empty((len(z), len(self.knots)), order="F")
        for place, knot in enumerate(self.knots):
            out[:, place] = filled(np.maximum(z - knot, 0.0), self.fill[place])
        return out


@dataclass(frozen=True)
class Levels(Term):
    """An indicator of each combination of groups that the sample has.

    Parameters
    ----------
    groupings : sequence of Grouping
        One for each column.
    known : ndarray of int
        The combinations, sorted, each as one number.
    outputs : ndarray of int
        The feature of each.
    of_margin : ndarray of int, optional
        The feature of each level of the margin that these levels come from; -1 for none.
    """

    positions: tuple[int, ...]
    names: list[str]
    groupings: tuple[Grouping, ...]
    known: IntArray
    outputs: IntArray
    of_margin: IntArray | None = None

    def combine(self, codes: FloatArray) -> IntArray:
        """Return each row's combination of groups as one number; -1 if a column has none."""
        return combined(codes, self.positions, self.groupings)

    def places(self, codes: FloatArray) -> IntArray:
        """Return the feature that is one at each row; -1 if there is none."""
        return looked_up(self.known, self.outputs, self.combine(codes))

    def of(self, rows: Block) -> FloatArray:
        """Return the indicators."""
        places = self.places(rows.codes)
        out = np.zeros((len(places), len(self.names)), order="F")
        for level in range(len(self.names)):
            out[:, level] = places == level
        out[places < 0] = np.nan
        return out


@dataclass(frozen=True)
class Product(Term):
    """The products of the features of two terms."""

    positions: tuple[int, ...]
    names: list[str]
    left: Term
    right: Term

    def of(self, rows: Block) -> FloatArray:
        """Return each feature of the left term times each of the right one."""
        left, right = self.left.of(rows), self.right.of(rows)
        return np.einsum("ij,ik->ijk", left, right).reshape(len(left), -1)


class Function(Term):
    """The caller's function of rows in the caller's form.

    Parameters
    ----------
    function : callable
        Takes a table of rows and returns one number, or several, for each.
    form : Form
        That of X.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        form: Form,
        positions: tuple[int, ...],
        names: list[str] | None = None,
    ) -> None:
        self.function, self.form = function, form
        self.positions, self.names = positions, names or []

    def of(self, rows: Block) -> FloatArray:
        """Return what the function does, as columns."""
        name = getattr(self.function, "__name__", "function")
        table = pa.Table.from_batches([rows.batch])
        try:
            values = np.asarray(self.function(self.form.of(table)), dtype=np.float64)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            raise InputError(
                f"The feature function '{name}' fails: {type(error).__name__}: {error}."
            ) from error
        if values.ndim not in (1, 2) or len(values) != len(rows.codes):
            raise InputError(
                f"The feature function '{name}' must return a number for each of the "
                f"{len(rows.codes)} rows, or several; got shape {values.shape}."
            )
        if not np.isfinite(values).all():
            raise InputError(f"The feature function '{name}' returns missing or infinite numbers.")
        return values.reshape(len(values), -1)


class FeatureSet:
    """Features of rows.

    Parameters
    ----------
    codes : ColumnCodes
        The encoder of the columns.
    terms : sequence of Term
    """

    def __init__(self, codes: ColumnCodes, terms: Sequence[Term]) -> None:
        self.codes = codes
        self.terms = list(terms)

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [name for term in self.terms for name in term.names]

    @property
    def origins(self) -> FloatArray:
        """The value at which each feature is zero."""
        origins = [term.origin if isinstance(term, Number) else 0.0 for term in self.terms]
        return np.repeat(origins, [len(term.names) for term in self.terms])

    def __len__(self) -> int:
        return len(self.names)

    def columns_of(self, term: Term) -> list[str]:
        """Return the columns that a term depends on."""
        return [self.codes.names[position] for position in term.positions]

    def transform(self, batch: pa.RecordBatch, *, side: str) -> FloatArray:
        """Return the features of rows; NaN at values that no sample row has."""
        return self.of_codes(self.codes.transform(batch, side=side).values, batch)

    def of_codes(self, codes: FloatArray, batch: pa.RecordBatch) -> FloatArray:
        """Return the features of rows whose codes are known."""
        rows = Block(codes, batch)
        with np.errstate(over="ignore", invalid="ignore"):  # callers check for finite sums
            return np.hstack([np.empty((len(codes), 0)), *(term.of(rows) for term in self.terms)])

    def of_rows(self, codes: FloatArray, batch: pa.RecordBatch) -> RowFeatures:
        """Return the same, with levels as each row's place among them."""
        from unskew.numerics.row_features import Indicators, RowFeatures  # needs SciPy

        rows = Block(codes, batch)
        parts: list[FloatArray | Indicators] = [np.empty((len(codes), 0))]
        with np.errstate(over="ignore", invalid="ignore"):
            for term in self.terms:
                if isinstance(term, Levels):
                    parts.append(Indicators(term.places(codes), len(term.names)))
                else:
                    parts.append(term.of(rows))
        return RowFeatures.of(parts)


class FeatureSums(Summary):
    """The sums of features over rows whose values the sample has, by folds of the rows.

    Attributes
    ----------
    sums : ndarray of shape (n_folds, n_features)
    mass : ndarray of shape (n_folds,)
        The weight of the rows that were summed.
    uncovered : float
        The weight of the rows with a value that no sample row has.
    """

    shared = frozenset({"features"})
    added = ("sums", "mass", "uncovered")

    def __init__(self, features: FeatureSet, n_folds: int = 1) -> None:
        self.features = features
        self.sums = np.zeros((n_folds, len(features)))
        self.mass = np.zeros(n_folds)
        self.uncovered = 0.0

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block."""
        codes = self.features.codes.transform(rows.batch, side="population").values
        with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the sums checks them
            self._add(rows, codes)

    def _add(self, rows: RowBlock, codes: FloatArray) -> None:
        n_folds = len(self.mass)
        for begin in range(0, len(codes), BLOCK):
            part = slice(begin, begin + BLOCK)
            batch = rows.batch.slice(begin, BLOCK)
            values, weight = self.features.of_codes(codes[part], batch), rows.weight[part]
            if np.isnan(values.sum()):
                unseen = np.isnan(values).any(axis=1)
                self.uncovered += float(weight[unseen].sum())
                values[unseen] = 0.0
                weight = np.where(unseen, 0.0, weight)
            for fold in range(n_folds):
                own = slice((fold - rows.start - begin) % n_folds, None, n_folds)
                self.sums[fold] += weight[own] @ values[own]
                self.mass[fold] += weight[own].sum()


def filled(column: FloatArray, fill: float) -> FloatArray:
    """Return a column in which missing values are replaced; NaN leaves them."""
    missing = np.isnan(column)
    if missing.any():
        column[missing] = fill
    return column


def looked_up(keys: FloatArray | IntArray, values: IntArray, asked: Any) -> IntArray:
    """Return the value of each key that is asked for; -1 for those that are not there.

    ``keys`` are sorted. A table of the whole numbers between them is much faster than a search.

    Examples
    --------
    >>> looked_up(np.array([2, 5]), np.array([7, 8]), np.array([5.0, 3.0, 2.0, 2.5, np.nan]))
    array([ 8, -1,  7, -1, -1])
    """
    if not len(keys):
        return np.full(len(asked), -1)
    first, last = float(keys[0]), float(keys[-1])
    if last - first >= MAX_TABLE or (keys != np.floor(keys)).any():
        place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        return np.where(keys[place] == asked, values[place], -1)
    before = int(first) - 1
    table = np.full(int(last - first) + 3, -1)  # with room for what lies before and after
    table[np.asarray(keys - before, dtype=np.intp)] = values
    shifted = asked - before
    with np.errstate(invalid="ignore"):  # of missing values
        places = shifted.astype(np.intp, copy=False)
    found = table.take(places, mode="clip")
    if shifted.dtype.kind == "f" and not (whole := places == shifted).all():
        found[~whole] = -1
    return found


def distinct(codes: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return the different ones of whole numbers from 0 to ``size``, and how often each occurs."""
    if size > max(MAX_TABLE, len(codes)):
        values, counts = np.unique(codes, return_counts=True)
        return values, counts
    counts = np.bincount(codes, minlength=1)
    present = np.flatnonzero(counts)
    return present, counts[present]


def combined(
    codes: FloatArray, positions: Sequence[int], groupings: Sequence[Grouping]
) -> IntArray:
    """Return each row's combination of groups as one number; -1 if a column has none."""
    total: IntArray = np.zeros(len(codes), dtype=np.int64)
    outside = np.zeros(len(codes), dtype=bool)
    for position, grouping in zip(positions, groupings, strict=True):
        group = grouping.of(codes[:, position])
        if len(positions) == 1:
            return group
        outside |= group < 0
        total = total * len(grouping.labels) + group
    return np.where(outside, -1, total)
