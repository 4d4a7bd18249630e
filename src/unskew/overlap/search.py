"""The search for overlap beside a fit, on a thread of its own."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Self

from unskew.numerics.cores import one_blas_thread
from unskew.overlap.measure import measure_overlap
from unskew.overlap.overlap import Overlap
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.population.summaries import Summary


class OverlapSearch:
    """Searches while the fit goes on, as soon as rows of the population are drawn.

    Rows in memory are drawn when it is entered. Others are drawn by the fit's own pass, which asks
    what is in ``asked``; :meth:`start` then begins. As long as it is entered, BLAS keeps to one
    thread: search and fit would compete, and rounding is not to depend on which of them is faster.

    Parameters
    ----------
    sample : Sample
    population : Population
        With the sample's columns.
    thorough : bool
        Whether to draw and compare twenty and ten times as many rows.
    """

    def __init__(self, sample: Sample, population: Population, *, thorough: bool) -> None:
        self._sample, self._population = sample, population
        self._drawn = Reservoir(20_000 if thorough else 1000)
        self._grow_on = 5000 if thorough else 500
        self._overlap: Future[Overlap] | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(one_blas_thread())
            self._pool = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="unskew"))
            if self._population.draw(self._drawn):
                self.start()
            self._leave = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.close()

    @property
    def asked(self) -> list[Summary]:
        """What is to be asked of the population."""
        return [self._drawn] if self._overlap is None else []

    def start(self) -> None:
        """Begin, unless it has begun already."""
        if self._overlap is None:
            self._overlap = self._pool.submit(
                measure_overlap,
                self._sample,
                self._drawn,
                self._population.size,
                grow_on=self._grow_on,
            )

    def result(self) -> Overlap:
        """Return what was found, when the search has ended."""
        self.start()
        assert self._overlap is not None
        return self._overlap.result()
