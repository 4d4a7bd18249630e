"""Design weights and marks of the population's rows, as the caller gives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.errors import InputError, ParameterError
from unskew.numerics.weight_vectors import check_weights
from unskew.population.column_names import listing
from unskew.population.reading import as_marks
from unskew.population.sources import Source

__all__ = ["row_values"]


def row_values(values: Any, parameter: str, source: Source) -> Any:
    """Return the name of a column, or an array with one entry per row."""
    if values is None:
        return None
    if isinstance(values, str):
        if values not in source.schema.names:
            raise InputError(
                f"{parameter}='{values}' is not a column of the population, whose columns are "
                f"{listing(source.schema.names)}."
            )
        return values
    if not source.ordered:
        raise ParameterError(
            f"{parameter} must be the name of a column: the rows of this population have no "
            f"order that an array could follow; got a {type(values).__name__}."
        )
    n_rows = source.n_rows
    if parameter == "weight":
        return check_weights(values, name="The population's weight", n_rows=n_rows)
    marks = as_marks(np.array(values), "The population's selected")
    if marks.ndim != 1:
        raise InputError(f"selected must have one mark per row; got shape {marks.shape}.")
    if n_rows is not None and len(marks) != n_rows:
        raise InputError(f"selected has {len(marks)} entries for {n_rows} rows.")
    return marks
