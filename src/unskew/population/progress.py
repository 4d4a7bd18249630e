"""How far a pass over the population has come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Progress", "Reporter"]

SECONDS_BETWEEN = 0.1
"""A callback hears of a pass ten times a second at the most, and once more at its end."""


@dataclass(frozen=True)
class Progress:
    """How far a pass has come, as ``Population(data, progress=callback)`` is told.

    Attributes
    ----------
    rows : int
        Rows that are part of the answer so far.
    total_rows : int or None
        All rows; None where only reading tells.
    files : int
        Files that are done; 0 where there are none.
    total_files : int or None
        All files; None where the population is not held in files.
    seconds : float
        Since the pass began.
    resumed_rows : int
        Those of ``rows`` that came from a checkpoint of an earlier pass.

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
        """The share that is done, by rows if their number is known, else by files, else None."""
        if self.total_rows:
            return min(self.rows / self.total_rows, 1.0)
        return self.files / self.total_files if self.total_files else None

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the pace so far; None where nothing tells."""
        if self.share is None or self.rows <= self.resumed_rows or not self.share:
            return None
        # What came from a checkpoint took no time of this pass.
        fresh = self.share * (1 - self.resumed_rows / self.rows)
        return self.seconds * (1 - self.share) / fresh


class Reporter:
    """Tells a callback now and then how far a pass has come."""

    def __init__(
        self,
        callback: Callable[[Progress], object] | None,
        *,
        total_rows: int | None,
        total_files: int | None,
        resumed_rows: int = 0,
    ) -> None:
        self._callback = callback
        self._total_rows = total_rows
        self._total_files = total_files
        self._resumed_rows = resumed_rows
        self._started = self._told = time.perf_counter()

    def advance(self, rows: int, files: int | None) -> None:
        """Tell of a pass under way, unless it was told of a moment ago."""
        if self._callback is not None and time.perf_counter() - self._told >= SECONDS_BETWEEN:
            self._tell(rows, files or 0, self._total_rows)

    def finish(self, rows: int) -> None:
        """Tell of the end."""
        if self._callback is not None:
            self._tell(rows, self._total_files or 0, rows)

    def _tell(self, rows: int, files: int, total_rows: int | None) -> None:
        assert self._callback is not None
        self._told = time.perf_counter()
        seconds = self._told - self._started
        self._callback(
            Progress(rows, total_rows, files, self._total_files, seconds, self._resumed_rows)
        )
