"""What an engine offers: parts that can be read on their own, in the order of the rows.

To add an engine, derive from :class:`Source` in a file of its own and let
:func:`unskew.population.sources.open_source` recognise its data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa

from unskew.population.reading import BLOCK_ROWS, Reading
from unskew.population.seen import Seen
from unskew.population.summaries import Summary

__all__ = ["BLOCK_ROWS", "File", "FileSource", "Part", "Source", "failed_part", "parts_of_stream"]

BLOCK_ROWS_IN_MEMORY = 8_192
"""Rows of a part that is in memory already: small, so that small tables use every core too."""


@dataclass(frozen=True)
class Part:
    """Consecutive rows that one thread reads by itself."""

    n_rows: int
    read: Callable[[], Iterator[pa.RecordBatch]]
    file: int | None = None
    """The position of its file among the source's, where the source reads files."""


class Source(ABC):
    """Rows that can be read part by part.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns, known before anything is read.
    n_rows : int or None
        None where only reading tells.
    named : bool
        Whether the columns have names of their own.
    typed : bool
        Whether the schema's types are facts; a CSV file's are only a guess from its beginning.
    rereadable : bool
        Whether a second pass is possible.
    ordered : bool
        Whether the rows have an order of their own, so that an array can have an entry for each.
    """

    schema: pa.Schema
    n_rows: int | None = None
    named: bool = True
    typed: bool = True
    rereadable: bool = True
    ordered: bool = True

    @abstractmethod
    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:
        """Yield the parts in the order of their rows, with these columns only, in this order.

        ``types`` says how to read columns whose types are not facts.
        """

    def answer(self, summary: Summary, reading: Reading) -> Seen | None:  # noqa: ARG002
        """Fill the summary where the rows are and say what was seen, or return None.

        None, as most engines answer, means that the population is to read the parts itself.
        """
        return None


@dataclass(frozen=True)
class File:
    """A file as its folder lists it; ``size`` and ``modified`` tell whether it is the same."""

    path: str
    size: int | None = field(default=None, compare=False)
    modified: int | None = field(default=None, compare=False)


class FileSource(Source, ABC):
    """Rows in files, which are read one after the other.

    A file that cannot be read raises :class:`unskew.UnreadableFileError`, when its turn comes.

    Attributes
    ----------
    files : list of File
        Those with readable beginnings, in the order of their rows.
    unreadable : dict from str to str
        Why others are not among them, where that was allowed.
    """

    files: Sequence[File]
    unreadable: Mapping[str, str] = {}

    @abstractmethod
    def parts_of_file(
        self, file: int, columns: Sequence[str], types: Mapping[str, pa.DataType]
    ) -> Iterator[Part]:
        """Yield the parts of one file."""

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:
        """Yield the parts, file by file."""
        for file in range(len(self.files)):
            yield from self.parts_of_file(file, columns, types)


def failed_part(file: int, error: Exception) -> Part:
    """Return a part that raises ``error`` when it is read: an error that awaits its turn."""

    def read() -> Iterator[pa.RecordBatch]:
        raise error

    return Part(0, read, file)


def parts_of_stream(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], *, file: int | None = None
) -> Iterator[Part]:
    """Yield the parts of batches that arrive one after the other, small ones put together."""
    waiting: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch.select(list(columns)))
        n_rows += batch.num_rows
        if n_rows >= BLOCK_ROWS:
            yield _part_in_memory(waiting, n_rows, file)
            waiting, n_rows = [], 0
    if waiting:
        yield _part_in_memory(waiting, n_rows, file)


def _part_in_memory(batches: Sequence[pa.RecordBatch], n_rows: int, file: int | None) -> Part:
    def read() -> Iterator[pa.RecordBatch]:
        # Chunks may differ in how they store a column, and only like can be put together.
        for _, alike in groupby(batches, key=lambda batch: str(batch.schema)):
            same = list(alike)
            if any(pa.types.is_dictionary(kind) for kind in same[0].schema.types):
                yield from same  # their dictionaries together may be too large for their codes
            else:
                yield from pa.Table.from_batches(same).combine_chunks().to_batches()

    return Part(n_rows, read, file)
