"""Hive partitioning: columns in the names of folders (``country=DE/year=2024/0.parquet``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from unskew.errors import InputError
from unskew.population.kinds import is_text
from unskew.population.sources.base import File

__all__ = ["Keys", "partitions"]

_MISSING = "__HIVE_DEFAULT_PARTITION__"


class Keys(NamedTuple):
    """The columns that the folder names define, and their values for each file."""

    schema: pa.Schema
    values: dict[str, dict[str, pa.Scalar]]
    """By path of the file."""

    def column(self, path: str, name: str, n_rows: int) -> pa.Array:
        """Return the column of a file, which is constant."""
        value = self.values[path][name]
        if is_text(value.type) and value.is_valid:  # a dictionary: only one string is compared
            only = pa.array([value.as_py()], value.type)
            return pa.DictionaryArray.from_arrays(np.zeros(n_rows, dtype=np.int8), only)
        return pa.repeat(value, n_rows)


def partitions(files: Sequence[File], folder: str) -> Keys | None:
    """Return the columns that the folders below ``folder`` define; None if there are none.

    As in PyArrow, a column whose values are all integers is an integer column; any other is text.

    Examples
    --------
    >>> keys = partitions([File("u/year=2024/a.parquet"), File("u/year=2025/a.parquet")], "u")
    >>> keys.schema.names, keys.values["u/year=2025/a.parquet"]["year"]
    (['year'], <pyarrow.Int64Scalar: 2025>)
    """
    found = {
        file.path: _path_values(PurePosixPath(file.path).relative_to(folder)) for file in files
    }
    names = list(next(iter(found.values())))
    for path, values in found.items():
        if list(values) != names:
            raise InputError(
                f"'{path}' is in folders that define the columns {list(values)}, but "
                f"'{files[0].path}' in folders that define {names}; they must be the same."
            )
    if not names:
        return None
    fields = []
    for name in names:
        present = [values[name] for values in found.values() if values[name] is not None]
        whole = all(re.fullmatch(r"-?\d{1,18}", text) for text in present if text is not None)
        fields.append(pa.field(name, pa.int64() if whole and present else pa.string()))
    return Keys(
        pa.schema(fields),
        {
            path: {field.name: _scalar(values[field.name], field.type) for field in fields}
            for path, values in found.items()
        },
    )


def _path_values(path: PurePosixPath) -> dict[str, str | None]:
    pairs = [part.partition("=") for part in path.parent.parts if "=" in part]
    return {unquote(name): None if text == _MISSING else unquote(text) for name, _, text in pairs}


def _scalar(text: str | None, kind: pa.DataType) -> pa.Scalar:
    value = int(text) if text is not None and pa.types.is_integer(kind) else text
    return pa.scalar(value, kind)
