"""Progress of a pass over the population."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

SECONDS_BETWEEN = 0.1
"""The callback is called at most ten times a second, and once at the end."""


@dataclass(frozen=True)
class Progress:
    """Progress of a pass; the argument of ``Population(data, progress=callback)``.

    Attributes
    ----------
    rows : int
        Rows processed so far.
    total_rows : int or None
        All rows; None if unknown before reading.
    files : int
        Files processed so far; 0 if there are none.
    total_files : int or None
        All files; None if the population is not in files.
    seconds : float
        Seconds since the pass began.
    resumed_rows : int
        Rows among ``rows`` that came from the checkpoint of an earlier pass.

    Examples
    --------
    >>> progress = Progress(rows=250, total_rows=1000, files=0, total_files=None, seconds=3.0)
    >>> progress.share, progress.seconds_left
    (0.25, 9.0)
    """

    rows: int
    total_rows: int | None
    files: int
    total_files: int | None
    seconds: float
    resumed_rows: int = 0

    @property
    def share(self) -> float | None:
        """The completed share, by rows if their number is known, else by files, else None."""
        if self.total_rows:
            return min(self.rows / self.total_rows, 1.0)
        return self.files / self.total_files if self.total_files else None

    @property
    def seconds_left(self) -> float | None:
        """The estimated remaining time at the pace so far; None if unknown."""
        if self.share is None or self.rows <= self.resumed_rows or not self.share:
            return None
        # Rows from a checkpoint took no time in this pass.
        fresh = self.share * (1 - self.resumed_rows / self.rows)
        return self.seconds * (1 - self.share) / fresh


@dataclass
class Reporter:
    """Calls a callback with the progress of a pass, at limited frequency."""

    callback: Callable[[Progress], object] | None
    total_rows: int | None
    total_files: int | None
    resumed_rows: int = 0

    def __post_init__(self) -> None:
        self._started = self._last_call = time.perf_counter()

    def advance(self, rows: int, files: int) -> None:
        """Report progress, unless the last report was a moment ago."""
        if time.perf_counter() - self._last_call >= SECONDS_BETWEEN:
            self._report(rows, files)

    def finish(self, rows: int) -> None:
        """Report the end of the pass."""
        self.total_rows = rows
        self._report(rows, self.total_files or 0)

    def _report(self, rows: int, files: int) -> None:
        self._last_call = time.perf_counter()
        if self.callback is not None:
            seconds = self._last_call - self._started
            totals = self.total_rows, files, self.total_files
            self.callback(Progress(rows, *totals, seconds, self.resumed_rows))
