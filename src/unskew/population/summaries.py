"""The questions that a population can answer, each in a single pass.

A summary is updated with blocks of rows and merged with summaries of other rows. It does not know
where the rows come from, so one pass can be spread over threads, files or machines.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from unskew.errors import ParameterError
from unskew.numerics.typing import FloatArray
from unskew.rows.encode import Encoded
from unskew.rows.tables import RowBlock


class Summary(ABC):
    """A small answer that grows with blocks of rows and merges with its like.

    Pass an empty summary to :meth:`unskew.Population.reduce`. The population copies it for each
    part that it reads and merges the copies in row order, whichever part finishes first.

    Examples
    --------
    >>> from unskew import Population
    >>> from unskew.results import Summary
    >>> class Rows(Summary):
    ...     n = 0
    ...     def update(self, rows):
    ...         self.n += rows.batch.num_rows
    ...     def merge(self, other):
    ...         self.n += other.n
    >>> Population([[1.0], [2.0], [3.0]]).reduce(Rows()).n
    3
    """

    answered = False
    """Whether a pass has filled the summary; a filled one is refused as a question."""
    grows: ClassVar[bool] = False
    """Whether the answer can be larger than the empty summary."""
    costly: ClassVar[bool] = False
    """Whether a thousand rows are worth a thread of their own."""
    light: ClassVar[bool] = False
    """Whether it holds little for each row of a block, so that blocks may have more rows."""
    shared: ClassVar[frozenset[str]] = frozenset()
    """Read-only attributes, which copies share."""
    added: ClassVar[tuple[str, ...]] = ()
    """The numbers and arrays that merging adds up."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if name not in self.shared:
                setattr(twin, name, copy.deepcopy(value, memo))
        return twin

    def nested(self) -> Iterator[Summary]:
        """Yield the summaries of which this one is composed."""
        return (value for _, value in self.unshared() if isinstance(value, Summary))

    def is_costly(self) -> bool:
        """Whether it or a summary within it is ``costly``."""
        return self.costly or any(part.is_costly() for part in self.nested())

    def is_light(self) -> bool:
        """Whether it is ``light``, or all summaries of which it is composed are."""
        parts = [part.is_light() for part in self.nested()]
        return self.light or (bool(parts) and all(parts))

    def unshared(self) -> Iterator[tuple[str, Any]]:
        """Yield the attributes that are not in ``shared``; of a list of summaries, each."""
        for name, value in vars(self).items():
            if name not in self.shared:
                if isinstance(value, list) and value and isinstance(value[0], Summary):
                    yield from ((f"{name}.{place}", part) for place, part in enumerate(value))
                else:
                    yield name, value

    @abstractmethod
    def update(self, rows: RowBlock) -> None:
        """Add a block of rows."""

    def merge(self, other: Self) -> None:
        """Add what ``other``, a summary of later rows, has seen.

        As defined here, this adds what ``added`` names and merges the summaries within. A summary
        that gathers anything else overrides it.
        """
        parts = list(zip(self.nested(), other.nested(), strict=True))
        if not (self.added or parts):
            raise NotImplementedError(f"{type(self).__name__} defines neither `added` nor `merge`.")
        for name in self.added:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for own, others in parts:
            own.merge(others)

    def stand_alone(self) -> None:
        """Stop sharing what copies have learned and may have to take back.

        Called on each copy of a pass that may leave out files of which it has read a part already.
        """
        for part in self.nested():
            part.stand_alone()

    def check_empty(self) -> None:
        """Refuse a summary that is filled already, or that contains one."""
        if self.answered:
            raise ParameterError(
                f"This {type(self).__name__} has been answered already. Create a new one."
            )
        for part in self.nested():
            part.check_empty()

    def finish(self) -> None:
        """Mark the summary as filled; called once, after the last row."""
        self.answered = True
        for part in self.nested():
            part.finish()


class TotalWeight(Summary):
    """The number of rows and their total weight.

    Examples
    --------
    >>> total = TotalWeight()
    >>> total.update(RowBlock(range(3), np.array([1.0, 0.5, 2.0])))
    >>> total.rows, total.mass
    (3, 3.5)
    """

    light = True
    added = ("rows", "mass")

    def __init__(self) -> None:
        self.rows = 0
        self.mass = 0.0

    def update(self, rows: RowBlock) -> None:
        """Count the rows."""
        self.rows += len(rows)
        self.mass += rows.mass


