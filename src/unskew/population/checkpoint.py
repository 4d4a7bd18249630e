"""Long passes survive: what a pass has merged so far, in a file from which it can go on.

A checkpoint says which question it belongs to: the summary as it was put, the columns, the weights,
and the files with their sizes and dates. It is put back only for the same question, and holds the
place of the first part that is not merged yet, so that no row is counted twice. Parts are merged in
the order of the rows whatever the number of threads, so the answer of a pass that was resumed has
the bits of one that was not.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unskew.errors import InputError, ParameterError
from unskew.population.fingerprint import fingerprint
from unskew.population.saved_state import load_state, save_state
from unskew.population.seen import Place, Seen
from unskew.population.sources import FileSource, Source
from unskew.population.summaries import Summary

__all__ = ["Checkpoint", "checked_path"]

SECONDS_BETWEEN = 1.0
"""A pass is saved this often at the most, and never for more than a twentieth of its time."""

_FORMAT = "unskew checkpoint 1"
_ENTRY = "checkpoint.json"


def checked_path(path: Any, source: Source) -> Path | None:
    """Return where to keep the checkpoint of a population, or refuse it at once."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"checkpoint must be a path; got a {type(path).__name__}.")
    if not isinstance(source, FileSource):
        raise ParameterError(
            "checkpoint is for populations in files, which can be taken up where a pass broke off; "
            "this one is not."
        )
    place = Path(path).expanduser()
    if place.is_dir() or not place.parent.is_dir():
        raise ParameterError(f"checkpoint='{place}' must be a file in a folder that exists.")
    return place


class Checkpoint:
    """The checkpoint of one pass.

    Parameters
    ----------
    path : Path
        Where it is kept.
    question : Summary
        Empty, as it was put.
    source : FileSource
    reading : dict from str to object
        What else decides the answer: columns, types, weights.
    """

    def __init__(
        self, path: Path, question: Summary, source: FileSource, reading: dict[str, Any]
    ) -> None:
        self._path = path
        self._empty = question
        self._files = [[file.path, file.size, file.modified] for file in source.files]
        try:
            asked = fingerprint(question)
        except ParameterError as error:
            raise ParameterError(
                f"{type(question).__name__} cannot be kept in a checkpoint: {error} Or do without "
                "checkpoint=."
            ) from error
        self._marks = {
            "the question": asked,
            **{name: fingerprint(value) for name, value in reading.items()},
        }
        save_state(question, question)  # what cannot be kept is refused now, not in an hour
        self._saved = time.perf_counter()
        self._took = 0.0

    def load(self, summary: Summary) -> tuple[Seen, Place] | None:
        """Fill ``summary`` with what was saved; None if nothing was.

        A file that is no checkpoint, or that of something else, is an error.
        """
        if not self._path.exists():
            return None
        try:
            with zipfile.ZipFile(self._path) as archive:
                content = json.loads(archive.read(_ENTRY))
                files = {name: archive.read(name) for name in archive.namelist()}
            if content["format"] != _FORMAT:
                raise KeyError("format")
        except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
            raise InputError(
                f"'{self._path}' is no checkpoint of this version of unskew. Give another path, or "
                "delete it if it may go."
            ) from error
        self._check_same(content)
        load_state(summary, content["state"], files)
        return Seen(**content["seen"]), Place(**content["place"])

    def save_if_due(self, summary: Summary, seen: Seen, place: Place) -> None:
        """Save, unless that was done a moment ago."""
        waited = time.perf_counter() - self._saved
        if waited >= max(SECONDS_BETWEEN, 20 * self._took):
            self.save(summary, seen, place)

    def save(self, summary: Summary, seen: Seen, place: Place) -> None:
        """Write the file whole or not at all, and make sure that it is on the disk."""
        started = time.perf_counter()
        state, arrays = save_state(summary, self._empty)
        content = {
            "format": _FORMAT,
            "marks": self._marks,
            "files": self._files,
            "seen": asdict(seen),
            "place": asdict(place),
            "state": state,
        }
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        try:
            with temporary.open("wb") as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                    archive.writestr(_ENTRY, json.dumps(content))
                    for name, data in arrays.items():
                        archive.writestr(name, data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(self._path.parent)
        self._saved = time.perf_counter()
        self._took = self._saved - started

    def remove(self) -> None:
        """Delete the file, now that the pass is whole."""
        self._path.unlink(missing_ok=True)

    def _check_same(self, content: dict[str, Any]) -> None:
        marks = content["marks"]
        other = [name for name, mark in self._marks.items() if marks.get(name) != mark]
        reason = f"{' and '.join(other)} changed" if other else self._changed_files(content)
        if reason:
            raise InputError(
                f"'{self._path}' is the checkpoint of something else: {reason}. Ask as before to "
                "go on with it, give another path, or delete it to begin anew."
            )

    def _changed_files(self, content: dict[str, Any]) -> str:
        saved, now = (
            {path: facts for path, *facts in part} for part in (content["files"], self._files)
        )
        for path in now:
            if path not in saved:
                return f"the file '{path}' was not part of the population"
            if saved[path] != now[path]:
                return f"the file '{path}' has changed"
        gone = [path for path in saved if path not in now]
        if gone:
            return f"the file '{gone[0]}' is no longer part of the population"
        return "" if content["files"] == self._files else "the files are in another order"


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # only there can a folder be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
