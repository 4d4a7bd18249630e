"""Read a sample, or margins, from files into memory.

A CSV file has no types. The columns of a population are read as the sample's types, which are
inferred from all rows of the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, BinaryIO, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv, types

from unskew.errors import ColumnWarning, InputError, warn_caller
from unskew.population.margins import Margins
from unskew.population.sources import is_parquet
from unskew.population.sources.base import File
from unskew.population.sources.csv import (
    check_delimiter,
    check_header,
    check_same_header,
    check_separated,
    convert_options,
    delimiter_of,
)
from unskew.population.sources.parquet import check_same
from unskew.population.sources.storage import Storage, find, reading
from unskew.rows.doubtful_columns import numbers_read_as_text
from unskew.rows.tables import check_distinct

NUMBERS: tuple[Literal["count", "share", "percent"], ...] = ("count", "share", "percent")
Parse = Callable[[bytes, str], pa.Table]
_LARGEST_BLOCK = 2**31 - 1
_DECIMAL_COMMA = r"^\s*[+-]?\d[\d.]*,\d+\s*$"


def read_sample(
    data: Any,
    *,
    identifiers: Sequence[str] = (),
    delimiter: str | None = None,
    side: str = "sample",
) -> pa.Table:
    r"""Read a sample from files.

    Parameters
    ----------
    data : str, Path, a list of them, or a binary file
        The path or URL of a Parquet file or of a text file (``.csv``, ``.tsv``, ``.txt``), which
        may be compressed (``.csv.gz``, ``.csv.bz2``, ``.csv.zst``), a glob, a list of paths, or an
        open binary file such as ``sys.stdin.buffer``, compressed or not.
    identifiers : list of str
        Columns that identify rows. In a CSV file they are read as integers only if this loses
        nothing: "007" stays text.
    delimiter : str, optional
        The character between the columns of text files. By default a tab for ``.tsv``, whichever
        the header has of tab, semicolon, bar and comma for ``.txt``, and a comma otherwise.
    side : str, default="sample"
        What messages call the file.

    Returns
    -------
    pyarrow.Table

    Warns
    -----
    ColumnWarning
        Of each column that is read as text because one of its numbers is none, such as "?".

    Examples
    --------
    >>> import io
    >>> from unskew import read_sample
    >>> read_sample(io.BytesIO(b"id,age\n007,31\n008,\n"), identifiers=["id"]).to_pylist()
    [{'id': '007', 'age': 31}, {'id': '008', 'age': None}]
    """
    check_delimiter(delimiter)
    parse = partial(_parse_csv, identifiers=identifiers, delimiter=delimiter)
    if hasattr(data, "read"):
        table = _from_bytes(data.read(), _name_of(data), parse)
        return _checked(table, _name_of(data), side, identifiers)
    storage = find(data if isinstance(data, list | tuple) else [data], None, side=side)
    if storage.folder is not None:
        raise InputError(
            f"The {side} '{storage.folder}' is a folder; list its files, for example "
            f"'{storage.folder.rstrip('/')}/*.parquet'."
        )
    paths = [file.path for file in storage.files]
    if is_parquet(storage, side=side):
        tables = [_read_parquet(storage, file) for file in storage.files]
        for path, table in zip(paths, tables, strict=True):
            check_same(tables[0].schema, paths[0], table.schema, path)
    else:
        tables = [_read_csv(storage, file, parse) for file in storage.files]
    return _checked(_concatenate(tables, paths), " ".join(paths[:3]), side, identifiers)


def _name_of(file: BinaryIO) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) and not name.startswith("<") else "stdin"


def _from_bytes(content: bytes, path: str, parse: Parse) -> pa.Table:
    if codec := _codec(content):
        with reading(path, codec):
            packed = pa.BufferReader(_arrow_memory(content))
            content = pa.CompressedInputStream(packed, codec).read()
    if not content.startswith(b"PAR1"):
        return parse(content, path)
    with reading(path, "Parquet"):
        source = pa.BufferReader(_arrow_memory(content))
        return pq.ParquetFile(source, page_checksum_verification=True).read()


def _codec(content: bytes) -> str | None:
    """Return how bytes are compressed, by the marks with which such files begin."""
    if content.startswith(b"\x1f\x8b"):
        return "gzip"
    if content.startswith(b"BZh") and content[4:10] == b"1AY&SY":
        return "bz2"
    return "zstd" if content.startswith(b"\x28\xb5\x2f\xfd") else None


def _arrow_memory(content: bytes) -> pa.Buffer:
    """Copy bytes to memory that Arrow's threads can release without Python.

    One of them may be the last to hold what it has read. To release Python's memory it needs the
    interpreter's lock, and if the interpreter is shutting down just then, CPython before 3.14 ends
    the thread in the middle of a destructor, which aborts the process: "terminate called without
    an active exception". See https://github.com/apache/arrow/issues/34314 and
    https://github.com/python/cpython/issues/87135.
    """
    stream = pa.BufferOutputStream()
    stream.write(content)
    return stream.getvalue()


def _read_parquet(storage: Storage, file: File) -> pa.Table:
    file = storage.note_version(file)
    with reading(file.path, "Parquet"), storage.filesystem.open_input_file(file.path) as opened:
        table = pq.ParquetFile(opened, page_checksum_verification=True).read()
    storage.check_unchanged(file)
    return table


def _read_csv(storage: Storage, file: File, parse: Parse) -> pa.Table:
    file = storage.note_version(file)
    with reading(file.path, "CSV"), storage.filesystem.open_input_stream(file.path) as stream:
        content = stream.read()  # decompressed according to the extension
    storage.check_unchanged(file)
    return parse(content, file.path)


def _parse_csv(
    content: bytes, path: str, identifiers: Sequence[str], delimiter: str | None
) -> pa.Table:
    delimiter = delimiter_of(path, content, delimiter)
    header = content.partition(b"\n")[0]
    with reading(path, "CSV"):
        table = csv.read_csv(
            pa.BufferReader(_arrow_memory(content)),
            # In one block, because PyArrow infers the types from the first block.
            read_options=csv.ReadOptions(block_size=min(max(len(content), 1), _LARGEST_BLOCK)),
            # In a file with one column, an empty line is a missing value.
            parse_options=csv.ParseOptions(
                delimiter=delimiter, ignore_empty_lines=delimiter.encode() in header
            ),
            convert_options=convert_options(read_as=dict.fromkeys(identifiers, pa.string())),
        )
    check_header(path, table.column_names)
    check_separated(path, table.column_names, delimiter)
    if delimiter != ",":
        _check_decimal_points(table, path, apart=identifiers)
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if types.is_binary(kind):
            raise InputError(f"Column '{name}' of '{path}' is not UTF-8 text. Convert the file.")
    for name in set(identifiers) & set(table.column_names):
        place = table.column_names.index(name)
        table = table.set_column(place, name, _as_numbers_if_exact(table.column(place)))
    return table


def _check_decimal_points(table: pa.Table, path: str, *, apart: Sequence[str]) -> None:
    """Raise an error for a column of numbers with decimal commas, which is read as categories."""
    for name, values in zip(table.column_names, table.columns, strict=True):
        column = values.drop_null()
        if name in apart or not types.is_string(column.type) or not len(column):
            continue
        if pc.all(pc.match_substring_regex(column, _DECIMAL_COMMA)).as_py():
            raise InputError(
                f"Column '{name}' of '{path}' holds numbers with a decimal comma, such as "
                f"'{column[0]}', which would count as categories. Write them with a decimal point."
            )


def _as_numbers_if_exact(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowException:
        return column
    same = pc.all(pc.equal(numbers.cast(pa.string()), column)).as_py()
    return numbers if same else column


def _concatenate(tables: Sequence[pa.Table], paths: Sequence[str]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    for path, table in zip(paths, tables, strict=True):
        check_same_header(tables[0].column_names, paths[0], table.column_names, path)
    try:
        return pa.concat_tables(
            [table.select(tables[0].column_names) for table in tables],
            promote_options="permissive",
        )
    except pa.ArrowException as error:
        raise InputError(
            f"The sample's files have a column in several types: {error}. Write them with one type."
        ) from error


def _checked(table: pa.Table, name: str, side: str, identifiers: Sequence[str]) -> pa.Table:
    check_distinct(table.column_names, owner=f"The {side} '{name}'")
    if not table.num_rows:
        raise InputError(f"The {side} '{name}' has no rows.")
    for column, value in numbers_read_as_text(table).items():
        if column not in identifiers:
            warn_caller(
                ColumnWarning(
                    f"Column '{column}' is read as text, its values as categories: '{value}' is "
                    "not a number. Write numbers with a decimal point and no other separators, "
                    "missing ones as empty fields.",
                    [column],
                )
            )
    return table


def read_margins(data: Any, **options: Any) -> Margins:
    r"""Read margins from a CSV or Parquet file with the columns variable, category and a number.

    Parameters
    ----------
    data : str, Path or binary file
        A long table as :meth:`unskew.Margins.from_table` takes it. Its column of numbers is called
        ``count``, ``share`` or ``percent``. The example in the package is
        ``importlib.resources.files("unskew") / "examples" / "census" / "margins.csv"``.
    **options
        Further parameters of :class:`unskew.Margins`.

    Returns
    -------
    Margins

    Examples
    --------
    >>> import io
    >>> from unskew import read_margins
    >>> text = b"variable,category,count\nsex,f,52\nsex,m,48\nage,(mean),41.5\n"
    >>> read_margins(io.BytesIO(text))
    Margins(sex, age, size=100.0)
    """
    table = read_sample(data, identifiers=["variable", "category"], side="margins")
    names = {name.strip().lower(): name for name in table.column_names}
    number = [name for name in NUMBERS if name in names]
    missing = [name for name in ("variable", "category") if name not in names]
    if missing or len(number) != 1:
        raise InputError(
            "A file of margins has the columns variable, category and one of count, share and "
            f"percent; this one has {', '.join(map(repr, table.column_names))}."
        )
    return Margins.from_table(
        table,
        variable=names["variable"],
        category=names["category"],
        count=names[number[0]],
        unit=number[0],
        **options,
    )
