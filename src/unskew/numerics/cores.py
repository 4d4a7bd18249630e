"""How many cores and threads this process may use, who uses them, and the memory that it keeps."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from unskew.errors import ParameterError

Work = TypeVar("Work")
Result = TypeVar("Result")


def available_cores() -> int:
    """Return the number of cores that the process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread a call, where we have threads of our own that would compete.

    The limit is the process's: it is set by whoever comes first, and lifted by whoever leaves last,
    on whatever thread. Within another it costs next to nothing.
    """
    _BLAS.enter()
    try:
        yield
    finally:
        _BLAS.leave()


class _BlasLimit:
    """How many ask for one thread, and the limit that holds as long as anyone does."""

    def __init__(self) -> None:
        self._lock, self._asking = Lock(), 0
        self._limit: Any = None

    def __reduce__(self) -> Any:
        return _BlasLimit, ()  # where code travels to, nobody asks yet

    def enter(self) -> None:
        with self._lock:
            if not self._asking:
                # SciPy has its own BLAS, which a controller made before does not control.
                controller = _controller("scipy.linalg" in sys.modules)
                self._limit = controller.limit(limits=1, user_api="blas")
            self._asking += 1

    def leave(self) -> None:
        with self._lock:
            self._asking -= 1
            if not self._asking:
                self._limit.restore_original_limits()


_BLAS = _BlasLimit()


@contextmanager
def one_thread(*, when: bool = True) -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread a call, where the work is too little to be shared.

    Their threads wait for each other in a loop, which takes many times as long as the work where
    other processes keep the cores busy.
    """
    if not when:
        yield
        return
    controller = _controller("scipy.linalg" in sys.modules, "sklearn.ensemble" in sys.modules)
    with one_blas_thread(), controller.limit(limits=1, user_api="openmp"):
        yield


@cache
def keep_freed_memory() -> None:
    """Have the C library keep up to 64 MB of freed memory, for work in blocks of a few megabytes.

    Otherwise glibc returns a block's arrays to the system at its end, and the next block fetches
    pages anew: measured on counts of cells, a third of their time. It learns how much to keep from
    the largest array that was freed. Other C libraries do not, and lose nothing.
    """
    np.empty(31 << 20, dtype=np.uint8)


@cache
def _controller(with_scipy: bool, with_trees: bool = False) -> Any:  # noqa: ARG001
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # it looks through all loaded libraries, which takes a while


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
