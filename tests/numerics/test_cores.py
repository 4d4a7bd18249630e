"""The limit of BLAS threads is the process's, whichever thread asks for it or leaves first."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np  # noqa: F401  (its BLAS is what is limited)
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from unskew.numerics.cores import one_blas_thread, one_thread


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture
def two_threads() -> Any:
    with threadpool_limits(limits=2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS has one thread only")
        yield


@pytest.mark.usefixtures("two_threads")
def test_who_leaves_first_does_not_lift_the_limit_of_the_other():
    first, second = ExitStack(), ExitStack()
    first.enter_context(one_blas_thread())
    second.enter_context(one_blas_thread())
    first.close()
    assert blas_threads() == {1}
    second.close()
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_the_limit_is_lifted_after_an_error_and_with_openmp():
    def fail() -> None:
        with one_thread(), one_blas_thread():
            assert blas_threads() == {1}
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert blas_threads() == {2}
