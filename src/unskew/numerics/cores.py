"""How many cores this process may use, who uses them, and the memory that it keeps."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np


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
