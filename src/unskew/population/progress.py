"""Progress of long work: of passes over the population, and of what is computed between them.

Whoever does the work knows what it is, and calls :func:`tell`; whoever wants to know gives the
population a callback, which hears it within :func:`watching`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

SECONDS_BETWEEN = 0.1
"""The callback is called at most ten times a second, and once at the end."""
LEAST_PACE = 2.0
"""Seconds for which a pace must have been measured before anything is forecast from it."""


@dataclass(frozen=True)
class Progress:
    """Progress of a pass, or of a fit; the argument of ``Population(data, progress=callback)``.

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
    doing : str
        What is being done, where it is not reading rows: "training the models, 2 of 5". The other
        fields are then empty.
    since : tuple of float
        The share and the seconds from which on the pace is measured: the later half of the pass.

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
    doing: str = ""
    since: tuple[float, float] = (0.0, 0.0)

    @property
    def share(self) -> float | None:
        """The completed share, by rows if their number is known, else by files, else None."""
        if self.total_rows:
            return min(self.rows / self.total_rows, 1.0)
        return self.files / self.total_files if self.total_files else None

    @property
    def seconds_left(self) -> float | None:
        """The remaining time at the latest pace; None if that is unknown or too short to tell."""
        share, (begun, at) = self.share, self.since
        if share == 1.0:
            return 0.0
        if share is None or share <= begun or self.seconds - at < LEAST_PACE:
            return None
        return (self.seconds - at) * (1 - share) / (share - begun)


_CALLBACK: ContextVar[Callable[[Progress], object] | None] = ContextVar("callback", default=None)


@contextmanager
def watching(callback: Callable[[Progress], object] | None) -> Iterator[None]:
    """Let a callback hear what is done in the block; without one, whoever listens already."""
    before = _CALLBACK.set(_CALLBACK.get() if callback is None else callback)
    try:
        yield
    finally:
        _CALLBACK.reset(before)


def tell(doing: str) -> None:
    """Tell whoever listens what is begun; worth it for what may take a second."""
    callback = _CALLBACK.get()
    if callback is not None:
        callback(Progress(0, None, 0, None, 0.0, doing))


@dataclass
class Reporter:
    """Calls a callback with the progress of a pass, at limited frequency."""

    callback: Callable[[Progress], object] | None
    total_rows: int | None
    total_files: int | None

    def __post_init__(self) -> None:
        self._started = self._last_call = time.perf_counter()
        self._paces: list[tuple[float, float]] = []

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
            now = Progress(rows, self.total_rows, files, self.total_files, seconds)
            self._paces.append((now.share or 0.0, seconds))
            since = next(pace for pace in self._paces if pace[1] >= seconds / 2)
            self.callback(replace(now, since=since))
