r"""Terms to numbers: the one encoder of rows.

A :class:`Design` is a list of terms, each of which makes one or several columns of a row's codes:

===========  ==============================================================================
Constant     1
Number       :math:`(x - o) / s`, with a constant in place of a missing value
Missing      whether the number is missing
Curve        the square of :math:`z = (x - c) / s`, or hinges :math:`(z - k)_+` at knots k
Levels       one-hot: whether a row is in a group of values, a band, or a combination of them
Product      all products of the columns of two terms
Function     what a caller's function returns
===========  ==============================================================================

Who learns the terms decides what they are for. :func:`point_design` scales numbers such that
distances between rows are meaningful, for kernels and clusters; calibration asks a population for
the sums of its terms; models of selection and of outcomes are linear in theirs. Terms are learned
before the population is read, and computed with NumPy and PyArrow alone, so that they travel to
wherever the rows are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import numpy as np
import pyarrow as pa

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.rows.encode import ColumnCodes, Encoded
from unskew.rows.kinds import Kind
from unskew.rows.tables import Form

if TYPE_CHECKING:
    from unskew.numerics.row_features import RowFeatures

MAX_CATEGORIES = 64
"""The largest number of one-hot columns that a column of categories gets in a space of points."""
LARGEST = 1e150
"""The largest coordinate of which distances can be taken: beyond, squares overflow."""
MAX_TABLE = 4096
"""Whole numbers of a range up to this are looked up in a table."""
CONSTANT = "(constant)"

Scaling = Literal["standard", "range"] | None


@dataclass(frozen=True)
class ValueGroups:
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

    @classmethod
    def from_codes(
        cls, codes: ColumnCodes, position: int, column: FloatArray, most: int | None = None
    ) -> ValueGroups:
        """Return a group for each value of a column; of more than ``most``, the rarest are one."""
        values, counts = np.unique(column, return_counts=True)  # a missing value last
        rare = np.zeros(len(values), dtype=bool)
        if most is not None and len(values) > most:
            rare[np.argsort(counts, kind="stable")[: 1 - most]] = True
        groups = np.where(rare, np.count_nonzero(~rare), np.cumsum(~rare) - 1)
        labels = [codes.format_value(position, value) for value in values[~rare]]
        return cls(values, groups, labels + [f"{rare.sum()} rare ones"] * bool(rare.any()))

    def of(self, column: FloatArray) -> IntArray:
        """Return the group of each code; -1 for none."""
        numbers = self.values[~np.isnan(self.values)]
        groups = lookup(numbers, self.groups[: len(numbers)], column)
        if len(numbers) < len(self.values):
            groups[np.isnan(column)] = self.groups[-1]
        return groups


@dataclass(frozen=True)
class Bands:
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


Grouping = ValueGroups | Bands


class Term(ABC):
    """One or several columns of a design, made of the same columns of rows."""

    positions: tuple[int, ...]
    names: list[str]

    @abstractmethod
    def of(self, codes: FloatArray, batch: pa.RecordBatch | None) -> FloatArray:
        """Return one column for each name; NaN at values that the term does not know."""


@dataclass(frozen=True)
class Constant(Term):
    """One in every row."""

    positions: tuple[int, ...] = ()
    names: list[str] = field(default_factory=lambda: [CONSTANT])

    def of(self, codes: FloatArray, batch: pa.RecordBatch | None) -> FloatArray:  # noqa: ARG002
        """Return ones."""
        return np.ones((len(codes), 1))


@dataclass(frozen=True)
class Number(Term):
    """A column of numbers, from an origin and in units of a scale; a missing one is ``fill``."""

    positions: tuple[int, ...]
    names: list[str]
    origin: float
    fill: float
    scale: float = 1.0

    def of(self, codes: FloatArray, batch: pa.RecordBatch | None) -> FloatArray:  # noqa: ARG002
        """Return (x - origin) / scale."""
        return _numbers([self], codes)


@dataclass(frozen=True)
class Missing(Term):
    """Whether a number is missing."""

    positions: tuple[int, ...]
    names: list[str]

    def of(self, codes: FloatArray, batch: pa.RecordBatch | None) -> FloatArray:  # noqa: ARG002
        """Return one where it is missing."""
        return np.isnan(codes[:, self.positions]).astype(float)


@dataclass(frozen=True)
class Curve(Term):
    """The square of a standardised number, or what it exceeds knots by, in standard deviations."""

    positions: tuple[int, ...]
    names: list[str]
    centre: float
    scale: float
    knots: FloatArray | None
    fill: FloatArray

    def of(self, codes: FloatArray, batch: pa.RecordBatch | None) -> FloatArray:  # noqa: ARG002
        """Return the square, or a column for each knot."""
        z = (codes[:, self.positions] - self.centre) / self.scale
        values = z * z if self.knots is None else np.maximum(z - self.knots, 0.0)
        return fill_missing(values, self.fill)


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
        The column of the design of each.
    of_margin : ndarray of int, optional
        The column of each level of the margin that these levels come from; -1 for none.
    unseen : float
        The indicators of a row without any of the levels.
    """

    positions: tuple[int, ...]
    names: list[str]
    groupings: tuple[Grouping, ...]
    known: IntArray
    outputs: IntArray
    of_margin: IntArray | None = None
    unseen: float = np.nan

    @classmethod
    def from_groups(cls, codes: ColumnCodes, position: int, groups: ValueGroups) -> Levels:
        """Return the groups of one column; a row in none of them has only zeros."""
        names = [f"{codes.names[position]} = {label}" for label in groups.labels]
        places = np.arange(len(names))
        return cls((position,), names, (groups,), places, places, unseen=0.0)

    def combine(self, codes: FloatArray) -> IntArray:
        """Return each row's combination of groups as one number; -1 if a column has none."""
        return combined(codes, self.positions, self.groupings)

    def places(self, codes: FloatArray) -> IntArray:
        """Return the indicator that is one at each row; -1 if there is none."""
        return lookup(self.known, self.outputs, self.combine(codes))

    def places_of(self, joint: Levels, position: int) -> IntArray:
        """Return which of these levels of one column each indicator of joint levels has."""
        sizes = [len(one.labels) for one in joint.groupings]
        place = joint.positions.index(position)
        group = np.unravel_index(joint.known, sizes)[place]
        values: Any = joint.groupings[place]
        first = np.unique(values.groups, return_index=True)[1]  # a value of each group
        own = self.groupings[0].of(values.values[first])[group]
        return lookup(self.known, self.outputs, own)

    def of(self, codes: FloatArray, batch: pa.RecordBatch | None) -> FloatArray:  # noqa: ARG002
        """Return the indicators."""
        places = self.places(codes)
        out = np.zeros((len(places), len(self.names)))
        known = np.flatnonzero(places >= 0)
        out[known, places[known]] = 1.0
        if len(known) < len(places) and self.unseen != 0:
            out[places < 0] = self.unseen
        return out


