"""Output files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unskew.errors import InputError

__all__ = ["whole_file"]


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
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        except OSError as error:
            raise InputError(f"'{path}' cannot be written: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
