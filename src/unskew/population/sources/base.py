"""The interface of an engine: parts that can be read independently, in row order.

To add an engine, derive from :class:`Source` in a new file and let
:func:`unskew.population.sources.open_source` recognise its data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from unskew.numerics.typing import IntArray
from unskew.population.reading import BLOCK_ROWS, PassTotals, Reading, combined
from unskew.population.summaries import Summary
from unskew.rows.tables import ColumnLabels

Types: TypeAlias = Mapping[str, pa.DataType]


@dataclass(frozen=True)
class Part:
    """Consecutive rows that one thread reads."""

    n_rows: int
    read: Callable[[], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class File:
    """A file as its folder lists it.

    ``version`` shows whether it has changed since it was opened (:mod:`.versions`); None if that
    could not be found out.
    """

    path: str
    size: int | None = field(default=None, compare=False)
    modified: int | None = field(default=None, compare=False)
    version: Mapping[str, Any] | None = field(default=None, compare=False)


class Source(ABC):
    """Rows that can be read part by part.

    An unreadable file raises :class:`unskew.errors.UnreadableFileError` when its turn comes.

    Attributes
    ----------
    engine : str
        What it is called, where the class does not say it.
    schema : pyarrow.Schema
        The columns, known before anything is read.
    n_rows : int or None
        None if it is unknown before reading.
    named, numbered : bool
        Whether the columns have names, or whole numbers as labels.
    typed : bool
        Whether the schema's types are reliable; those of a CSV file are guessed from its start.
    rereadable : bool
        Whether a second pass is possible.
    in_memory : bool
        Whether rows are at hand by their numbers: then there is a method ``take``.
    ordered : bool
        Whether the rows have a fixed order, so that an array can have an entry for each.
    files : sequence of File
        In row order; empty if the rows are not in files.
    """

    engine: str = ""
    schema: pa.Schema
    n_rows: int | None = None
    named: bool = True
    numbered: bool = False
    typed: bool = True
    rereadable: bool = True
    in_memory: bool = False
    ordered: bool = True
    files: Sequence[File] = ()

    @property
    def labels(self) -> ColumnLabels:
        """What the columns are called."""
        return ColumnLabels(self.schema.names, self.named, self.numbered)

    @abstractmethod
    def parts(self, columns: Sequence[str], types: Types, file: int = 0) -> Iterator[Part]:
        """Yield the parts in row order, with only these columns, in this order.

        ``types`` are the types as which to read columns of untyped sources. ``file`` is the
        position of the file whose parts are wanted, if the rows are in files.
        """

    def check_unchanged(self, file: int = 0) -> None:  # noqa: B027  (most engines cannot tell)
        """Raise an error if a file, all of whose parts are read, changed since it was opened."""

    def answer(self, summary: Summary, reading: Reading) -> PassTotals | None:  # noqa: ARG002
        """Fill the summary where the rows are and return the totals seen, or return None.

        None, the answer of most engines, means that the population must read the parts itself.
        """
        return None

    def for_costly(self) -> Source:
        """Return the same rows in parts for a summary that takes long: mostly as they are."""
        return self

    def take(self, columns: Sequence[str], numbers: IntArray) -> pa.RecordBatch:
        """Return some of the rows, if they are in memory."""
        raise NotImplementedError


class StreamedSource(Source):
    """Rows that arrive in batches, one after the other."""

    @abstractmethod
    def batches(self, columns: list[str]) -> Iterable[pa.RecordBatch]:
        """Return batches that hold at least these columns."""

    def parts(self, columns: Sequence[str], types: Types, file: int = 0) -> Iterator[Part]:  # noqa: ARG002
        """Yield the batches as they arrive."""
        return parts_of_stream(self.batches(list(columns)), columns)


def failed_part(error: Exception) -> Part:
    """Return a part that raises ``error`` when it is read, so that errors come in row order."""

    def read() -> Iterator[pa.RecordBatch]:
        raise error

    return Part(0, read)


def parts_of_stream(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[Part]:
    """Yield batches that arrive one after the other as parts, and combine small ones."""
    waiting: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch.select(list(columns)))
        n_rows += batch.num_rows
        if n_rows >= BLOCK_ROWS:
            yield Part(n_rows, partial(combined, waiting))
            waiting, n_rows = [], 0
    if waiting:
        yield Part(n_rows, partial(combined, waiting))
