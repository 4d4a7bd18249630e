"""How many cores this process may use, who uses them, and the memory that it keeps."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np


def available_cores() -> int:
    """Return the number of cores that the process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread a call, where we have threads of our own that would compete."""
    # SciPy has its own BLAS, which a controller created before it was loaded does not control.
    with _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas"):
        yield


@contextmanager
def one_thread(*, when: bool = True) -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread a call, where the work is too little to be shared.

    Their threads wait for each other in a loop, which takes many times as long as the work where
    other processes keep the cores busy.
    """
    if not when:
        yield
        return
    with _controller("scipy.linalg" in sys.modules, "sklearn.ensemble" in sys.modules).limit(
        limits=1
    ):
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
