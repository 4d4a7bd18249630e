"""Progress of long work: a bar on a terminal, elsewhere a plain line now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

    from unskew import Progress


PLAIN_EVERY = 15.0
"""Seconds between lines of progress where there is no terminal."""


class Show(Protocol):
    """Shows how much of the work is done."""

    def __call__(self, share: float | None, done: str, seconds_left: float | None = None) -> None:
        """Show the share that is done, if it is known, and a description of it.

        Without ``seconds_left`` the time left is estimated from the share and the time so far.
        """


@contextmanager
def show_progress(description: str, console: Console, *, quiet: bool = False) -> Iterator[Show]:
    """Give a function that shows how much of the work is done."""
    from rich.progress import BarColumn, Progress, TextColumn

    started = last = monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(description, total=None, text="")

    def show(share: float | None, done: str, seconds_left: float | None = None) -> None:
        nonlocal last
        if seconds_left is None and share:
            seconds_left = (monotonic() - started) * (1 / share - 1)
        if seconds_left is not None:
            minutes, seconds = divmod(round(seconds_left), 60)
            done += f", about {minutes}:{seconds:02d} left"
        if console.is_terminal:
            total = None if share is None else 1.0
            bar.update(task, total=total, completed=share or 0.0, text=done)
        elif not quiet and monotonic() - last >= PLAIN_EVERY:
            last = monotonic()
            console.print(done, soft_wrap=True, markup=False)

    with bar if console.is_terminal and not quiet else nullcontext():
        yield show


def population_progress(show: Show) -> Callable[[Progress], None]:
    """Return a callback for ``Population(progress=...)`` that shows rows, files and time left."""

    def update(progress: Progress) -> None:
        done = f"{progress.rows:,} rows"
        if progress.total_rows is not None:
            done = f"{progress.rows:,} of {progress.total_rows:,} rows"
        elif progress.total_files is not None and progress.total_files > 1:
            done += f", {progress.files:,} of {progress.total_files:,} files"
        show(progress.share, done, progress.seconds_left)

    return update
