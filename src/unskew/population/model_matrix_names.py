"""Totals under the names of R's model matrix, which join a column and a level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from unskew.errors import InputError
from unskew.population.margin_tables import Key, Table


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
