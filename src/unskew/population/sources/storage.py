"""Find files: on the local disk, in an object store, on any file system that PyArrow supports.

Every path becomes a PyArrow file system and a list of files with sizes and modification times; no
file is opened before :func:`for_each_file`. A file that is written while it is read would give rows
of neither version: its version is noted before anything of it is read, and compared once
everything is read.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar

from pyarrow import fs

from unskew.errors import InputError, InputFileError, ParameterError, UnreadableFileError
from unskew.population.sources.base import File

_LISTING_THREADS = 16  # opening files is limited by latency, not by computing


class Storage(NamedTuple):
    """A file system, and the files of the population on it.

    ``folder`` is the folder, if a single folder was given.
    """

    filesystem: fs.FileSystem
    files: list[File]
    folder: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether small reads are cheap."""
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def note_version(self, file: File) -> File:
        """Return a file with its version, before anything of it is read."""
        with reading(file.path):
            return replace(file, version=record_version(self.filesystem, file.path))

    def check_unchanged(self, file: File) -> None:
        """Raise an error if a file has changed since its version was noted."""
        if file.version is not None:
            with reading(file.path):
                check_unchanged(self.filesystem, file.path, file.version)


def as_filesystem(given: Any) -> fs.FileSystem | None:
    """Return a PyArrow file system, converted from fsspec if necessary."""
    if given is None or isinstance(given, fs.FileSystem):
        return given
    if hasattr(given, "protocol") and hasattr(given, "find"):
        return fs.PyFileSystem(fs.FSSpecHandler(given))
    raise ParameterError(
        f"filesystem must be a PyArrow or an fsspec file system; got a {type(given).__name__}."
    )


def find(
    entries: Sequence[Any], filesystem: fs.FileSystem | None, *, side: str = "population"
) -> Storage:
    """Return the files of paths, globs, URLs or one folder.

    ``side`` is "population" or "sample", for the messages.
    """
    located = [_located(str(entry), filesystem, side) for entry in entries]
    common = located[0][0]
    for entry, (filesystem_of_entry, _) in zip(entries, located, strict=True):
        if filesystem_of_entry != common:
            raise InputError(
                f"'{entry}' is not on the file system of '{entries[0]}'; use one file system."
            )
    is_local = isinstance(common, fs.LocalFileSystem)
    infos: list[fs.FileInfo] = []
    named_by: dict[str, str] = {}
    for _, path in located:
        for info in _expanded(common, path, side):
            place = os.path.abspath(info.path) if is_local else info.path
            # The same path listed twice is taken as intended; overlapping patterns are not.
            if (other := named_by.setdefault(place, path)) != path:
                raise InputError(
                    f"The {side} file '{info.path}' is matched twice, by '{other}' and by "
                    f"'{path}'; list it once."
                )
            infos.append(info)
    folders = [info.path for info in infos if info.type == fs.FileType.Directory]
    if folders and len(infos) > 1:
        raise InputError(
            f"'{folders[0]}' is a folder among files; list its files, or pass the folder alone."
        )
    if folders:
        return Storage(common, _listed(common, folders[0]), folders[0])
    return Storage(common, [_file(info) for info in infos])


def _located(entry: str, filesystem: fs.FileSystem | None, side: str) -> tuple[fs.FileSystem, str]:
    if filesystem is not None:
        return filesystem, entry  # may be empty: the root of the file system
    if not entry:
        raise InputFileError(f"The {side}'s path is empty.")
    if "://" not in entry:
        return fs.LocalFileSystem(), os.path.expanduser(entry)
    try:
        # A pattern is not a valid URL, so look up only what precedes it.
        fixed = _fixed_beginning(entry)
        found, path = fs.FileSystem.from_uri(fixed)
    except Exception as error:
        raise InputError(
            f"The {side}'s URL '{entry}' cannot be reached: {error} For storage that PyArrow does "
            "not support, pass a path and filesystem=."
        ) from error
    return found, (path.rstrip("/") + "/" + entry[len(fixed) :]) if fixed != entry else path


def _expanded(filesystem: fs.FileSystem, path: str, side: str) -> list[fs.FileInfo]:
    with reading(path):
        info = filesystem.get_file_info(path)
    if info.type != fs.FileType.NotFound:
        return [info]
    if not glob.has_magic(path):
        raise InputFileError(f"The {side} file '{path}' does not exist.")
    if isinstance(filesystem, fs.LocalFileSystem):
        matches = filesystem.get_file_info(sorted(glob.glob(path, recursive=True)))
    else:
        base = _fixed_beginning(path).rstrip("/")
        pattern = re.compile(_regular(path))
        with reading(path):
            everything = filesystem.get_file_info(
                fs.FileSelector(base, recursive=True, allow_not_found=True)
            )
        matches = sorted(
            (info for info in everything if pattern.fullmatch(info.path)), key=lambda one: one.path
        )
    found = [info for info in matches if info.type == fs.FileType.File]
    if not found:
        raise InputFileError(f"No file matches the pattern '{path}'.")
    return found


def _fixed_beginning(path: str) -> str:
    """Return the path up to the first folder with a wildcard, or all of it if there is none."""
    if not glob.has_magic(path):
        return path
    return re.split(r"[*?\[]", path, maxsplit=1)[0].rpartition("/")[0] + "/"


def _regular(pattern: str) -> str:
    """Return a glob as a regular expression; ``**/`` matches any folders."""
    pieces = re.split(r"(\*\*/|\*|\?|\[[^\]]+\])", pattern)
    words = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        words.get(piece) or (piece.replace("[!", "[^") if piece[:1] == "[" else re.escape(piece))
        for piece in pieces
    )


def _listed(filesystem: fs.FileSystem, folder: str) -> list[File]:
    with reading(folder):
        infos = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
    files = [_file(info) for info in infos if info.type == fs.FileType.File]
    inside = {file: PurePosixPath(file.path).relative_to(folder).parts for file in files}
    visible = [file for file in files if not any(map(_is_hidden, inside[file]))]
    return sorted(visible, key=inside.__getitem__)


def _is_hidden(name: str) -> bool:
    # Spark, Hive and PyArrow ignore these too: logs, success markers, checksums.
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _file(info: fs.FileInfo) -> File:
    return File(info.path, info.size, info.mtime_ns)


@contextmanager
def reading(path: str, form: str = "") -> Iterator[None]:
    """Convert any exception while reading a file into an error that names the file."""
    try:
        yield
    except (MemoryError, InputError, ParameterError):
        raise
    except Exception as error:  # a third-party file system may raise anything
        how = f" as {form}" if form else ""
        raise UnreadableFileError(f"'{path}' could not be read{how}: {error}") from error


Item = TypeVar("Item")
Facts = TypeVar("Facts")


def in_parallel(function: Callable[[Item], Facts], items: Sequence[Item]) -> list[Facts]:
    """Map over files on as many threads as suit their latency."""
    with ThreadPoolExecutor(_LISTING_THREADS, thread_name_prefix="unskew-files") as pool:
        return list(pool.map(function, items))


def for_each_file(
    inspect: Callable[[File], Facts], storage: Storage
) -> tuple[list[File], list[Facts]]:
    """Inspect every file once; return the files with their versions, and what was found.

    The version is noted before the file is inspected.
    """

    def opened(file: File) -> tuple[File, Facts]:
        file = storage.note_version(file)
        return file, inspect(file)

    found = in_parallel(opened, storage.files)
    return [file for file, _ in found], [facts for _, facts in found]


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


def record_version(filesystem: fs.FileSystem, path: str) -> dict[str, Any]:
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
