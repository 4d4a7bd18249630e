"""Making the draws of a plan, in several processes, and keeping them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import joblib

from unskew.errors import ParameterError, UnskewError
from unskew.experiments.datasets import DataSet
from unskew.experiments.learners import LEARNERS
from unskew.experiments.methods import Method
from unskew.experiments.plan import Plan, Work, choose_directions
from unskew.experiments.protocol import Case, Outcome, run_case
from unskew.experiments.records import Kept, Records


class Finished(NamedTuple):
    """How far a run is: the share of the work, and the draws that are made and that are missing.

    Before the directions are chosen, what is missing is an estimate where draws were kept.
    """

    share: float
    made: int
    missing: int
    case: Case


def run(
    plan: Plan,
    folder: Path,
    *,
    jobs: int = 1,
    progress: Callable[[Finished], None] | None = None,
) -> Kept:
    """Make the draws that the folder lacks, and return all that it then holds.

    Parameters
    ----------
    plan : Plan
    folder : Path
        Where finished draws are kept.
    jobs : int, default=1
        How many processes work, each with one BLAS thread. It does not change the results.
    progress : callable, optional
        Called after each draw.
    """
    if jobs < 1:
        raise ParameterError(f"jobs must be 1 or more; got {jobs}.")
    started = monotonic()
    records = Records(folder, plan.settings)
    try:
        for data in plan.sets:
            records.add_set(data)
        first = _missing(plan.first_stage(), records)
        any_direction = dict.fromkeys(_choices(plan), 0)
        later = _missing(plan.second_stage(any_direction), records)
        tally = _Tally(plan, [*first, *later], progress)
        _work(plan, first, records, jobs, tally)
        second = _missing(plan.second_stage(choose_directions(plan, records.outcomes)), records)
        tally.expect(second)
        _work(plan, second, records, jobs, tally)
        records.add_call(made=len(first) + len(second), jobs=jobs, seconds=monotonic() - started)
    finally:
        records.close()
    return Kept(records.outcomes, records.calls)


def _choices(plan: Plan) -> list[tuple[str, str]]:
    if "logistic" not in plan.mechanisms:
        return []
    return [(data.name, scaling) for data in plan.sets for scaling in plan.scalings]


def _missing(wanted: Iterable[Work], records: Records) -> list[Work]:
    """Return what the records lack, once for each draw."""
    merged: dict[Case, dict[str, list[str]]] = {}
    for case, methods in wanted:
        for method, totals in methods.items():
            known = merged.setdefault(case, {}).setdefault(method, [])
            known += [total for total in totals if total not in known]
    lacking = ((case, records.lacks(case, methods)) for case, methods in merged.items())
    return [(case, methods) for case, methods in lacking if methods]


def _work(plan: Plan, work: list[Work], records: Records, jobs: int, tally: _Tally) -> None:
    data = {each.name: each for each in plan.sets}
    # Large draws first, so that the processes end together.
    ordered = sorted(work, key=lambda each: -tally.cost(each))
    make = partial(run_case, seed=plan.seed, learner=LEARNERS[plan.learner], reading=plan.reading)
    calls = (
        joblib.delayed(_case_and_outcome)(make, case, data[case.set], plan.all_methods, methods)
        for case, methods in ordered
    )
    # Loky's workers import what they need afresh, and take methods given as lambdas.
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(
            n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
        )
        try:
            for done, outcome in parallel(calls):
                records.add(done[0], outcome)
                tally.count(done)
        except BrokenProcessPool as error:
            raise UnskewError(
                "A worker process was killed, perhaps because memory ran out. Finished draws are "
                "kept: run again, with fewer jobs if necessary."
            ) from error


def _case_and_outcome(
    make: Callable[..., Outcome],
    case: Case,
    data: DataSet,
    methods: Mapping[str, Method],
    wanted: dict[str, list[str]],
) -> tuple[Work, Outcome]:
    return (case, wanted), make(case, data, methods, wanted)


class _Tally:
    """Counts what is done in units of cost, which grows with the square of the set's size."""

    def __init__(
        self, plan: Plan, expected: list[Work], progress: Callable[[Finished], None] | None
    ) -> None:
        self._sizes = {data.name: data.n for data in plan.sets}
        self._progress = progress
        self._done, self._made = 0.0, 0
        self.expect(expected)

    def cost(self, work: Work) -> float:
        case, methods = work
        return float(self._sizes[case.set] ** 2 * (1 + sum(map(len, methods.values()))))

    def expect(self, work: list[Work]) -> None:
        self._total = self._done + sum(map(self.cost, work))
        self._missing = self._made + len(work)

    def count(self, work: Work) -> None:
        self._done += self.cost(work)
        self._made += 1
        if self._progress is not None:
            share = self._done / self._total
            self._progress(Finished(share, self._made, self._missing - self._made, work[0]))
