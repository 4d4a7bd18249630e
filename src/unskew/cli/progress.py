"""How far the work is: a bar on a terminal, elsewhere a plain line now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

    from unskew import Progress

__all__ = ["Show", "of_a_pass", "progress_shown"]

PLAIN_EVERY = 15.0
"""Seconds between lines of progress where there is no terminal."""


class Show(Protocol):
    """Is told how far the work is."""

    def __call__(self, share: float | None, done: str, seconds_left: float | None = None) -> None:
        """Show the share that is done, if it is known, and in words what that is.

        Without ``seconds_left`` the time left follows from the time that the share has taken.
        """


@contextmanager
def progress_shown(description: str, console: Console, *, quiet: bool = False) -> Iterator[Show]:
    """Give a function that shows how far the work is."""
    if quiet:
        yield _show_nothing
    elif console.is_terminal:
        with _bar(description, console) as show:
            yield show
    else:
        yield _PlainLines(console)


def of_a_pass(show: Show) -> Callable[[Progress], None]:
    """Return a callback for ``Population(progress=...)`` that shows rows, files and time left."""

    def tell(progress: Progress) -> None:
        done = f"{progress.rows:,} rows"
        if progress.total_rows is not None:
            done = f"{progress.rows:,} of {progress.total_rows:,} rows"
        elif progress.total_files is not None and progress.total_files > 1:
            done += f", {progress.files:,} of {progress.total_files:,} files"
        show(progress.share, done, progress.seconds_left)

    return tell


def _show_nothing(share: float | None, done: str, seconds_left: float | None = None) -> None:
    pass


@contextmanager
def _bar(description: str, console: Console) -> Iterator[Show]:
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
    started = monotonic()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(description, total=None, said="")

        def show(share: float | None, done: str, seconds_left: float | None = None) -> None:
            said = _said(share, done, seconds_left, monotonic() - started)
            total = None if share is None else 1.0  # without one the bar goes to and fro
            bar.update(task, total=total, completed=share or 0.0, said=said)

        yield show


class _PlainLines:
    """Prints a line now and then."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = self._last = monotonic()

    def __call__(self, share: float | None, done: str, seconds_left: float | None = None) -> None:
        now = monotonic()
        if now - self._last >= PLAIN_EVERY:
            self._last = now
            said = _said(share, done, seconds_left, now - self._started)
            self._console.print(said, soft_wrap=True, markup=False)


def _said(share: float | None, done: str, seconds_left: float | None, elapsed: float) -> str:
    if seconds_left is None and share:
        seconds_left = elapsed * (1 / share - 1)
    if seconds_left is None:
        return done
    minutes, seconds = divmod(round(seconds_left), 60)
    return f"{done}, about {minutes}:{seconds:02d} left"
