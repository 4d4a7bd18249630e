"""CSV files, plain or compressed, with a header line.

A CSV file has no types: columns are read as the sample's types where a sample is at hand. An empty
field means missing, as do the words that PyArrow and pandas read so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, types

from unskew.errors import InputError
from unskew.population.sources.base import Part, Source, parts_of_stream

_BLOCK_BYTES = 4 << 20
_MISSING = [*csv.ConvertOptions().null_values, "None", "<NA>"]


class CSVSource(Source):
    """One or more CSV files with the same columns."""

    typed = False

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files: list[tuple[Path, list[str]]] = []
        self.n_files = len(paths)
        for position, path in enumerate(paths):
            schema = _open(path).schema
            _check_header(path, schema.names)
            self._files.append((path, schema.names))
            if position == 0:
                self.schema = pa.schema([(f.name, _widened(f.type)) for f in schema], metadata=None)
            elif sorted(schema.names) != sorted(self.schema.names):
                odd = sorted(set(schema.names) ^ set(self.schema.names))[0]
                raise InputError(f"Column '{odd}' is not in both '{paths[0]}' and '{path}'.")

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:
        """Yield blocks of rows, file by file."""
        read_as = {
            name: types.get(name, self.schema.field(name).type)
            for name in columns
            if not pa.types.is_null(types.get(name, self.schema.field(name).type))
        }
        for file, (path, header) in enumerate(self._files):
            yield from parts_of_stream(_batches(path, columns, read_as, header), columns, file=file)


def _batches(
    path: Path, columns: Sequence[str], read_as: Mapping[str, pa.DataType], header: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    reader = _open(path, columns, read_as, header)
    while True:
        try:
            batch = next(reader, None)
        except pa.ArrowException as error:
            raise _unreadable(path, error, header) from error
        if batch is None:
            return
        yield batch


def _open(
    path: Path,
    columns: Sequence[str] = (),
    read_as: Mapping[str, pa.DataType] | None = None,
    header: Sequence[str] = (),
) -> csv.CSVStreamingReader:
    try:
        return csv.open_csv(
            path,
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES),
            # In a file of one column an empty line is a missing value.
            parse_options=csv.ParseOptions(ignore_empty_lines=len(header) != 1),
            convert_options=csv.ConvertOptions(
                include_columns=list(columns),
                column_types=dict(read_as or {}),
                null_values=_MISSING,
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,  # pandas quotes its gaps if told to quote all
            ),
        )
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error, header) from error


def _check_header(path: Path, header: Sequence[str]) -> None:
    try:
        numbers = [float(name) for name in header]
    except ValueError:
        return
    raise InputError(
        f"'{path}' seems to have no header line: its first line is {numbers}. Name its columns "
        "there."
    )


def _widened(kind: pa.DataType) -> pa.DataType:
    """Whole numbers at the file's beginning say nothing of fractions further down."""
    return pa.float64() if types.is_integer(kind) else kind


def _unreadable(path: Path, error: Exception, header: Sequence[str]) -> InputError:
    reason = str(error)
    for position, name in enumerate(header):  # PyArrow counts columns where a reader wants names
        reason = reason.replace(f"In CSV column #{position}:", f"in column '{name}':")
    return InputError(f"'{path}' could not be read as CSV: {reason}")
