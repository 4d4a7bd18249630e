"""A job that is measured, and how: alternating with its peer, in processor time and wall time."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """One line of the table.

    Parameters
    ----------
    name : str
        What is done, and on how much.
    run : function without arguments
        Does it. What it returns, if that is a text, is the line's note, for example its memory.
    at_most : float
        What is to be reached: seconds of wall time, or with a peer the ratio to the peer's.
    peer : (str, function without arguments), optional
        The named limit or peer, which runs right before each repeat.
    plus : float
        Seconds that are allowed on top of the ratio.
    repeats : int
        How often it is measured, after one run that is not.
    warm : bool
        Whether to run both once before measuring.
    """

    name: str
    run: Callable[[], Any]
    at_most: float
    peer: tuple[str, Callable[[], Any]] | None = None
    plus: float = 0.0
    repeats: int = 5
    warm: bool = True


@dataclass(frozen=True)
class Line:
    """What was measured of a job: medians over its repeats."""

    name: str
    wall: float
    processor: float
    limit: str
    limit_wall: float | None
    limit_processor: float | None
    ratio: float
    at_most: float
    reached: bool
    note: str

    @property
    def verdict(self) -> str:
        """Whether the limit was reached; where other work kept the cores busy, by which clock."""
        if self.reached:
            return "reached"
        if self.limit_wall is None and self.processor * self.ratio <= self.wall:
            return "in processor time"
        return "MISSED"

    def as_dict(self) -> dict[str, Any]:
        """Return it for a JSON file, with three significant digits."""
        return {
            key: float(f"{value:.3g}") if isinstance(value, float) else value
            for key, value in asdict(self).items()
        }


def timed(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return wall seconds, processor seconds (those of processes it started too), and the result.

    Examples
    --------
    >>> wall, processor, found = timed(lambda: sum(range(10)))
    >>> found, wall < 1, processor < 1
    (45, True, True)
    """
    used, started = _processor_seconds(), time.perf_counter()
    found = run()
    wall = time.perf_counter() - started
    return wall, _processor_seconds() - used, found


def _processor_seconds() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def measure(job: Job, repeats: int | None = None) -> Line:
    """Measure a job, alternating with its peer.

    A job without a peer is compared with its limit in seconds. One with a peer that is allowed
    seconds on top of a ratio has reached it if the median of what remains has.
    """
    peer = job.peer[1] if job.peer else None
    if job.warm:
        for run in (peer, job.run):
            if run is not None:
                run()
    ours, theirs, found = [], [], None
    for _ in range(repeats or job.repeats):
        if peer is not None:
            theirs.append(timed(peer)[:2])
        *seconds, found = timed(job.run)
        ours.append(seconds)
    wall, processor = (statistics.median(part) for part in zip(*ours, strict=True))
    note = found if isinstance(found, str) else ""
    if job.peer is None:
        ratio, limit = wall / job.at_most, f"{job.at_most:g} s"
        return Line(job.name, wall, processor, limit, None, None, ratio, 1.0, ratio <= 1, note)
    limit_wall, limit_processor = (statistics.median(part) for part in zip(*theirs, strict=True))
    pairs = list(zip(ours, theirs, strict=True))
    ratio = statistics.median(mine[0] / other[0] for mine, other in pairs)
    left = statistics.median((mine[0] - job.plus) / other[0] for mine, other in pairs)
    limit = job.peer[0] + (f", + {job.plus:g} s" if job.plus else "")
    return Line(
        job.name,
        wall,
        processor,
        limit,
        limit_wall,
        limit_processor,
        ratio,
        job.at_most,
        left <= job.at_most,
        note,
    )
