"""Output files that appear whole or not at all.

Each is written to a temporary file in the same folder, flushed to disk, and renamed. A file that
existed before is intact until that moment, and its permissions are kept. Several files of one
command are all written before the first is renamed.

A process that is killed cannot remove its temporary files. While it runs it holds a lock on each of
them, so the next process that writes to the same path can recognise those that were left behind,
and removes them.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from unskew.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows, where temporary files of killed processes remain
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".unfinished"
_LOCKED_AFTER = 60.0
"""Seconds after which a temporary file without a lock was left behind: a running process locks its
file well before that."""


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write text or bytes to a file that appears whole or not at all."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with whole_file(Path(path)) as temporary, writing(path):
        temporary.write_bytes(data)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path and rename it to ``path`` once the block has succeeded."""
    with whole_files([path]) as (temporary,):
        yield temporary


@contextmanager
def whole_files(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield a temporary path for each of ``paths``; rename all once the block has succeeded."""
    places = [Path(os.path.realpath(path)) for path in paths]  # a link stays, its file is replaced
    with ExitStack() as stack:
        temporaries = [
            stack.enter_context(_temporary(place, shown=path))
            for place, path in zip(places, paths, strict=True)
        ]
        yield temporaries
        for temporary, place, path in zip(temporaries, places, paths, strict=True):
            with writing(path):
                temporary.chmod(_mode(place))
                _flush_to_disk(temporary)
        for temporary, place, path in zip(temporaries, places, paths, strict=True):
            with writing(path):
                temporary.replace(place)
        for folder in {place.parent for place in places}:
            with suppress(OSError):  # a file system may not offer it for folders
                _flush_to_disk(folder)


@contextmanager
def _temporary(place: Path, *, shown: Path) -> Iterator[Path]:
    if os.path.isdir(place):
        raise InputError(f"'{shown}' cannot be written: it is a folder.")
    if os.path.exists(place) and not os.path.isfile(place):
        raise InputError(f"'{shown}' cannot be written: it is not a regular file.")
    _remove_left_behind(place)
    with writing(shown):
        descriptor, name = tempfile.mkstemp(_SUFFIX, _prefix(place), place.parent)
    temporary = Path(name)
    try:
        if fcntl is not None:
            with suppress(OSError):  # a file system may have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield temporary
    finally:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)


def _prefix(place: Path) -> str:
    return f".{_cut(place.name, 200)}."


def _cut(name: str, n_bytes: int) -> str:
    """Return the beginning of a name in at most so many bytes, of whole characters."""
    return os.fsencode(name)[:n_bytes].decode(errors="ignore")


def _remove_left_behind(place: Path) -> None:
    """Remove temporary files for this path that killed processes have left behind."""
    if fcntl is None:
        return
    with suppress(OSError):
        for entry in os.scandir(place.parent):
            if entry.name.startswith(_prefix(place)) and entry.name.endswith(_SUFFIX):
                with suppress(OSError):
                    if time.time() - entry.stat().st_mtime > _LOCKED_AFTER:
                        _remove_unless_locked(entry.path)


def _remove_unless_locked(path: str) -> None:
    with open(path, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)


def _flush_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn an OSError of the block, such as "disk full", into an InputError about ``path``."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"'{path}' cannot be written: {reason.rstrip('.')}.") from error


def _mode(place: Path) -> int:
    """Return the permissions of the file that is replaced, or those of a new file."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(place.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
