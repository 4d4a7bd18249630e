"""Output files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unskew.errors import InputError

__all__ = ["whole_file", "write_whole"]


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` and put it in place once the block has succeeded."""
    if path.is_dir():
        raise InputError(f"'{path}' cannot be written: it is a folder.")
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}.") from error
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        try:
            _flush(temporary)
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        except OSError as error:
            raise InputError(f"'{path}' cannot be written: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: str | Path, text: str) -> None:
    """Write text to a file that appears whole or not at all.

    Parameters
    ----------
    path : str or Path
    text : str
        Written as UTF-8.
    """
    path = Path(path)
    with whole_file(path) as temporary:
        try:
            temporary.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:  # for example a full disk
            raise InputError(f"'{path}' cannot be written: {error.strerror}.") from error


def _flush(path: Path) -> None:
    # A rename can reach the disk before the contents do; a power cut between them would leave an
    # empty file in the place of a good one.
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
