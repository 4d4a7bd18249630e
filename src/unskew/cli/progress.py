"""Progress of long work: a bar on a terminal, elsewhere a plain line now and then.

Whatever takes more than two seconds is named, and from then on every fifteen seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from unskew.results import Progress


PLAIN_EVERY = 15.0
"""Seconds between lines of progress where there is no terminal."""
NAMED_AFTER = 2.0
"""Seconds after which work that has been begun is named there."""


Show = Callable[..., None]
"""Shows the share that is done, if it is known, a description of it, and what is done."""


@contextmanager
def show_progress(
    description: str, console: Console, *, quiet: bool = False, forecast: bool = False
) -> Iterator[Show]:
    """Give a function that shows how much of the work is done.

    With ``forecast`` the time left is that of the share that is left, at the pace of the others.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
    bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
    task = bar.add_task(description, total=None, text="")
    plain, started = _PlainLines(console), monotonic()

    def show(
        share: float | None, done: str, seconds_left: float | None = None, doing: str = ""
    ) -> None:
        taken = monotonic() - started
        if forecast and share and taken >= NAMED_AFTER:
            seconds_left = taken * (1 / share - 1)
        if seconds_left is not None:
            done += f", about {_clock(seconds_left)} left"
        if console.is_terminal:
            total, what = None if share is None else 1.0, doing or description
            bar.update(task, total=total, completed=share or 0.0, text=done, description=what)
        else:
            plain.now(doing or done, is_new=bool(doing))

    if quiet:
        yield lambda *_, **__: None
    elif console.is_terminal:
        with bar:
            yield show
    else:
        with plain:
            yield show


class _PlainLines:
    """Prints what is being done, if it takes long; a thread of its own sees how long."""

    def __init__(self, console: Console) -> None:
        self._console, self._done = console, Event()
        self._text, self._named, self._is_new = "", True, False
        self._begun = self._last = monotonic()

    def now(self, text: str, *, is_new: bool) -> None:
        """Remember what is being done."""
        self._text, self._is_new = text, is_new
        if is_new:
            self._begun, self._named = monotonic(), False
        elif monotonic() - self._last >= PLAIN_EVERY:
            self._print(text)

    def __enter__(self) -> None:
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(NAMED_AFTER / 4):
            taken = monotonic() - self._begun
            if not self._named and taken >= NAMED_AFTER:
                self._print(f"{self._text} …")
            elif self._named and self._text and monotonic() - self._last >= PLAIN_EVERY:
                self._print(self._text + (f", {_clock(taken)} so far" if self._is_new else ""))

    def _print(self, text: str) -> None:
        self._named, self._last = True, monotonic()
        self._console.print(text, soft_wrap=True, markup=False)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


@contextmanager
def progress_shown(
    description: str, *, quiet: bool = False
) -> Iterator[Callable[[Progress], None]]:
    """Show the progress of what is done in the block; give a callback for a population."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with show_progress(description, console, quiet=quiet) as show:
        yield population_progress(show)


def population_progress(show: Show) -> Callable[[Progress], None]:
    """Return a callback for ``Population(progress=...)`` that shows rows, files and time left."""

    def update(progress: Progress) -> None:
        if progress.doing:
            show(None, "", doing=progress.doing[0].upper() + progress.doing[1:])
            return
        done = f"{progress.rows:,} rows"
        if progress.total_rows is not None:
            done = f"{progress.rows:,} of {progress.total_rows:,} rows"
        elif progress.total_files is not None and progress.total_files > 1:
            done += f", {progress.files:,} of {progress.total_files:,} files"
        show(progress.share, done, progress.seconds_left)

    return update
