"""Paths, lists of paths, folders and globs: which files they are and who reads them."""

from __future__ import annotations

from typing import Any

from unskew.errors import InputError, InputFileError
from unskew.population.sources.base import File, FileSource
from unskew.population.sources.csv import CSVSource
from unskew.population.sources.hive import partitions
from unskew.population.sources.parquet import ParquetSource
from unskew.population.sources.storage import Storage, as_filesystem, find, reading

_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")


def open_files(data: Any, *, filesystem: Any = None, skip: bool = False) -> FileSource:
    """Return the source for a path, an address, a glob, or a list of them.

    With ``skip``, files that cannot be read are left out and told of.
    """
    entries = data if isinstance(data, list | tuple) else [data]
    storage = find(entries, as_filesystem(filesystem), skip=skip)
    if storage.folder is not None:
        return _open_folder(storage, storage.folder, skip=skip)
    source = ParquetSource if is_parquet(storage, side="population") else CSVSource
    return source(storage, skip=skip)


def is_parquet(storage: Storage, *, side: str) -> bool:
    """Whether the files are Parquet, and not CSV; a mixture is refused."""
    formats = {_format(storage, file) for file in storage.files}
    if len(formats) > 1:
        raise InputError(f"The {side} mixes Parquet and CSV files; name files of one format.")
    return formats == {"parquet"}


def _open_folder(storage: Storage, folder: str, *, skip: bool) -> FileSource:
    for endings, source in ((_PARQUET, ParquetSource), (_CSV, CSVSource)):
        files = [file for file in storage.files if file.path.lower().endswith(endings)]
        if files and source is ParquetSource:
            inside = storage._replace(files=files)
            return ParquetSource(inside, skip=skip, keys=partitions(files, folder))
        if files:
            return CSVSource(storage._replace(files=files), skip=skip)
    raise InputFileError(f"The folder '{folder}' holds no Parquet or CSV file.")


def _format(storage: Storage, file: File) -> str:
    if file.path.lower().endswith(_PARQUET):
        return "parquet"
    if file.path.lower().endswith(_CSV):
        return "csv"
    with reading(file.path), storage.filesystem.open_input_file(file.path) as opened:
        if opened.read(4) == b"PAR1":
            return "parquet"
    raise InputError(
        f"'{file.path}' is neither Parquet ({', '.join(_PARQUET)}) nor CSV ({', '.join(_CSV)})."
    )
