"""What the caller gives: the labelled sample, and the columns that the population has too."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unskew.errors import InputError, ParameterError
from unskew.estimation.quantities import Groups
from unskew.numerics.typing import BoolArray
from unskew.numerics.weight_vectors import check_design
from unskew.population.labels import checked_labels, missing_labels
from unskew.population.margins import Margins
from unskew.population.open_sample import named_columns_apart, open_sample
from unskew.population.population import Population
from unskew.population.sample import Sample


def opened(population: Any) -> Population | Margins:
    """Return what was given as the population."""
    return population if isinstance(population, Margins) else Population.of(population)


def open_labelled(
    X: Any, y: Any, sample_weight: ArrayLike | str | None, missing: str
) -> tuple[Sample, BoolArray | None]:
    """Return the sample with its labels, and which rows it has if some are left out."""
    if y is None:
        raise InputError(
            "y is None; give the values of the sample rows whose population mean is wanted."
        )
    X, y, sample_weight = named_columns_apart(X, y, sample_weight, refused_by="an estimate")
    if missing not in ("raise", "drop"):
        raise ParameterError(f"missing must be 'raise' or 'drop'; got {missing!r}.")
    absent = missing_labels(y)
    if missing == "raise" or not absent.any():
        given = open_sample(X, y, sample_weight)
        if not len(given):
            raise InputError("X has no rows.")
        return given, None
    whole = open_sample(X, None, sample_weight)
    if len(absent) != len(whole):
        raise InputError(f"y has {len(absent)} labels for the {len(whole)} rows of X.")
    if absent.all():
        raise InputError("y is missing in every row.")
    given = whole.keep(np.flatnonzero(~absent))
    check_design(given.design, name="sample_weight of the rows with y", n_rows=len(given))
    labels = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)[~absent]
    given.labels = checked_labels(labels, len(given))
    return given, ~absent


def shared_columns(given: Sample, population: Population | Margins) -> list[str]:
    """Return the columns of X that the population has, too."""
    names = given.rows.table.column_names
    shared = population.shared_with(given.rows)
    return names if shared is None else shared


def check_models(
    population: Population | Margins, groups: Groups | None, counted: bool, cv: Any
) -> None:
    """Refuse an outcome model whose mean over the population cannot be taken."""
    if cv is not None and not (isinstance(cv, Integral) and int(cv) >= 2):
        raise ParameterError(f"cv must be 2 folds or more, or None for one model; got {cv!r}.")
    if isinstance(population, Margins):
        raise InputError(
            "An outcome model is averaged over the population's rows, and Margins have none. Give "
            "rows, or leave out outcome=."
        )
    if groups is not None and not counted:
        raise InputError(
            f"An outcome model is averaged over each group, and the population has no column "
            f"'{groups.column}'. Leave out outcome=, or add the column to the population."
        )
