"""The roles of columns, and how the columns of sample and population correspond."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.errors import (
    InputError,
    MismatchError,
    ParameterError,
    listing,
    names_alike,
    which_there_are,
)
from unskew.rows.tables import ColumnLabels, Rows


def chosen_names(
    columns: Any, labels: ColumnLabels, *, owner: str, parameter: str = "columns"
) -> list[str]:
    """Return the names of columns that a list of names, labels or positions chooses."""
    available = labels.names
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise ParameterError(f"{parameter} must be a list of names; got {columns!r}.")
    chosen = []
    for column in columns:
        is_number = isinstance(column, Integral) and not isinstance(column, bool | np.bool_)
        if is_number and labels.numbered:
            column = f"x{column}"
        elif is_number and 0 <= int(column) < len(available):
            column = available[int(column)]
        if not isinstance(column, str):
            raise ParameterError(
                f"{parameter} must be names, or positions below {len(available)}; got {column!r}."
            )
        chosen.append(column)
    unknown = [name for name in chosen if name not in available]
    if unknown:
        raise InputError(
            f"{owner} lacks {_plural(unknown)}, which {parameter} names."
            f"{which_there_are(unknown[0], available)}"
        )
    return chosen


def remember_columns(estimator: Any, labels: ColumnLabels) -> None:
    """Set scikit-learn's attributes of X on an estimator; of whole-number labels, the numbers."""
    for stale in ("feature_names_in_", "feature_numbers_in_"):
        estimator.__dict__.pop(stale, None)
    estimator.n_features_in_ = len(labels.names)
    if labels.named:
        estimator.feature_names_in_ = np.array(labels.names, dtype=object)
    if labels.numbered:
        estimator.feature_numbers_in_ = np.array([int(name[1:]) for name in labels.names])


def fitted_columns(estimator: Any) -> ColumnLabels:
    """Return the columns of the X that an estimator was fitted on."""
    names = list(getattr(estimator, "feature_names_in_", ()))
    numbers = getattr(estimator, "feature_numbers_in_", range(estimator.n_features_in_))
    numbered = hasattr(estimator, "feature_numbers_in_")
    return ColumnLabels(names or [f"x{number}" for number in numbers], bool(names), numbered)


def in_fitted_order(estimator: Any, X: Any) -> Any:
    """Return X with whole-number labels in the order of the fit: learners go by position there."""
    numbers = list(getattr(estimator, "feature_numbers_in_", ()))
    columns = list(getattr(X, "columns", ()))
    return X[numbers] if columns != numbers and set(columns) == set(numbers) else X


def under_fitted_names(estimator: Any, rows: Rows, *, exact: bool) -> pa.Table:
    """Return new rows under the names, and in the order, of the X that an estimator was fitted on.

    Matched by label, columns may be fewer or more unless ``exact``.
    """
    fitted, table = fitted_columns(estimator), rows.table
    found = fitted.columns_in(rows.labels)
    if table.num_columns != len(fitted.names) and (exact or found is None):
        raise InputError(
            f"X has {table.num_columns} features, but {type(estimator).__name__} is expecting "
            f"{len(fitted.names)} features as input."
        )
    if found is None:
        return table.rename_columns(fitted.names)
    return table.select(list(found.values())).rename_columns(list(found))


def columns_to_weigh_by(
    columns: Any, given: Rows, population: Any, *, apart: Sequence[str] = ()
) -> list[str]:
    """Return the columns of X that ``columns`` chooses: None, a list, or "shared".

    None is all columns but those ``apart``, or, where only margins are known, those that are
    shared.
    """
    names = [name for name in given.table.column_names if name not in apart]
    if not names:
        raise InputError(f"X has no column besides {listing(apart)}.")
    if columns is None and population.about.margins is None:
        return names
    if columns is not None and not isinstance(columns, str):
        chosen = chosen_names(list(columns), given.labels, owner="The sample")
        if not chosen or len(set(chosen)) < len(chosen):
            raise ParameterError(f"columns must name columns, each once; got {columns!r}.")
        if both := [name for name in chosen if name in apart]:
            raise ParameterError(
                f"columns names '{both[0]}', which another parameter of the weighter names too: "
                "it is not a feature. Remove it from columns."
            )
        return chosen
    if columns not in (None, "shared"):
        raise ParameterError(f'columns must be None, a list of names or "shared"; got {columns!r}.')
    shared = population.shared_with(given)
    if given.named and shared is None:
        raise InputError(
            'columns="shared" compares names, and the population\'s columns have none. Pass the '
            "population with names, or list the columns to weigh by, which are then matched by "
            "position: columns=[...]."
        )
    shared = [name for name in names if shared is None or name in shared]
    if not shared:
        raise _nothing_in_common(names, population.columns)
    return shared


def check_same_columns(sample: Sequence[str], population: Sequence[str], *, exact: bool) -> None:
    """Refuse a population without the sample's columns or, if ``exact``, with further ones."""
    missing = [name for name in sample if name not in population]
    if len(missing) == len(sample):
        raise _nothing_in_common(sample, population)
    if missing:
        raise MismatchError(
            f"The population lacks {_plural(missing)}, which the sample has."
            f"{names_alike(missing, population)} Its columns are {listing(population)}. Use "
            'columns="shared" to weigh by the columns that both have.'
        )
    extra = [name for name in population if name not in sample]
    if extra and exact:
        raise MismatchError(
            f"The population has {_plural(extra)}, which the sample lacks. Specify the columns to "
            'use: Population(data, columns=[...]), or columns="shared" on the weighter.'
        )


def _nothing_in_common(sample: Sequence[str], population: Sequence[str]) -> MismatchError:
    return MismatchError(
        f"The sample and the population have no column in common: {listing(sample)} against "
        f"{listing(population)}.{names_alike(sample, population)}"
    )


def columns_by_position(
    names: Sequence[str], population: Sequence[str], among: Sequence[str] | None
) -> list[str]:
    """Return the population's columns for the sample's, matched by position.

    ``among`` holds all columns of X where ``names`` are only some of them: the population then has
    either a column for each of X's, or only those that are weighed by.
    """
    if among is not None and len(population) == len(among):
        return [population[among.index(name)] for name in names]
    if len(names) != len(population):
        raise MismatchError(
            f"The sample has {len(names)} columns and the population {len(population)}. Columns "
            "without names are matched by position, so their numbers must agree; "
            "Population(data, columns=[...]) chooses them."
        )
    return list(population)


def _plural(names: Sequence[str]) -> str:
    return ("column " if len(names) == 1 else "columns ") + listing(names)
