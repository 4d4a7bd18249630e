"""Tables of counts, in the many forms that people have them, as mappings from levels to counts.

A table may be a mapping (of tuples or nested), a series, a frame with a column of counts, or a
cross table. Totals may have the names of R's model matrix, which join a column and a level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from unskew.errors import InputError

Key = tuple[str, ...]
Level = tuple[Any, ...]
Table = dict[Level, float]


def read_tables(tables: Mapping[Any, Any] | None, parameter: str) -> dict[Key, Table]:
    """Return tables by their columns, with levels as tuples."""
    found: dict[Key, Table] = {}
    for key, table in dict(tables or {}).items():
        columns = key if isinstance(key, tuple) else (key,)
        if len(set(columns)) < len(columns) or not all(isinstance(one, str) for one in columns):
            raise InputError(
                f"{parameter} names the columns {key!r}; give the name of a column, or a tuple of "
                "different names."
            )
        found[columns] = _read(table, columns, parameter)
    return found


def moved_tables(table: Table, errors: Table, step: float) -> Iterator[Table]:
    """Return the table moved by each of its independent errors; its total stays.

    With independent e of variance one, √p_l e_l − p_l Σ √p_j e_j has a multinomial's covariance.
    """
    counts = np.array(list(table.values()))
    shares = counts / counts.sum()
    spread = np.sqrt(shares * (1 - shares))
    given = np.array([errors[level] for level in table]) / counts.sum()
    scale = step * np.divide(given, spread, out=np.zeros_like(given), where=spread > 0)
    for place, root in enumerate(np.sqrt(shares)):
        moved = -shares * root
        moved[place] += root
        moved = np.maximum(shares + scale * moved, 0.0)
        yield dict(zip(table, (moved * (counts.sum() / moved.sum())).tolist(), strict=True))


def _read(table: Any, columns: Key, parameter: str) -> Table:
    where = f"{parameter} of {_shown(columns)}"
    if isinstance(table, Mapping):
        pairs = list(_of_mapping(table, len(columns), where))
    elif nw.dependencies.is_into_dataframe(table):
        pairs = list(_of_frame(table, columns, where))
    elif hasattr(table, "items") and hasattr(table, "index"):  # a pandas series
        pairs = [(key if isinstance(key, tuple) else (key,), n) for key, n in table.items()]
    else:
        raise InputError(
            f"{where} must be a mapping from levels to numbers, a series or a table; got a "
            f"{type(table).__name__}."
        )
    counts: Table = {}
    for level, number in pairs:
        if len(level) != len(columns):
            raise InputError(f"{where}: level {level!r} must have {len(columns)} parts.")
        if not isinstance(number, Real) or not 0 <= float(number) < np.inf:
            raise InputError(
                f"{where}: level {_shown(level)} has {number!r}; give a number from 0."
            )
        plain = tuple(_plain(one) for one in level)
        if plain in counts:
            raise InputError(f"{where}: level {_shown(level)} is listed twice.")
        counts[plain] = float(number)
    if not counts or not sum(counts.values()):
        raise InputError(f"{where} is empty.")
    return counts


def _of_mapping(table: Mapping[Any, Any], depth: int, where: str) -> Any:
    """Yield levels and numbers of a mapping, which may be nested as deep as there are columns."""
    for key, value in table.items():
        level = key if isinstance(key, tuple) else (key,)
        if isinstance(value, Mapping):
            if len(level) >= depth:
                raise InputError(f"{where} is nested deeper than it has columns, at {key!r}.")
            inner = _of_mapping(value, depth - len(level), where)
            yield from (((*level, *rest), number) for rest, number in inner)
        else:
            yield level, value


def _of_frame(table: Any, columns: Key, where: str) -> Any:
    """Yield levels and numbers of a table: columns and a count, or a cross table of two columns."""
    frame = nw.from_native(table, eager_only=True)
    index: Any = getattr(table, "index", None)
    names = [getattr(index, "name", None), getattr(getattr(table, "columns", None), "name", None)]
    if len(columns) == 2 and set(names) == set(columns):  # pandas.crosstab
        swap = names[0] != columns[0]
        for row, values in zip(index, frame.to_numpy(), strict=True):
            for column, value in zip(table.columns, values, strict=True):
                yield ((column, row) if swap else (row, column)), float(value)
        return
    missing = [name for name in columns if name not in frame.columns]
    rest = [name for name in frame.columns if name not in columns]
    if missing or len(rest) != 1:
        raise InputError(
            f"{where} must be a table with the columns {_shown(columns)} and one of counts, or a "
            f"cross table of them; got the columns {_shown(tuple(frame.columns))}."
        )
    for row in frame.select([*columns, rest[0]]).rows():
        yield row[:-1], row[-1]


def _plain(label: Any) -> Any:
    """Return a label as a Python value; a missing one is None."""
    if isinstance(label, np.floating) and label.itemsize < 8:
        label = float(str(label))  # 0.1 in single precision is meant as 0.1
    if isinstance(label, np.generic):
        label = label.item()
    return None if label is None or label != label else label


def _shown(names: tuple[Any, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def resolved_totals(
    given: Mapping[str, float], sample: pa.Table, mass: float
) -> tuple[dict[Key, Table], dict[str, float]]:
    """Return counts of levels and totals of numbers, from totals with R's names.

    The one level of a column that has no total is the reference, which gets the rest.

    Examples
    --------
    >>> sample = pa.table({"sex": ["f", "m"], "age": [30, 40]})
    >>> resolved_totals({"sexm": 48.0, "age": 4100.0}, sample, mass=100.0)
    ({('sex',): {('m',): 48.0, ('f',): 52.0}}, {'age': 4100.0})
    """
    tables: dict[Key, Table] = {}
    totals: dict[str, float] = {}
    for name, total in given.items():
        column, level = split_name(name, sample.column_names)
        if column is None:
            raise InputError(
                f"'{name}' of the totals is neither a column of the sample nor a column with a "
                "level. Interactions are given as tables: counts={(a, b): table}."
            )
        if not level:
            totals[column] = total
        else:
            tables.setdefault((column,), {})[(level,)] = total
    for (column,), table in tables.items():
        seen = {str(one) for one in sample[column].unique().to_pylist() if one is not None}
        rest = sorted(seen - {level for (level,) in table})
        left = mass - sum(table.values())
        if len(rest) != 1 or left < 0:
            raise InputError(
                f"Column '{column}' must have exactly one level without a total, which gets "
                f"the rest, {left:,.10g}; the sample has {', '.join(rest) or 'none'}."
            )
        table[(rest[0],)] = left
    return tables, totals


def split_name(name: str, columns: Sequence[str]) -> tuple[str | None, str]:
    """Return the column and the level that a name joins.

    Examples
    --------
    >>> split_name("stypeH", ["stype", "api99"])
    ('stype', 'H')
    """
    found = [one for one in columns if name.startswith(one)]
    column = max(found, key=len, default=None)
    return column, "" if column is None else name[len(column) :]