class Encoder(Protocol):
    """Turns record batches into numbers."""

    def transform(self, batch: pa.RecordBatch, *, side: str) -> Encoded:
        """Return the rows as numbers."""


SummaryType = TypeVar("SummaryType", bound=Summary)


class EncodedRows(Summary, Generic[SummaryType]):
    """A summary of the rows after encoding: its blocks hold matrices of numbers.

    Attributes
    ----------
    summary : Summary
        The summary of the encoded rows.
    unseen : float
        The weight of the rows with a value that no sample row has.
    """

    shared = frozenset({"encoder"})
    added = ("unseen",)

    def __init__(self, encoder: Encoder, summary: SummaryType) -> None:
        self.encoder = encoder
        self.summary = summary
        self.unseen = 0.0

    def update(self, rows: RowBlock) -> None:
        """Encode a block and pass it on."""
        values, unseen = self.encoder.transform(rows.batch, side="population")
        if unseen is not None:
            self.unseen += float(rows.weight[unseen].sum())
        self.summary.update(replace(rows, batch=values))


class OfColumns(Summary, Generic[SummaryType]):
    """A summary of some of the columns of a pass that reads more.

    Attributes
    ----------
    summary : Summary
    """

    shared = frozenset({"columns"})

    def __init__(self, columns: Sequence[str], summary: SummaryType) -> None:
        self.columns = list(columns)
        self.summary = summary

    def update(self, rows: RowBlock) -> None:
        """Pass the columns on."""
        self.summary.update(replace(rows, batch=rows.batch.select(self.columns)))


class Summaries(Summary):
    """Several questions at once, answered in the same pass."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = list(parts)

    def update(self, rows: RowBlock) -> None:
        """Pass a block to each of them."""
        for part in self.parts:
            part.update(rows)


class Question(Summary, Generic[SummaryType]):
    """A summary together with what was learned in order to ask it.

    A weighter writes nothing on itself when it asks: a tree, knots or landmarks come back to it
    with the answer. They stay where the question was asked; only the summary travels to the rows.

    Attributes
    ----------
    summary : Summary
    learned : object
    """

    shared = frozenset({"learned"})

    def __init__(self, summary: SummaryType, learned: Any) -> None:
        self.summary = summary
        self.learned = learned

    def update(self, rows: RowBlock) -> None:
        """Pass a block on."""
        self.summary.update(rows)


class Moments(Summary):
    """Weighted mean and variance of each column of a matrix; missing entries are left out.

    Merging uses the centred update of Chan, Golub and LeVeque, "Algorithms for computing the sample
    variance", The American Statistician 37 (1983), so that columns far from zero keep their digits.

    Examples
    --------
    >>> moments = Moments(1)
    >>> moments.update(RowBlock(np.array([[1.0], [2.0], [np.nan]]), np.ones(3)))
    >>> moments.mean, moments.variance, moments.mass
    (array([1.5]), array([0.25]), array([2.]))
    """

    def __init__(self, n_columns: int) -> None:
        self.mass: FloatArray = np.zeros(n_columns)
        self.mean: FloatArray = np.zeros(n_columns)
        self._squares: FloatArray = np.zeros(n_columns)

    @property
    def variance(self) -> FloatArray:
        """The population variance, that is with divisor ``mass``."""
        return self._squares / np.maximum(self.mass, np.finfo(float).tiny)

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a matrix."""
        values, weight = rows.batch, rows.weight
        present = ~np.isnan(values)
        part = Moments(values.shape[1])
        part.mass = weight @ present
        divisor = np.maximum(part.mass, np.finfo(float).tiny)
        part.mean = weight @ np.where(present, values, 0.0) / divisor
        part._squares = weight @ np.where(present, values - part.mean, 0.0) ** 2
        self.merge(part)

    def merge(self, other: Moments) -> None:
        """Combine with the moments of other rows."""
        mass = self.mass + other.mass
        share = other.mass / np.maximum(mass, np.finfo(float).tiny)
        shift = other.mean - self.mean
        self._squares += other._squares + shift**2 * self.mass * share
        self.mean = self.mean + shift * share
        self.mass = mass
