"""Hive partitioning: columns in the names of folders (``country=DE/year=2024/0.parquet``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unskew.errors import InputError
from unskew.population.kinds import is_text
from unskew.population.sources.base import File

_MISSING = "__HIVE_DEFAULT_PARTITION__"


Keys: TypeAlias = dict[str, dict[str, pa.Scalar]]
"""By path of the file: the columns that the names of its folders define, and their values."""


def constant_column(value: pa.Scalar, n_rows: int) -> pa.Array:
    """Return a column of a file that is constant."""
    if is_text(value.type) and value.is_valid:  # a dictionary: only one string is compared
        only = pa.array([value.as_py()], value.type)
        return pa.DictionaryArray.from_arrays(np.zeros(n_rows, dtype=np.int8), only)
    return pa.repeat(value, n_rows)


def partitions(files: Sequence[File], folder: str) -> Keys:
    """Return the columns that the folders below ``folder`` define.

    As in PyArrow, a column whose values are all integers is an integer column; any other is text.

    Examples
    --------
    >>> keys = partitions([File("u/year=2024/a.parquet"), File("u/year=2025/a.parquet")], "u")
    >>> keys["u/year=2025/a.parquet"]
    {'year': <pyarrow.Int64Scalar: 2025>}
    """
    found = {
        file.path: _path_values(PurePosixPath(file.path).relative_to(folder)) for file in files
    }
    names = list(found[files[0].path])
    for path, values in found.items():
        if list(values) != names:
            raise InputError(
                f"'{path}' is in folders that define the columns {list(values)}, but "
                f"'{files[0].path}' in folders that define {names}; they must be the same."
            )
    for name in names:
        column = pa.array([values[name] for values in found.values()], pa.string())
        present = column.drop_null()
        if len(present) and pc.all(pc.match_substring_regex(present, r"^-?\d{1,18}$")).as_py():
            column = column.cast(pa.int64())
        for values, value in zip(found.values(), column, strict=True):
            values[name] = value
    return found


def _path_values(path: PurePosixPath) -> dict[str, Any]:
    pairs = [part.partition("=") for part in path.parent.parts if "=" in part]
    return {unquote(name): None if text == _MISSING else unquote(text) for name, _, text in pairs}
