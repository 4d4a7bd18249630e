"""Margins from a file: a long table with a row for each level."""

from __future__ import annotations

from typing import Any

from unskew.errors import InputError
from unskew.population.margins import Margins
from unskew.population.sample_files import read_table

NUMBERS = ("count", "share", "percent")
SIZE = "(size)"


def read_margins(data: Any, **options: Any) -> Margins:
    r"""Read margins from a CSV or Parquet file with the columns variable, category and a number.

    Parameters
    ----------
    data : str, Path or binary file
        The table. Its column of numbers is called ``count``, ``share`` or ``percent``. Of a column
        of numbers, the category ``(mean)`` or ``(total)`` has its mean or total. For a joint table
        the names and the categories are joined by colons: ``age:region``, ``18-24:north``. The
        variable ``(size)`` is the population's size. The example in the package is
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
    table = read_table(data, ["variable", "category"], side="margins")
    names = {name.strip().lower(): name for name in table.column_names}
    number = [name for name in NUMBERS if name in names]
    missing = [name for name in ("variable", "category") if name not in names]
    if missing or len(number) != 1:
        raise InputError(
            "A file of margins has the columns variable, category and one of count, share and "
            f"percent; this one has {', '.join(map(repr, table.column_names))}."
        )
    kept = [names[name] for name in ("variable", "category", number[0])]
    tables: dict[Any, dict[Any, Any]] = {}
    means: dict[str, float] = {}
    totals: dict[str, float] = {}
    for variable, category, value in zip(*(table[name].to_pylist() for name in kept), strict=True):
        key = str(variable)
        if key == SIZE:
            options.setdefault("size", value)
        elif category == "(mean)":
            means[key] = value
        elif category == "(total)":
            totals[key] = value
        else:
            _add(tables, key, category, value)
    options = {**options, "means": means, "totals": totals}
    if number[0] == "count":
        return Margins(tables, **options)
    return Margins(shares=tables, unit="share" if number[0] == "share" else "percent", **options)


def _add(tables: dict[Any, dict[Any, Any]], variable: str, category: Any, value: Any) -> None:
    """Put one level into the table of its variables."""
    columns = tuple(variable.split(":"))
    level = (category,) if len(columns) == 1 else tuple(str(category).split(":"))
    if len(level) != len(columns):
        raise InputError(
            f"Category {category!r} of {variable!r} must have {len(columns)} parts, joined by "
            "colons."
        )
    table = tables.setdefault(columns, {})
    if level in table:
        raise InputError(f"The file of margins lists {category!r} of {variable!r} twice.")
    table[level] = value
