"""One pass over a source: what has been merged so far, and what of it is certain.

Parts come in the order of their rows. A file that turns out unreadable half-way is taken out again
where that is allowed, so that a file counts whole or not at all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import pyarrow as pa

from unskew.errors import SkippedFilesWarning, UnreadableFileError, warn_caller
from unskew.population.sources import FileSource, Part, Source
from unskew.population.summaries import Summary

__all__ = ["Pass", "Place", "Seen", "warn_of_skipped"]

SummaryType = TypeVar("SummaryType", bound=Summary)


@dataclass
class Seen:
    """What passes have shown of a population; its matched twins share it."""

    started: bool = False
    whole: bool = False
    rows: int = 0
    mass: float = 0.0
    selected: int = 0
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, other: Seen) -> None:
        """Take in what a further part has shown."""
        self.rows += other.rows
        self.mass += other.mass
        self.selected += other.selected


@dataclass(frozen=True)
class Place:
    """The first part that is not merged yet: of which file, which of it, from which row on."""

    file: int = 0
    part: int = 0
    row: int = 0


class Pass(Generic[SummaryType]):
    """The merged answer of a pass under way.

    Parameters
    ----------
    summary : Summary
        Takes in the parts.
    source : Source
    skip : bool
        Whether files that cannot be read are left out.
    """

    def __init__(self, summary: SummaryType, source: Source, *, skip: bool) -> None:
        self.summary = summary
        self.seen = Seen(started=True, whole=True)
        self.place = Place()
        self._source = source
        self._skip = skip
        self._remember()

    def parts(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType]
    ) -> Iterator[tuple[Part, Place]]:
        """Yield the parts that are not merged yet, each with its place."""
        if not isinstance(self._source, FileSource):
            row = 0
            for number, part in enumerate(self._source.parts(columns, types)):
                yield part, Place(0, number, row)
                row += part.n_rows
            return
        start = self.place
        row = start.row
        for file in range(start.file, len(self._source.files)):
            for number, part in enumerate(self._source.parts_of_file(file, columns, types)):
                if file == start.file and number < start.part:
                    continue
                yield part, Place(file, number, row)
                row += part.n_rows

    def add(self, part: Part, place: Place, partial: SummaryType, found: Seen) -> None:
        """Merge what a part has shown."""
        self._move_to(place)
        if self._is_skipped(place.file):
            return
        self.summary.merge(partial)
        self.seen.add(found)
        self.place = Place(place.file, place.part + 1, place.row + part.n_rows)

    def leave_out(self, place: Place, error: UnreadableFileError) -> None:
        """Take a file out that cannot be read; raises the error if that is not allowed."""
        if not (self._skip and isinstance(self._source, FileSource)):
            raise error
        self._move_to(place)
        skipped = {**self.seen.skipped, self._source.files[place.file].path: str(error)}
        vars(self.summary).clear()
        vars(self.summary).update(vars(copy.deepcopy(self._before[0])))
        self.seen = replace(self._before[1], skipped=skipped)

    def _is_skipped(self, file: int) -> bool:
        skipped = self.seen.skipped
        return (
            bool(skipped)
            and isinstance(self._source, FileSource)
            and self._source.files[file].path in skipped
        )

    def _move_to(self, place: Place) -> None:
        if place.file != self.place.file:
            self.place = place
            self._remember()

    def _remember(self) -> None:
        """Keep what was certain before a file, to go back to if the file turns out unreadable."""
        if self._skip:
            self._before = copy.deepcopy(self.summary), replace(self.seen)


def warn_of_skipped(skipped: Mapping[str, str], n_files: int) -> None:
    """Warn of files that were left out."""
    if not skipped:
        return
    names = list(skipped)
    shown = "; ".join(skipped[name] for name in names[:10])
    more = f"; and {len(names) - 10} more" if len(names) > 10 else ""
    warn_caller(
        SkippedFilesWarning(
            f"{len(names)} of the population's {n_files} files could not be read and were left out "
            f'with all their rows (on_error="skip"): {shown}{more}',
            dict(skipped),
        )
    )
