"""The interface of an engine: parts that can be read independently, in row order.

To add an engine, derive from :class:`Source` in a new file and let
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
"""Rows of a part that is already in memory: few, so that small tables use every core too."""


@dataclass(frozen=True)
class Part:
    """Consecutive rows that one thread reads."""

    n_rows: int
    read: Callable[[], Iterator[pa.RecordBatch]]
    file: int | None = None
    """The position of its file in the source's list, if the source reads files."""


class Source(ABC):
    """Rows that can be read part by part.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns, known before anything is read.
    n_rows : int or None
        None if it is unknown before reading.
    named : bool
        Whether the columns have names.
    typed : bool
        Whether the schema's types are reliable; those of a CSV file are guessed from its start.
    rereadable : bool
        Whether a second pass is possible.
    ordered : bool
        Whether the rows have a fixed order, so that an array can have an entry for each.
    """

    schema: pa.Schema
    n_rows: int | None = None
    named: bool = True
    typed: bool = True
    rereadable: bool = True
    ordered: bool = True

    @abstractmethod
    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:
        """Yield the parts in row order, with only these columns, in this order.

        ``types`` are the types as which to read columns of untyped sources.
        """

    def answer(self, summary: Summary, reading: Reading) -> Seen | None:  # noqa: ARG002
        """Fill the summary where the rows are and return the totals seen, or return None.

        None, the answer of most engines, means that the population must read the parts itself.
        """
        return None


@dataclass(frozen=True)
class File:
    """A file as its folder lists it; ``size`` and ``modified`` show whether it has changed."""

    path: str
    size: int | None = field(default=None, compare=False)
    modified: int | None = field(default=None, compare=False)


class FileSource(Source, ABC):
    """Rows in files, which are read one after the other.

    An unreadable file raises :class:`unskew.UnreadableFileError` when its turn comes.

    Attributes
    ----------
    files : list of File
        The files that could be opened, in row order.
    unreadable : dict from str to str
        The reasons why other files were left out, if that is allowed.
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
    """Return a part that raises ``error`` when it is read, so that errors come in row order."""

    def read() -> Iterator[pa.RecordBatch]:
        raise error

    return Part(0, read, file)


def parts_of_stream(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], *, file: int | None = None
) -> Iterator[Part]:
    """Yield batches that arrive one after the other as parts, and combine small ones."""
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
        # Chunks may store a column in different types, and only equal types can be combined.
        for _, alike in groupby(batches, key=lambda batch: str(batch.schema)):
            same = list(alike)
            if any(pa.types.is_dictionary(kind) for kind in same[0].schema.types):
                yield from same  # their combined dictionaries may be too large for their codes
            else:
                yield from pa.Table.from_batches(same).combine_chunks().to_batches()

    return Part(n_rows, read, file)
