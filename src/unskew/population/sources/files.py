"""Paths, lists of paths, folders and globs: which files they are and who reads them."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from unskew.errors import InputError, InputFileError
from unskew.population.sources.base import Source
from unskew.population.sources.csv import CSVSource
from unskew.population.sources.dataset import DatasetSource
from unskew.population.sources.parquet import ParquetSource

_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")


def open_files(data: Any) -> Source:
    """Return the source for a path, a glob, or a list of them."""
    paths = find_files(data, side="population")
    if len(paths) == 1 and paths[0].is_dir():
        return _open_folder(paths[0])
    return ParquetSource(paths) if is_parquet(paths, side="population") else CSVSource(paths)


def find_files(data: Any, *, side: str) -> list[Path]:
    """Return the files that a path, a glob or a list of them stands for, or a folder by itself."""
    paths = [path for entry in _listed(data) for path in _expanded(str(entry), side)]
    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise InputError(f"'{folders[0]}' is a folder among files; name its files, or it alone.")
    return paths


def is_parquet(paths: Sequence[Path], *, side: str) -> bool:
    """Whether files are Parquet; otherwise they are CSV."""
    formats = {_format(path) for path in paths}
    if len(formats) > 1:
        raise InputError(f"The {side} mixes Parquet and CSV files; name files of one format.")
    return formats == {"parquet"}


def _listed(data: Any) -> Sequence[Any]:
    return data if isinstance(data, list | tuple) else [data]


def _expanded(entry: str, side: str) -> list[Path]:
    if not entry:
        raise InputFileError(f"The {side}'s path is empty.")
    path = Path(os.path.expanduser(entry))
    if path.exists():
        return [path]
    if not glob.has_magic(entry):
        raise InputFileError(f"The {side} file '{entry}' does not exist.")
    found = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
    found = [match for match in found if match.is_file()]
    if not found:
        raise InputFileError(f"No file matches the pattern '{entry}'.")
    return found


def _open_folder(folder: Path) -> Source:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    parquet = [path for path in files if path.name.lower().endswith(_PARQUET)]
    if parquet:
        if not any("=" in part for path in parquet for part in path.relative_to(folder).parts):
            return ParquetSource(parquet)
        return DatasetSource(
            ds.dataset(
                [str(path) for path in parquet],
                format="parquet",
                partitioning="hive",
                partition_base_dir=str(folder),
            )
        )
    tables = [path for path in files if path.name.lower().endswith(_CSV)]
    if not tables:
        raise InputFileError(f"The folder '{folder}' holds no Parquet or CSV file.")
    return CSVSource(tables)


def _format(path: Path) -> str:
    if path.name.lower().endswith(_PARQUET):
        return "parquet"
    if path.name.lower().endswith(_CSV):
        return "csv"
    try:
        with path.open("rb") as file:
            if file.read(4) == b"PAR1":
                return "parquet"
    except OSError as error:
        raise InputError(f"'{path}' could not be read: {error}") from error
    raise InputError(
        f"'{path}' is neither Parquet ({', '.join(_PARQUET)}) nor CSV ({', '.join(_CSV)})."
    )
