"""Parallel map over threads, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_order"]

Work = TypeVar("Work")
Result = TypeVar("Result")


def in_order(
    function: Callable[[Work], Result], items: Iterable[Work], threads: int, *, ahead: int = 1
) -> Iterator[Result]:
    """Map over items on several threads; yield in order and run only a little ahead.

    At most ``(1 + ahead) * threads`` results wait to be consumed.

    Examples
    --------
    >>> list(in_order(abs, [-1, -2, -3], threads=2))
    [1, 2, 3]
    """
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="unskew") as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) > (1 + ahead) * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
