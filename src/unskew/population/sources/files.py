"""Paths, lists of paths, folders and globs: find the files and choose their reader."""

from __future__ import annotations

from typing import Any

from unskew.errors import InputError, InputFileError
from unskew.population.sources.base import File, Source
from unskew.population.sources.csv import TABLES, TEXT, CSVSource
from unskew.population.sources.parquet import ParquetSource, partitions
from unskew.population.sources.storage import Storage, as_filesystem, find, reading

_PARQUET = (".parquet", ".pq")


def open_files(
    data: Any, *, filesystem: Any = None, skip: bool = False, delimiter: str | None = None
) -> Source:
    """Return the source of a path, a URL, a glob, or a list of them.

    With ``skip``, unreadable files are left out and reported. ``delimiter`` is that of text files.
    """
    entries = data if isinstance(data, list | tuple) else [data]
    storage = find(entries, as_filesystem(filesystem), skip=skip)
    if storage.folder is not None:
        return _open_folder(storage, storage.folder, skip=skip, delimiter=delimiter)
    if is_parquet(storage, side="population"):
        return ParquetSource(storage, skip=skip)
    return CSVSource(storage, skip=skip, delimiter=delimiter)


def is_parquet(storage: Storage, *, side: str) -> bool:
    """Return whether the files are Parquet rather than CSV; a mixture raises an error."""
    formats = {_format(storage, file) for file in storage.files}
    if len(formats) > 1:
        raise InputError(f"The {side} mixes Parquet and CSV files; use files of one format.")
    return formats == {"parquet"}


def _open_folder(storage: Storage, folder: str, *, skip: bool, delimiter: str | None) -> Source:
    files = [file for file in storage.files if file.path.lower().endswith(_PARQUET + TABLES)]
    if not files:
        raise InputFileError(f"The folder '{folder}' contains no Parquet or CSV file.")
    inside = storage._replace(files=files)
    parquet = is_parquet(inside, side=f"population's folder '{folder}'")
    keys = partitions(files, folder)
    if parquet:
        return ParquetSource(inside, skip=skip, keys=keys)
    source = CSVSource(inside, skip=skip, delimiter=delimiter)
    for name in keys[files[0].path]:
        if name not in source.schema.names:
            raise InputError(
                f"'{files[0].path}' is in a folder that defines the column '{name}', which works "
                f"only with Parquet files. Convert '{folder}' to Parquet, add the column to the "
                "CSV files, or list the files themselves to read them without it."
            )
    return source


def _format(storage: Storage, file: File) -> str:
    if file.path.lower().endswith(_PARQUET):
        return "parquet"
    if file.path.lower().endswith(TEXT):
        return "csv"
    with reading(file.path), storage.filesystem.open_input_file(file.path) as opened:
        if opened.read(4) == b"PAR1":
            return "parquet"
    raise InputError(
        f"'{file.path}' is neither Parquet ({', '.join(_PARQUET)}) nor text with delimiters (.csv, "
        ".tsv, .txt; also compressed: .gz, .bz2, .zst)."
    )
