"""Single columns of a sample's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unskew.cli.swapped import NoSuchColumnError
from unskew.errors import InputError, InputTypeError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa


def row_identifiers(table: pa.Table, identifier: str | None, row_numbers: Any = None) -> pa.Table:
    """Return the column that identifies the rows, or their numbers (by default from 0)."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if identifier is None:
        return pa.table({"row": np.arange(table.num_rows) if row_numbers is None else row_numbers})
    if identifier == "weight":
        raise ParameterError("--id weight: the output's weights have this name. Rename the column.")
    values = decoded(named_column(table, identifier, "--id"))
    if values.null_count:
        raise InputError(
            f"Column '{identifier}' (--id) is missing in {values.null_count:,} rows; every row "
            "needs an identifier."
        )
    counts = pc.value_counts(values.combine_chunks())
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        value, count = repeated[0]["values"], repeated[0]["counts"].as_py()
        raise InputError(
            f"Column '{identifier}' (--id) does not identify rows: '{value}' occurs {count:,} "
            "times."
        )
    return pa.table({identifier: values})


def numbers(table: pa.Table, name: str, origin: str) -> Any:
    """Return a column of numbers, missing ones as NaN."""
    import pyarrow as pa

    column = table.column(name)
    try:
        return column.cast(pa.float64()).to_numpy()
    except pa.ArrowException as error:
        raise InputTypeError(
            f"Column '{name}' ({origin}) must hold numbers; its type is {column.type}."
        ) from error


def named_column(table: pa.Table, name: str, option: str) -> Any:
    """Return the column that an option names."""
    if name not in table.column_names:
        raise NoSuchColumnError(option, name, table.column_names)
    return table.column(name)


def decoded(column: Any) -> Any:
    """Return the values of a column that may be of categories."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column