@dataclass(frozen=True)
class Product(Term):
    """The products of the columns of two terms."""

    positions: tuple[int, ...]
    names: list[str]
    left: Term
    right: Term

    def of(self, codes: FloatArray, batch: pa.RecordBatch | None) -> FloatArray:
        """Return each column of the left term times each of the right one."""
        left, right = self.left.of(codes, batch), self.right.of(codes, batch)
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
        self, function: Callable[[Any], Any], form: Form, positions: tuple[int, ...]
    ) -> None:
        self.function, self.form = function, form
        self.positions, self.names = positions, list[str]()

    def of(self, codes: FloatArray, batch: pa.RecordBatch | None) -> FloatArray:
        """Return what the function does, as columns."""
        name = getattr(self.function, "__name__", "function")
        table = pa.Table.from_batches([batch])
        try:
            values = np.asarray(self.function(self.form.of(table)), dtype=np.float64)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            raise InputError(
                f"The feature function '{name}' fails: {type(error).__name__}: {error}."
            ) from error
        if values.ndim not in (1, 2) or len(values) != len(codes):
            raise InputError(
                f"The feature function '{name}' must return a number for each of the "
                f"{len(codes)} rows, or several; got shape {values.shape}."
            )
        if not np.isfinite(values).all():
            raise InputError(f"The feature function '{name}' returns missing or infinite numbers.")
        return values.reshape(len(values), -1)


