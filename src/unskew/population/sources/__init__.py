"""Choose the reader for the data of a population: one file per kind of engine.

Paths, lists of paths, folders and globs are files of one format, Parquet or text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import narwhals
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from unskew.errors import InputError, InputFileError, InputTypeError, ParameterError
from unskew.population.sources.base import File, Part, Source
from unskew.population.sources.csv import TABLES, TEXT, CSVSource, check_delimiter
from unskew.population.sources.memory import ArraySource, ChunkSource, StreamSource, TableSource
from unskew.population.sources.parquet import ParquetSource, open_dataset, partitions
from unskew.population.sources.queries import DaskSource, duckdb_source, ibis_source, polars_source
from unskew.population.sources.spark import SparkSource
from unskew.population.sources.storage import Storage, as_filesystem, find, reading
from unskew.rows.tables import Rows, as_rows, is_rows, is_spark_frame

__all__ = ["Part", "Source", "open_source"]

# By names, so that no library is imported only to find out that it is not used.
ENGINES: dict[tuple[str, str], Callable[[Any], Source]] = {
    ("duckdb", "DuckDBPyRelation"): duckdb_source,
    ("_duckdb", "DuckDBPyRelation"): duckdb_source,
    ("polars", "LazyFrame"): polars_source,
    ("dask", "DataFrame"): DaskSource,
    ("ibis", "Table"): ibis_source,
    ("ibis", "CachedTable"): ibis_source,
}
"""The sources of data that are recognised by their library and class: a line for each engine."""


def open_source(data: Any, *, filesystem: Any = None, delimiter: str | None = None) -> Source:
    """Return the source that reads ``data``.

    ``filesystem`` is where paths are looked up, ``delimiter`` that of text files.

    The order of the checks matters: data that can be read part by part are recognised before the
    general case of a stream of batches.
    """
    check_delimiter(delimiter)
    if _is_path(data) or (isinstance(data, list | tuple) and data and all(map(_is_path, data))):
        return open_files(data, filesystem=filesystem, delimiter=delimiter)
    for name, given in (("filesystem", filesystem), ("delimiter", delimiter)):
        if given is not None:
            raise ParameterError(
                f"{name} applies only to paths, but the population is a {type(data).__name__}."
            )
    if isinstance(data, narwhals.LazyFrame | narwhals.DataFrame):
        data = data.to_native()
    if is_spark_frame(data):  # its Arrow stream would bring all rows to one machine
        return SparkSource(data)
    if (engine := ENGINES.get(_library_and_name(data))) is not None:
        return engine(data)
    if _is_other_lazy_frame(data):
        raise InputTypeError(
            f"The population is a {' '.join(_library_and_name(data))}, whose rows unskew "
            "cannot read in batches. Write it to Parquet, or aggregate it and pass "
            'the counts: Population(counts, weight="n").'
        )
    if isinstance(data, ds.Dataset):
        return open_dataset(data)
    if isinstance(data, pa.RecordBatchReader):
        return StreamSource(data)
    if isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "biuf":
        return ArraySource(data)
    if isinstance(data, Rows):
        return TableSource(data)
    if is_rows(data) or (isinstance(data, list | tuple) and not _begins_with_table(data)):
        return TableSource(as_rows(data, name="population"))
    if hasattr(data, "__arrow_c_stream__"):
        return StreamSource(data)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | dict):
        return ChunkSource(data)
    raise InputTypeError(
        f"The population is a {type(data).__name__}, which unskew cannot read. Pass an array, a "
        "dataframe (also a Spark DataFrame), a path or glob of Parquet or CSV, a PyArrow dataset, "
        "a DuckDB relation, or an iterable of such tables."
    )


def _is_path(data: Any) -> bool:
    return isinstance(data, str | os.PathLike)


def _library_and_name(data: Any) -> tuple[str, str]:
    kind = type(data)
    return kind.__module__.split(".")[0], kind.__name__


def _is_other_lazy_frame(data: Any) -> bool:
    try:
        return isinstance(narwhals.from_native(data, pass_through=True), narwhals.LazyFrame)
    except Exception:  # such as a repeated column name, which is reported later
        return False


def _begins_with_table(data: Sequence[Any]) -> bool:
    return bool(data) and is_rows(data[0]) and getattr(data[0], "ndim", 2) == 2


_PARQUET = (".parquet", ".pq")


def open_files(data: Any, *, filesystem: Any = None, delimiter: str | None = None) -> Source:
    """Return the source of a path, a URL, a glob, or a list of them."""
    entries = data if isinstance(data, list | tuple) else [data]
    storage = find(entries, as_filesystem(filesystem))
    if storage.folder is not None:
        return _open_folder(storage, storage.folder, delimiter=delimiter)
    if is_parquet(storage, side="population"):
        return ParquetSource(storage)
    return CSVSource(storage, delimiter=delimiter)


def is_parquet(storage: Storage, *, side: str) -> bool:
    """Return whether the files are Parquet rather than CSV; a mixture raises an error."""
    formats = {_format(storage, file) for file in storage.files}
    if len(formats) > 1:
        raise InputError(f"The {side} mixes Parquet and CSV files; use files of one format.")
    return formats == {"parquet"}


def _open_folder(storage: Storage, folder: str, *, delimiter: str | None) -> Source:
    files = [file for file in storage.files if file.path.lower().endswith(_PARQUET + TABLES)]
    if not files:
        raise InputFileError(f"The folder '{folder}' contains no Parquet or CSV file.")
    inside = storage._replace(files=files)
    parquet = is_parquet(inside, side=f"population's folder '{folder}'")
    keys = partitions(files, folder)
    if parquet:
        return ParquetSource(inside, keys=keys)
    source = CSVSource(inside, delimiter=delimiter)
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
