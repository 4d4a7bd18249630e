"""The questions that a population can answer, each in a single pass.

A summary is updated with blocks of rows and merged with summaries of other rows. It does not know
where the rows come from, so one pass can be spread over threads, files or machines.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from unskew.errors import ParameterError
from unskew.rows.tables import RowBlock

if TYPE_CHECKING:
    from unskew.population.margin_levels import MarginLevels


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
    >>> import numpy as np
    >>> total = TotalWeight()
    >>> total.update(RowBlock(range(3), np.array([1.0, 0.5, 2.0])))
    >>> total.rows, total.mass
    (3, 3.5)
    """

    added = ("rows", "mass")

    def __init__(self) -> None:
        self.rows = 0
        self.mass = 0.0

    def update(self, rows: RowBlock) -> None:
        """Count the rows."""
        self.rows += len(rows)
        self.mass += rows.mass


SummaryType = TypeVar("SummaryType", bound=Summary)


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


@dataclass(frozen=True)
class About:
    """What is known before the pass.

    Attributes
    ----------
    columns : tuple of str
        The columns that describe a row, under the sample's names.
    n_rows : int or None
        The number of rows, where it is known without reading them.
    weighted : bool
        Whether rows have design weights.
    selected : bool
        Whether rows are marked as being in the sample.
    margins : tuple or None
        Which margins are known, where there are no rows at all; None for a population of rows.
    levels : tuple of MarginLevels
        Those of them that count levels, matched with the sample.
    """

    columns: tuple[str, ...]
    n_rows: int | None
    weighted: bool = False
    selected: bool = False
    margins: tuple[str | tuple[str, ...], ...] | None = None
    levels: tuple[MarginLevels, ...] = ()
