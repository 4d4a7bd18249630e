"""Choose the reader for the data of a population: one file per kind of engine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from unskew.errors import InputTypeError, ParameterError
from unskew.population.rows import Rows, as_rows, is_rows, is_spark_frame
from unskew.population.sources.base import Part, Source
from unskew.population.sources.chunks import ChunkSource, StreamSource
from unskew.population.sources.csv import check_delimiter
from unskew.population.sources.dask import DaskSource
from unskew.population.sources.dataset import open_dataset
from unskew.population.sources.files import open_files
from unskew.population.sources.memory import ArraySource, TableSource
from unskew.population.sources.queries import DuckDBSource, IbisSource, PolarsSource
from unskew.population.sources.spark import SparkSource

__all__ = ["Part", "Source", "open_source"]


def open_source(
    data: Any, *, filesystem: Any = None, skip: bool = False, delimiter: str | None = None
) -> Source:
    """Return the source that reads ``data``.

    ``filesystem`` is where paths are looked up, ``delimiter`` that of text files. With ``skip``,
    unreadable files are left out.

    The order of the checks matters: data that can be read part by part are recognised before the
    general case of a stream of batches.
    """
    check_delimiter(delimiter)
    if _is_path(data) or (isinstance(data, list | tuple) and data and all(map(_is_path, data))):
        return open_files(data, filesystem=filesystem, skip=skip, delimiter=delimiter)
    for name, given in (("filesystem", filesystem), ("delimiter", delimiter)):
        if given is not None:
            raise ParameterError(
                f"{name} applies only to paths, but the population is a {type(data).__name__}."
            )
    if isinstance(data, narwhals.LazyFrame | narwhals.DataFrame):
        data = data.to_native()
    if is_spark_frame(data):  # its Arrow stream would bring all rows to one machine
        return SparkSource(data)
    match _library_and_name(data):
        case ("duckdb" | "_duckdb", "DuckDBPyRelation"):
            return DuckDBSource(data)
        case ("polars", "LazyFrame"):
            return PolarsSource(data)
        case ("dask", "DataFrame"):
            return DaskSource(data)
        case ("ibis", "Table" | "CachedTable"):
            return IbisSource(data)
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
    # By name, so that no library is imported only to find out that it is not used.
    kind = type(data)
    return kind.__module__.split(".")[0], kind.__name__


def _is_other_lazy_frame(data: Any) -> bool:
    try:
        return isinstance(narwhals.from_native(data, pass_through=True), narwhals.LazyFrame)
    except Exception:  # such as a repeated column name, which is reported later
        return False


def _begins_with_table(data: Sequence[Any]) -> bool:
    return bool(data) and is_rows(data[0]) and getattr(data[0], "ndim", 2) == 2
