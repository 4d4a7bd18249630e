"""Which version of a file is read: whether it is still what it was when it was opened.

A file that is written while it is read would give rows of neither version. Its version is noted
before anything of it is read, and compared once everything is read.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from typing import Any

from pyarrow import fs

from unskew.errors import UnreadableFileError

_MOMENTS = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "crc32c", "generation", "VersionId")
"""How fsspec's file systems call the moment of the last change, and the marks of a content."""

_CLOCK_TICK = 0.02
"""The coarsest clock of a local disk, in seconds: two changes within a tick look like one."""


def version_of(filesystem: fs.FileSystem, path: str) -> dict[str, Any]:
    """Return what changes with a file's content, as far as the file system reports it."""
    version: dict[str, Any]
    if isinstance(filesystem, fs.LocalFileSystem):
        found = os.stat(path)
        version = {"size": found.st_size, "modification time": found.st_mtime_ns}
        # A file that was moved to this name, and one whose modification time was set back.
        return version | {"inode": found.st_ino, "footer": _footer(filesystem, path)}
    other = getattr(getattr(filesystem, "handler", None), "fs", None)
    if other is None:
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError("it does not exist")
        version = {"size": info.size, "modification time": info.mtime_ns}
    else:
        other.invalidate_cache(path.rpartition("/")[0])
        known = {name: value for name, value in other.info(path).items() if value is not None}
        moment = next((known[name] for name in _MOMENTS if name in known), None)
        version = {"size": known.get("size"), "modification time": moment}
        version |= {name: known[name] for name in _TAGS if name in known}
    if len(version) == 2 and version["modification time"] is None:
        version["footer"] = _footer(filesystem, path)
    return version


def noted(filesystem: fs.FileSystem, path: str) -> dict[str, Any]:
    """Return the version of a file that is about to be read, so that any later change shows."""
    version = version_of(filesystem, path)
    if isinstance(filesystem, fs.LocalFileSystem):
        age = time.time() - version["modification time"] / 1e9
        if 0 <= age < _CLOCK_TICK:
            time.sleep(_CLOCK_TICK - age)
    return version


def check_unchanged(filesystem: fs.FileSystem, path: str, before: Mapping[str, Any]) -> None:
    """Raise an error if a file is no longer the version that was noted."""
    now = version_of(filesystem, path)
    changed = [name for name in before if name in now and before[name] != now[name]]
    if changed:
        raise UnreadableFileError(
            f"'{path}' changed while it was read: it has another {' and '.join(changed)} than "
            "when it was opened. Read it again when no other process writes to it."
        )


def _footer(filesystem: fs.FileSystem, path: str) -> bytes | None:
    """Return a digest of a Parquet file's footer, which places and describes all its rows."""
    with filesystem.open_input_file(path) as file:
        size = file.size()
        ending = file.read_at(8, size - 8) if size >= 8 else b""
        length = int.from_bytes(ending[:4], "little")
        if ending[4:] != b"PAR1" or length > size - 8:
            return None
        return hashlib.sha256(file.read_at(length, size - 8 - length)).digest()
