"""Features whose sums a population is asked for: means, levels, bands, squares, products.

They are fixed before the pass, learned from the sample alone, and computed with NumPy and PyArrow
alone, so that they travel to wherever the rows are. A feature is NaN at a row with a value that no
sample row has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np
import pyarrow as pa

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.rows.encode import ColumnCodes
from unskew.rows.groupings import Grouping, combined, lookup
from unskew.rows.tables import Form

if TYPE_CHECKING:
    from unskew.numerics.row_features import RowFeatures

Part = TypeVar("Part")


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
        return lookup(self.known, self.outputs, self.combine(codes))

    def places_of(self, joint: Levels, position: int) -> IntArray:
        """Return which of these levels of one column each feature of joint levels has."""
        sizes = [len(one.labels) for one in joint.groupings]
        place = joint.positions.index(position)
        group = np.unravel_index(joint.known, sizes)[place]
        values: Any = joint.groupings[place]
        first = np.unique(values.groups, return_index=True)[1]  # a value of each group
        own = self.groupings[0].of(values.values[first])[group]
        return lookup(self.known, self.outputs, own)

    def of(self, rows: Block) -> FloatArray:
        """Return the indicators."""
        places = self.places(rows.codes)
        out = np.zeros((len(places), len(self.names)), order="F")
        known = np.flatnonzero(places >= 0)
        out[known, places[known]] = 1.0
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
    def term_of_feature(self) -> IntArray:
        """The number of each feature's term."""
        widths = np.array([len(term.names) for term in self.terms], dtype=np.intp)
        return np.repeat(np.arange(len(self.terms)), widths)

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
        parts = self._parts(Block(codes, batch), lambda levels, rows: levels.of(rows))
        return np.hstack([np.empty((len(codes), 0)), *parts])

    def of_rows(self, codes: FloatArray, batch: pa.RecordBatch) -> RowFeatures:
        """Return the same, with levels as each row's place among them."""
        from unskew.numerics.row_features import Indicators, RowFeatures  # needs SciPy

        def places(levels: Levels, rows: Block) -> Indicators:
            return Indicators(levels.places(rows.codes), len(levels.names))

        parts = self._parts(Block(codes, batch), places)
        return RowFeatures.of([np.empty((len(codes), 0)), *parts])

    def _parts(
        self, rows: Block, of_levels: Callable[[Levels, Block], Part]
    ) -> list[FloatArray | Part]:
        """Return the features of each term; those of numbers that follow each other as one."""
        parts: list[FloatArray | Part] = []
        with np.errstate(over="ignore", invalid="ignore"):  # callers check for finite sums
            for plain, terms in groupby(self.terms, is_plain_number):
                if plain:
                    parts.append(_numbers(list(terms), rows))
                    continue
                for term in terms:
                    one = of_levels(term, rows) if isinstance(term, Levels) else term.of(rows)
                    parts.append(one)
        return parts


def is_plain_number(term: Term) -> TypeGuard[Number]:
    """Whether a term is a number that the sample nowhere lacks."""
    return isinstance(term, Number) and bool(np.isnan(term.fill))


def _numbers(terms: Sequence[Any], rows: Block) -> FloatArray:
    """Return columns of numbers without missing values, all at once."""
    positions = [term.positions[0] for term in terms]
    return np.asarray(rows.codes[:, positions] - [term.origin for term in terms])


def filled(column: FloatArray, fill: float) -> FloatArray:
    """Return a column in which missing values are replaced; NaN leaves them."""
    missing = np.isnan(column)
    if missing.any():
        column[missing] = fill
    return column