class Design:
    """Terms of the columns of rows, and the numbers that they make.

    Parameters
    ----------
    codes : ColumnCodes
        The encoder of the columns.
    terms : sequence of Term

    Examples
    --------
    >>> sample = pa.record_batch({"age": [30, 40], "town": ["Ulm", "Bonn"]})
    >>> codes = ColumnCodes()
    >>> design = point_design(codes, codes.fit_transform(sample), scaling=None)
    >>> design.names
    ['age', 'town = Bonn', 'town = Ulm']
    >>> design.transform(sample, side="sample").values
    array([[30.,  0.,  1.], [40.,  1.,  0.]])
    """

    def __init__(self, codes: ColumnCodes, terms: Sequence[Term]) -> None:
        self.codes = codes
        self.terms = list(terms)

    @property
    def names(self) -> list[str]:
        """What each column is."""
        return [name for term in self.terms for name in term.names]

    @property
    def term_of_feature(self) -> IntArray:
        """The number of each column's term."""
        widths = np.array([len(term.names) for term in self.terms], dtype=np.intp)
        return np.repeat(np.arange(len(self.terms)), widths)

    @property
    def origins(self) -> FloatArray:
        """The value at which each column is zero."""
        origins = [term.origin if isinstance(term, Number) else 0.0 for term in self.terms]
        return np.repeat(origins, [len(term.names) for term in self.terms])

    def __len__(self) -> int:
        return sum(len(term.names) for term in self.terms)

    def columns_of(self, term: Term) -> list[str]:
        """Return the columns of rows that a term depends on."""
        return [self.codes.names[position] for position in term.positions]

    def transform(self, batch: pa.RecordBatch, *, side: str) -> Encoded:
        """Return the numbers of rows, and which rows have a value that no sample row has."""
        codes, unseen = self.codes.transform(batch, side=side)
        return Encoded(self.of_codes(codes, batch), unseen)

    def of_codes(self, codes: FloatArray, batch: pa.RecordBatch | None = None) -> FloatArray:
        """Return the numbers of rows whose codes are known; ``batch`` is for functions of rows."""
        out, begin = np.empty((len(codes), len(self))), 0
        for part in self._parts(codes, batch):
            values = part.of(codes, batch) if isinstance(part, Levels) else part
            out[:, begin : begin + values.shape[1]] = values
            begin += values.shape[1]
        return out

    def of_rows(self, codes: FloatArray, batch: pa.RecordBatch) -> RowFeatures:
        """Return the same, with levels as each row's place among them."""
        from unskew.numerics.row_features import Indicators, RowFeatures  # needs SciPy

        parts: list[Any] = [np.empty((len(codes), 0))]
        for part in self._parts(codes, batch):
            if isinstance(part, Levels):
                parts.append(Indicators(part.places(codes), len(part.names)))
            else:
                parts.append(part)
        return RowFeatures.from_parts(parts)

    def _parts(
        self, codes: FloatArray, batch: pa.RecordBatch | None
    ) -> Iterator[FloatArray | Levels]:
        """Yield the columns of each term, of numbers that follow each other at once; or levels."""
        for numbers, terms in groupby(self.terms, lambda term: isinstance(term, Number)):
            if numbers:
                yield _numbers(list(terms), codes)
                continue
            for term in terms:
                if isinstance(term, Levels):
                    yield term
                    continue
                with np.errstate(over="ignore", invalid="ignore"):  # callers look for NaN
                    yield term.of(codes, batch)

    def split_levels(self, codes: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the numbers of all terms but levels, and of each of these the row's level.

        That is the place of the one among its indicators, or -1 if all are zero: the same as
        :meth:`of_codes`, in the memory of the columns instead of that of the categories.
        """
        levels = [term for term in self.terms if isinstance(term, Levels)]
        others = Design(self.codes, [term for term in self.terms if not isinstance(term, Levels)])
        places = np.array([term.places(codes) for term in levels], dtype=np.int64)
        return others.of_codes(codes), places.reshape(-1, len(codes)).T

    def distinguish(self, codes: FloatArray) -> list[FloatArray]:
        """Return columns that are equal in two rows if these are the same point.

        They are the numbers themselves, which no arithmetic has rounded, and far fewer than the
        columns of a point where categories are one-hot.
        """
        columns = [codes[:, t.positions[0]] for t in self.terms if isinstance(t, Number)]
        levels = [term.places(codes) for term in self.terms if isinstance(term, Levels)]
        return columns + [places.astype(np.float64) for places in levels]

    def check_distances(self, values: FloatArray, *, side: str, remedy: str = "") -> None:
        """Refuse points too large to take distances, naming the column.

        ``side`` is where the points are from, ``remedy`` what can be done besides rescaling.
        """
        with np.errstate(invalid="ignore"):
            reach = np.abs(values).max(axis=0, initial=0.0)
        for place, number in enumerate(self.term_of_feature):
            term = self.terms[number]
            if isinstance(term, Number) and not (reach[place] < LARGEST and term.scale < np.inf):
                raise InputError(
                    f"Column '{self.columns_of(term)[0]}' of the {side} holds values too large to "
                    "take distances between rows: their squares are beyond floating point. "
                    f"Replace them, rescale the column{remedy}."
                )


def point_design(codes: ColumnCodes, values: FloatArray, scaling: Scaling = "standard") -> Design:
    """Return a space of numbers in which distances between rows are meaningful.

    Numbers come first, then indicators of their missing values, then categories one-hot. The
    formulas are those of scikit-learn's ``StandardScaler``, ``MinMaxScaler``, ``SimpleImputer``
    and ``OneHotEncoder``.

    Parameters
    ----------
    codes : ColumnCodes
    values : ndarray of shape (n_rows, n_columns)
        The codes of the rows to learn from.
    scaling : {"standard", "range", None}
        Numbers and times get mean 0 and variance 1 on these rows, or the range 0 to 1, or stay as
        they are.
    """
    is_category = np.array([kind == Kind.CATEGORY for kind in codes.kinds])
    numbers = np.flatnonzero(~is_category)
    columns = np.array(values[:, numbers], order="F")
    missing = np.isnan(columns)
    with np.errstate(over="ignore", invalid="ignore"):  # callers check for finite points
        present = np.maximum((~missing).sum(axis=0), 1)
        means = np.where(missing, 0.0, columns).sum(axis=0) / present
        np.copyto(columns, means, where=missing)
        origins, scales = _scaling(columns, scaling)
        fills = (means - origins) / scales
    learned = zip(numbers, origins.tolist(), fills.tolist(), scales.tolist(), strict=True)
    terms: list[Term] = [
        Number((int(p),), [codes.names[p]], origin, fill, scale)
        for p, origin, fill, scale in learned
    ]
    terms += [
        Missing((int(p),), [f"{codes.names[p]} is missing"])
        for p in numbers
        if codes.has_missing[p]
    ]
    for p in np.flatnonzero(is_category).tolist():
        groups = ValueGroups.from_codes(codes, p, values[:, p], MAX_CATEGORIES)
        terms.append(Levels.from_groups(codes, p, groups))
    return Design(codes, terms)


def _scaling(columns: FloatArray, scaling: Scaling) -> tuple[FloatArray, FloatArray]:
    """Return the origin and the scale of each column: x becomes (x − origin) / scale."""
    n_rows, n_columns = columns.shape
    eps = np.finfo(float).eps
    if scaling == "range":
        low = columns.min(axis=0)
        width = columns.max(axis=0) - low
        return low, np.where(width < 10 * eps, 1.0, width)
    if scaling is None:
        return np.zeros(n_columns), np.ones(n_columns)
    mean = columns.sum(axis=0) / n_rows
    centred = columns - mean
    # The second term corrects the rounding of the mean.
    variance = ((centred**2).sum(axis=0) - centred.sum(axis=0) ** 2 / n_rows) / n_rows
    # A column whose variance is within the rounding error of its mean counts as constant.
    constant = variance <= n_rows * eps * variance + (n_rows * mean * eps) ** 2
    return mean, np.where(constant, 1.0, np.sqrt(variance))


def is_plain_number(term: Term) -> TypeGuard[Number]:
    """Whether a term is a number in its own units that the sample nowhere lacks."""
    return isinstance(term, Number) and bool(np.isnan(term.fill)) and term.scale == 1.0


def _numbers(terms: Sequence[Any], codes: FloatArray) -> FloatArray:
    """Return the columns of numbers, all at once."""
    columns = codes[:, [term.positions[0] for term in terms]]
    with np.errstate(over="ignore", invalid="ignore"):  # callers look for what is not finite
        columns -= [term.origin for term in terms]
        if any(term.scale != 1.0 for term in terms):
            columns /= [term.scale for term in terms]
    return fill_missing(columns, np.array([term.fill for term in terms]))


def fill_missing(columns: FloatArray, fill: FloatArray) -> FloatArray:
    """Put a constant in place of the missing values of each column; NaN leaves them."""
    if not np.isnan(fill).all():
        missing = np.isnan(columns)
        if missing.any():
            np.copyto(columns, fill, where=missing)
    return columns


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


def lookup(keys: FloatArray | IntArray, values: IntArray, asked: Any) -> IntArray:
    """Return the value of each key that is asked for; -1 for those that are not there.

    ``keys`` are sorted. A table of the whole numbers between them is much faster than a search.

    Examples
    --------
    >>> lookup(np.array([2, 5]), np.array([7, 8]), np.array([5.0, 3.0, 2.0, 2.5, np.nan]))
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
