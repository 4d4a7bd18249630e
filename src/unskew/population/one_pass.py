"""One pass over a source: what has been merged so far, and what of it is certain.

Parts come in the order of their rows. A file that turns out unreadable half-way is taken out again
where that is allowed, so that a file counts whole or not at all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from unskew.errors import SkippedFilesWarning, UnreadableFileError, warn_caller
from unskew.population.seen import Place, Seen
from unskew.population.sources import Part, Source
from unskew.population.sources.base import Types
from unskew.population.summaries import Summary


class Pass:
    """The merged answer of a pass under way.

    Parameters
    ----------
    summary : Summary
        Takes in the parts.
    source : Source
    skip : bool
        Whether files that cannot be read are left out.

    Attributes
    ----------
    seen : Seen
        What has been merged so far.
    """

    def __init__(self, summary: Summary, source: Source, *, skip: bool) -> None:
        self.summary = summary
        self._source = source
        self._skip = skip
        self.seen, self._place = Seen(started=True, whole=True), Place()
        self._remember()

    def parts(self, columns: Sequence[str], types: Types) -> Iterator[tuple[Part, Place]]:
        """Yield the parts, each with its place."""
        row = 0
        for file in range(max(len(self._source.files), 1)):
            for number, part in enumerate(self._source.parts(columns, types, file)):
                yield part, Place(file, number, row)
                row += part.n_rows

    def add(self, part: Part, place: Place, partial: Summary, found: Seen) -> None:
        """Merge what a part has shown."""
        self._move_to(place)
        skipped = self.seen.skipped
        if skipped and self._source.files[place.file].path in skipped:
            return
        self.summary.merge(partial)
        self.seen.add(found)
        self._place = Place(place.file, place.part + 1, place.row + part.n_rows)

    def leave_out(self, place: Place, error: UnreadableFileError) -> None:
        """Take a file out that cannot be read; raises the error if that is not allowed."""
        if not self._skip:
            raise error
        self._move_to(place)
        skipped = {**self.seen.skipped, self._source.files[place.file].path: str(error)}
        self.summary = copy.deepcopy(self._before[0])
        self.seen = replace(self._before[1], skipped=skipped)

    def finish(self) -> None:
        """Check the last file, when all parts are merged."""
        self._check_file()

    def _check_file(self) -> None:
        """Check that the file whose parts are merged has not changed since it was opened."""
        file = self._place.file
        if self._source.files and self._source.files[file].path in self.seen.skipped:
            return
        try:
            self._source.check_unchanged(file)
        except UnreadableFileError as error:
            self.leave_out(self._place, error)

    def _move_to(self, place: Place) -> None:
        if place.file != self._place.file:
            self._check_file()
            self._place = place
            self._remember()

    def _remember(self) -> None:
        """Keep what was certain before a file, to go back to if the file turns out unreadable."""
        if self._skip:
            self._before = copy.deepcopy(self.summary), replace(self.seen)


def warn_of_skipped(skipped: Mapping[str, str], n_files: int) -> None:
    """Warn of files that were left out."""
    if not skipped:
        return
    shown = "; ".join(list(skipped.values())[:10])
    more = f"; and {len(skipped) - 10} more" if len(skipped) > 10 else ""
    warn_caller(
        SkippedFilesWarning(
            f"{len(skipped)} of the population's {n_files} files could not be read and were left "
            f'out with all their rows (on_error="skip"): {shown}{more}',
            dict(skipped),
        )
    )
