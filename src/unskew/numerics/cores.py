"""How many cores this process may use, and who uses them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any


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
    with _blas_lock:
        if not _blas_limits:
            # SciPy has its own BLAS, which a controller made before it was loaded does not control.
            controller = _controller("scipy.linalg" in sys.modules)
            _blas_limits.append(controller.limit(limits=1, user_api="blas"))
        else:
            _blas_limits.append(_blas_limits[-1])
    try:
        yield
    finally:
        with _blas_lock:
            limit = _blas_limits.pop()
            if not _blas_limits:
                limit.restore_original_limits()


_blas_lock = Lock()
_blas_limits: list[Any] = []
"""The limit that holds, once for each that asked for it."""


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
def _controller(with_scipy: bool, with_trees: bool = False) -> Any:  # noqa: ARG001
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # it looks through all loaded libraries, which takes a while
