"""Parallel map over threads, in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

from unskew.errors import ParameterError
from unskew.numerics.cores import available_cores

Work = TypeVar("Work")
Result = TypeVar("Result")


def in_order(
    function: Callable[[Work], Result], items: Iterable[Work], threads: int, *, ahead: int = 1
) -> Iterator[Result]:
    """Map over items on several threads; yield in order and run only a little ahead.

    At most ``(1 + ahead) * threads`` results wait to be consumed. A single item starts no thread.

    Examples
    --------
    >>> list(in_order(abs, [-1, -2, -3], threads=2))
    [1, 2, 3]
    """
    items = iter(items)
    first = list(islice(items, 1 if threads == 1 else 2))
    if len(first) < 2:
        yield from map(function, chain(first, items))
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="unskew") as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for item in chain(first, items):
                pending.append(pool.submit(function, item))
                if len(pending) > (1 + ahead) * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def n_threads(threads: int | None) -> int:
    """Return how many threads to use: as given, or UNSKEW_THREADS, or one for each core."""
    if threads is None:
        given = os.environ.get("UNSKEW_THREADS", "")
        if given and not given.isdigit():
            raise ParameterError(f"UNSKEW_THREADS must be a whole number; got '{given}'.")
        threads = int(given) if given else available_cores()
    if threads < 1:
        raise ParameterError(f"threads must be at least 1; got {threads}.")
    return threads
