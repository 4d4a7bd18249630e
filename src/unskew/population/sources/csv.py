"""CSV files and other text files with delimiters, plain or compressed, with a header line.

A CSV file has no types: columns are read as the sample's types if there is a sample. An empty field
is a missing value, and so are the words that PyArrow and pandas treat as missing. The delimiter
follows from the ending of a file's name or from its header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import csv

from unskew.errors import InputError, ParameterError, UnreadableFileError
from unskew.population.sources.base import (
    File,
    Part,
    Source,
    Types,
    failed_part,
    parts_of_stream,
)
from unskew.population.sources.storage import Storage, for_each_file, reading

_BLOCK_BYTES = 4 << 20
_HEADER_BYTES = 1 << 20
_MISSING = [*csv.ConvertOptions().null_values, "None", "<NA>"]


class CSVSource(Source):
    """One or more text files with the same columns.

    ``delimiter`` separates the columns; by default each file's name decides.
    """

    typed = False

    def __init__(self, storage: Storage, *, delimiter: str | None = None) -> None:
        self._storage = storage

        def inspect(file: File) -> tuple[str, pa.Schema]:
            mark = _delimiter(storage, file.path, delimiter)
            return mark, _open(storage, file.path, [], convert_options(), mark).schema

        self.files, found = for_each_file(inspect, storage)
        self._delimiters = [mark for mark, _ in found]
        schemas = [schema for _, schema in found]
        self._headers = [schema.names for schema in schemas]
        for file, header, mark in zip(self.files, self._headers, self._delimiters, strict=True):
            check_header(file.path, header)
            check_separated(file.path, header, mark)
            check_same_header(self._headers[0], self.files[0].path, header, file.path)
        # Integers in the first rows do not exclude fractions later.
        kinds = [pa.float64() if pa.types.is_integer(k) else k for k in schemas[0].types]
        self.schema = pa.schema(zip(schemas[0].names, kinds, strict=True))

    def parts(self, columns: Sequence[str], types: Types, file: int = 0) -> Iterator[Part]:
        """Yield blocks of rows."""
        kinds = {name: types.get(name, self.schema.field(name).type) for name in columns}
        read_as = {name: kind for name, kind in kinds.items() if not pa.types.is_null(kind)}
        path, header = self.files[file].path, self._headers[file]
        options = convert_options(columns, read_as)
        try:
            with _reading(path, header):
                reader = _open(self._storage, path, header, options, self._delimiters[file])
                yield from parts_of_stream(reader, columns)
        except InputError as error:
            yield failed_part(error)

    def check_unchanged(self, file: int = 0) -> None:
        """Compare a file with its version when it was opened."""
        self._storage.check_unchanged(self.files[file])


def _delimiter(storage: Storage, path: str, given: str | None) -> str:
    with reading(path, "CSV"), storage.filesystem.open_input_stream(path) as stream:
        return delimiter_of(path, stream.read(_HEADER_BYTES), given)


def _open(
    storage: Storage,
    path: str,
    header: Sequence[str],
    options: csv.ConvertOptions,
    delimiter: str,
) -> csv.CSVStreamingReader:
    with _reading(path, header):
        return csv.open_csv(
            storage.filesystem.open_input_stream(path),
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES),
            # In a file with one column, an empty line is a missing value.
            parse_options=csv.ParseOptions(
                delimiter=delimiter, ignore_empty_lines=len(header) != 1
            ),
            convert_options=options,
        )


def convert_options(
    columns: Sequence[str] = (), read_as: Types | None = None
) -> csv.ConvertOptions:
    """Return the options for parsing values, the same for sample and population."""
    return csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict(read_as or {}),
        null_values=_MISSING,
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,  # pandas quotes missing values with QUOTE_ALL
    )


def check_header(path: str, header: Sequence[str]) -> None:
    """Raise an error if the first line of a file consists of numbers."""
    try:
        numbers = [float(name) for name in header]
    except ValueError:
        return
    raise InputError(
        f"'{path}' seems to have no header line: its first line is {numbers}. Add a line "
        "with the column names."
    )


def check_same_header(
    first: Sequence[str], first_path: str, header: Sequence[str], path: str
) -> None:
    """Raise an error if a file has other columns than the first."""
    odd = sorted(set(header) ^ set(first))
    if odd:
        raise InputError(f"Column '{odd[0]}' is not in both '{first_path}' and '{path}'.")


@contextmanager
def _reading(path: str, header: Sequence[str]) -> Iterator[None]:
    try:
        with reading(path, "CSV"):
            yield
    except UnreadableFileError as error:
        reason = str(error)
        for position, name in enumerate(header):  # PyArrow reports positions, not names
            reason = reason.replace(f"In CSV column #{position}:", f"in column '{name}':")
        if "CSV conversion error" in reason:  # an invalid value in an intact file
            comma = re.search(r"invalid value '[+-]?[\d.]*,\d+'", reason)
            advice = "Correct the value, or leave the file out"
            if comma:
                advice = "Write numbers with a decimal point, not a comma"
            raise InputError(f"{reason}. {advice}.") from error
        raise UnreadableFileError(reason) from error.__cause__


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
