"""Checkpoints: a long pass over files that was killed resumes where it was.

A checkpoint holds the state of the merged summary and the place of the first part that is not yet
merged, so that no row counts twice. Parts are merged in row order whatever the number of threads,
so a resumed pass returns the same bits as an uninterrupted one. A checkpoint also records what
decides the answer, and only a run with the same settings on the same files may resume from it.

The file is a line with the format's version, the SHA-256 of everything after it, and a zip of JSON,
NumPy arrays without pickles and Arrow streams: reading it executes nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import time
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.errors import InputError, ParameterError
from unskew.files import write_whole
from unskew.population.seen import Place, Seen
from unskew.population.sources import Source
from unskew.population.summaries import Summary

SECONDS_BETWEEN = 1.0
"""A pass is saved at most this often, and saving takes at most a twentieth of its time."""

_FORMAT = b"unskew checkpoint 2\n"
_HEADER = "header.json"


def checked_path(path: Any, source: Source) -> Path | None:
    """Return the path of a population's checkpoint, or raise if it cannot have one there."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"checkpoint must be a path; got a {type(path).__name__}.")
    if not source.files:
        raise ParameterError("checkpoint requires a population in files; this one is not.")
    place = Path(path).expanduser()
    if place.is_dir() or not place.parent.is_dir():
        raise ParameterError(f"checkpoint='{place}' must be a file in a folder that exists.")
    return place


class Checkpoint:
    """The checkpoint of one pass.

    Parameters
    ----------
    path : Path
    question : Summary
        The summary before the pass.
    source : Source
    settings : dict from str to object
        What else decides the answer, under the names that messages use.
    """

    def __init__(
        self, path: Path, question: Summary, source: Source, settings: dict[str, Any]
    ) -> None:
        import joblib  # here, as most passes do without it

        state = question.state()
        asked = {"the sample, the weighter or its parameters": question, **settings}
        try:
            _packed({}, state)  # what cannot be stored fails now, not in an hour
            self._hashes = {name: joblib.hash(value) for name, value in asked.items()}
        except (pickle.PicklingError, TypeError, ValueError, AttributeError) as error:
            raise ParameterError(
                f"{type(question).__name__} cannot be used with a checkpoint: {error.args[0]}. "
                "Define functions and classes at the top of a module, or omit checkpoint=."
            ) from error
        self._path = path
        self._files = [[file.path, file.size, file.modified] for file in source.files]
        self._saved = time.perf_counter()
        self._took = 0.0

    def load(self, summary: Summary) -> tuple[Seen, Place] | None:
        """Restore ``summary`` from the file and return how far it came; None without a file."""
        if not self._path.exists():
            return None
        try:
            header, state = _unpacked(self._path)
            reached = Seen(**header["seen"]), Place(**header["place"])
            difference = self._difference(header)
        except Exception as error:  # a file can be wrong in any way
            raise InputError(
                f"'{self._path}' is not a checkpoint of this version of unskew, or it is damaged "
                f"({error}). Choose another path, or delete it to start over."
            ) from error
        if difference:
            raise InputError(
                f"'{self._path}' was written by a different run: {difference}. Rerun with the "
                "original settings to resume, choose another path, or delete it to start over."
            )
        summary.restore(state)
        return reached

    def save_if_due(self, summary: Summary, seen: Seen, place: Place) -> None:
        """Save, unless the last time is too recent."""
        waited = time.perf_counter() - self._saved
        if waited >= max(SECONDS_BETWEEN, 20 * self._took):
            self.save(summary, seen, place)

    def save(self, summary: Summary, seen: Seen, place: Place) -> None:
        """Replace the file atomically and sync it to disk."""
        started = time.perf_counter()
        header = {"hashes": self._hashes, "files": self._files}
        header |= {"seen": asdict(seen), "place": asdict(place)}
        content = _packed(header, summary.state())
        write_whole(self._path, _FORMAT + hashlib.sha256(content).digest() + content)
        self._saved = time.perf_counter()
        self._took = self._saved - started

    def _difference(self, header: dict[str, Any]) -> str:
        """Return how this run differs from the one that wrote the header; empty if it does not."""
        changed = [n for n, hashed in self._hashes.items() if header["hashes"].get(n) != hashed]
        if changed:
            return f"{' and '.join(changed)} changed"
        before, now = ({f[0]: f for f in files} for files in (header["files"], self._files))
        for path in [*now, *before]:
            if path not in before or path not in now:
                return f"file '{path}' was {'added' if path in now else 'removed'}"
            if before[path] != now[path]:
                return f"file '{path}' changed"
        return "" if header["files"] == self._files else "the order of the files changed"


def _packed(header: dict[str, Any], state: dict[str, Any]) -> bytes:
    """Return a zip of the header and the state, each array and batch as a member of its own."""
    content, values = io.BytesIO(), {}
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, value in state.items():
            if isinstance(value, np.ndarray | np.generic):
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.save(file, value, allow_pickle=False)
            elif isinstance(value, pa.RecordBatch):
                member = io.BytesIO()
                with pa.ipc.new_stream(member, value.schema) as writer:
                    writer.write_batch(value)
                archive.writestr(f"{name}.arrow", member.getvalue())
            else:
                values[name] = value
        archive.writestr(_HEADER, json.dumps({**header, "values": values}))
    return content.getvalue()


def _unpacked(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the state in a file, once its format and digest prove right."""
    with path.open("rb") as file:
        if file.read(len(_FORMAT)) != _FORMAT:
            raise ValueError("its first line differs")
        digest, content = file.read(hashlib.sha256().digest_size), file.read()
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("its contents do not match their digest")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        # Members are stored as they are, so that none can expand beyond the size of the file.
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise ValueError("it is compressed")
        header = json.loads(archive.read(_HEADER))
        state = dict(header["values"])
        for member in archive.namelist():
            name, _, kind = member.rpartition(".")
            if kind == "npy":
                with archive.open(member) as file:
                    state[name] = np.load(file, allow_pickle=False)[()]
            elif kind == "arrow":
                with pa.ipc.open_stream(archive.read(member)) as reader:
                    state[name] = reader.read_next_batch()
                state[name].validate(full=True)
    return header, state
