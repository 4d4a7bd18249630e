"""Making the draws of a plan, in several processes, and keeping them in a file.

The file is only appended to, one line of JSON per draw, so that a run can be stopped and resumed. A
line that was cut off when the run was killed is ignored, and its draw is made again. The first line
holds the settings, and each data set's fingerprint precedes its first draw: draws of other settings
or data are refused, not mixed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import joblib

from unskew.errors import InputError, ParameterError, UnskewError
from unskew.paper.datasets import DataSet
from unskew.paper.learners import LEARNERS
from unskew.paper.methods import ComparedWeights
from unskew.paper.protocol import (
    Case,
    DrawOutcome,
    MethodScores,
    Plan,
    Work,
    choose_directions,
    run_case,
)

FILE_NAME = "draws.jsonl"


class Kept(NamedTuple):
    """All finished draws, and the calls that made them, if they completed."""

    outcomes: dict[Case, DrawOutcome]
    calls: list[dict[str, Any]]


class Records:
    """The finished draws of one folder.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    settings : dict
        Everything that determines the result of a draw, apart from the data.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.path = folder / FILE_NAME
        self.outcomes: dict[Case, DrawOutcome] = {}
        self.calls: list[dict[str, Any]] = []
        self._settings: dict[str, Any] | None = None
        self._fingerprints: dict[str, str] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._read()
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"'{self.path}' cannot be written: {error.strerror}.") from error
        self._check_settings(dict(settings))

    def add(self, case: Case, outcome: DrawOutcome) -> None:
        """Keep what a draw gave; more methods or totals of a draw join those that are kept."""
        self._write({"case": list(case), **asdict(outcome)})
        self._join(case, outcome)

    def add_set(self, data: DataSet) -> None:
        """Keep a data set's fingerprint, or refuse data that are not those of the kept draws."""
        kept = self._fingerprints.get(data.name)
        if kept is None:
            self._fingerprints[data.name] = data.fingerprint
            entry = {"set": data.name, "fingerprint": data.fingerprint, "source": data.source}
            self._write(entry)
        elif kept != data.fingerprint:
            raise InputError(
                f"'{self.path}' holds draws from other data for {data.name} than those of "
                f"'{data.source}'. Take another output folder, or delete the file."
            )

    def add_call(self, *, made: int, jobs: int, seconds: float) -> None:
        """Keep how long a call took that made draws."""
        if made:
            call = {"draws": made, "jobs": jobs, "seconds": round(seconds, 1)}
            self._write({"call": call})
            self.calls.append(call)

    def lacks(self, case: Case, wanted: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the methods and totals among the wanted ones that are not kept yet."""
        kept = self.outcomes[case].methods if case in self.outcomes else {}
        missing = {
            method: [t for t in totals if method not in kept or t not in kept[method].nmse]
            for method, totals in wanted.items()
        }
        return {method: totals for method, totals in missing.items() if totals}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _check_settings(self, settings: dict[str, Any]) -> None:
        if self._settings is None:
            self._settings = settings
            self._write({"settings": settings})
        for name in sorted({*settings, *self._settings}):
            kept, given = self._settings.get(name), settings.get(name)
            if kept != given:
                self.close()
                raise InputError(
                    f"'{self.path}' holds draws made with {name} = {kept}, not {given}. Take "
                    "another output folder, or delete the file."
                )

    def _read(self) -> None:
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8", errors="replace")
        for line in text.split("\n"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # cut off when a run was killed: that draw is made again
            self._take(entry)
        if text and not text.endswith("\n"):
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def _take(self, entry: Any) -> None:
        try:
            if "settings" in entry:
                self._settings = entry["settings"]
            elif "call" in entry:
                self.calls.append(entry["call"])
            elif "fingerprint" in entry:
                self._fingerprints[entry["set"]] = entry["fingerprint"]
            else:
                fields = {name: value for name, value in entry.items() if name != "case"}
                fields["methods"] = {
                    name: MethodScores(**scores) for name, scores in entry["methods"].items()
                }
                self._join(Case(*entry["case"]), DrawOutcome(**fields))
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"'{self.path}' is not a file of finished draws ({error!r}). Take another output "
                "folder, or delete the file."
            ) from error

    def _join(self, case: Case, outcome: DrawOutcome) -> None:
        kept = self.outcomes.get(case, outcome)
        self.outcomes[case] = replace(
            kept,
            methods={**kept.methods, **_joined(kept.methods, outcome.methods)},
            seconds=kept.seconds if kept is outcome else _summed(kept.seconds, outcome.seconds),
            warnings=sorted({*kept.warnings, *outcome.warnings}),
        )

    def _write(self, entry: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()
        except OSError as error:
            raise InputError(f"'{self.path}' cannot be written: {error.strerror}.") from error


def _joined(
    kept: Mapping[str, MethodScores], new: Mapping[str, MethodScores]
) -> dict[str, MethodScores]:
    return {
        name: replace(scores, nmse={**(kept[name].nmse if name in kept else {}), **scores.nmse})
        for name, scores in new.items()
    }


def _summed(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {key: first.get(key, 0.0) + second.get(key, 0.0) for key in {**first, **second}}


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
    make: Callable[..., DrawOutcome],
    case: Case,
    data: DataSet,
    methods: Mapping[str, ComparedWeights],
    wanted: dict[str, list[str]],
) -> tuple[Work, DrawOutcome]:
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
