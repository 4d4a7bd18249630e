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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from unskew.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows, where temporary files of killed processes remain
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".unfinished"


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
        descriptor, temporary = _locked_file(place)
    try:
        yield temporary
    finally:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)


def _locked_file(place: Path) -> tuple[int, Path]:
    """Return a new temporary file for a path, opened and locked."""
    while True:
        descriptor, name = tempfile.mkstemp(_SUFFIX, _prefix(place), place.parent)
        if fcntl is not None:
            with suppress(OSError):  # a file system may have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.exists(name):
            return descriptor, Path(name)
        os.close(descriptor)  # another process found it without a lock, and removed it


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
                with suppress(OSError), open(entry.path, "r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while it is written
                    os.unlink(entry.path)


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
