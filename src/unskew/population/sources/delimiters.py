"""What separates the columns of a text file: as given, or by the ending of its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unskew.errors import InputError, ParameterError

_PACKED = ("", ".gz", ".bz2", ".zst")
TABLES = tuple(base + packed for base in (".csv", ".tsv") for packed in _PACKED)
"""The endings of text files that hold tables; a folder may also hold other text."""
TEXT = (*TABLES, *(".txt" + packed for packed in _PACKED))

_USUAL = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def check_delimiter(delimiter: Any) -> None:
    """Refuse what cannot separate columns."""
    if delimiter is None:
        return
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii():
        raise ParameterError(f"delimiter must be one ASCII character; got {delimiter!r}.")
    if delimiter in '"\r\n' or delimiter.isalnum():
        raise ParameterError(f"delimiter cannot be {delimiter!r}, which occurs in values.")


def delimiter_of(path: str, beginning: bytes, given: str | None = None) -> str:
    r"""Return what separates the columns of a file: as given, or by its name and its first line.

    A .tsv file has tabs, a .txt file whichever it has of tabs, semicolons, bars and commas, and any
    other file commas.

    Examples
    --------
    >>> delimiter_of("u.tsv.gz", b""), delimiter_of("u.txt", b"age;town\n1;x,y")
    ('\t', ';')
    """
    if b"\0" in beginning[:1000] or beginning[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(
            f"'{path}' is not UTF-8 text; its zero bytes are those of UTF-16, as spreadsheets "
            "write Unicode text. Save it as CSV in UTF-8, or convert it: iconv -f UTF-16 -t UTF-8."
        )
    if given is not None:
        return given
    name = path.lower()
    for packed in _PACKED[1:]:
        name = name.removesuffix(packed)
    if name.endswith(".tsv"):
        return "\t"
    if not name.endswith(".txt"):
        return ","
    header = beginning.partition(b"\n")[0].decode(errors="replace")
    found = [mark for mark in _USUAL if mark in header]
    if len(found) > 1:
        raise InputError(
            f"'{path}' may be separated by {' or by '.join(_USUAL[mark] for mark in found)}: its "
            f"first line is {_shown(header)}. Pass delimiter= (--delimiter)."
        )
    return found[0] if found else ","


def check_separated(path: str, header: Sequence[str], delimiter: str) -> None:
    """Raise an error if a file with one column seems to be separated by another delimiter."""
    if len(header) != 1:
        return
    others = [mark for mark in _USUAL if mark != delimiter and mark in header[0]]
    if others:
        raise InputError(
            f"'{path}' has one column, {_shown(header[0])}, if it is separated by "
            f"{_USUAL.get(delimiter, repr(delimiter))}. If it is separated by "
            f"{_USUAL[others[0]]}, pass delimiter={others[0]!r} (--delimiter)."
        )


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 80 else text[:79] + "…")
