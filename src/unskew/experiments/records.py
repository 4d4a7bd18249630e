"""Finished draws, kept in a file so that a run can be stopped and resumed.

The file is only appended to, one line of JSON per draw. A line that was cut off when the run was
killed is ignored, and its draw is made again. The first line holds the settings, and each data
set's fingerprint precedes its first draw: draws of other settings or data are refused, not mixed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from unskew.errors import InputError
from unskew.experiments.datasets import DataSet
from unskew.experiments.protocol import Case, Outcome, Scores

FILE_NAME = "draws.jsonl"


class Kept(NamedTuple):
    """All finished draws, and the calls that made them, if they completed."""

    outcomes: dict[Case, Outcome]
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
        self.outcomes: dict[Case, Outcome] = {}
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

    def add(self, case: Case, outcome: Outcome) -> None:
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
                    name: Scores(**scores) for name, scores in entry["methods"].items()
                }
                self._join(Case(*entry["case"]), Outcome(**fields))
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"'{self.path}' is not a file of finished draws ({error!r}). Take another output "
                "folder, or delete the file."
            ) from error

    def _join(self, case: Case, outcome: Outcome) -> None:
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


def _joined(kept: Mapping[str, Scores], new: Mapping[str, Scores]) -> dict[str, Scores]:
    return {
        name: replace(scores, nmse={**(kept[name].nmse if name in kept else {}), **scores.nmse})
        for name, scores in new.items()
    }


def _summed(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {key: first.get(key, 0.0) + second.get(key, 0.0) for key in {**first, **second}}
