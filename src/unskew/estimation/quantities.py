"""What is estimated: columns of numbers made of y, and groups of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from unskew.errors import InputError, InputTypeError, ParameterError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.encode import ColumnCodes
from unskew.population.groupings import ValueGroups
from unskew.population.rows import Rows, as_rows

Statistic = Literal["mean", "total", "proportion", "quantile"]
STATISTICS = ("mean", "total", "proportion", "quantile")
MOST_CLASSES = 100


@dataclass(frozen=True)
class Outcome:
    """The label of each row as one number, or as one indicator for each class.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
    classes : ndarray or None
        The class of each column; None for a single column of numbers.
    is_share : bool
        Whether means of the columns are shares.
    labels : ndarray
        As given.
    """

    values: FloatArray
    classes: Any
    is_share: bool
    labels: Any

    @classmethod
    def of(cls, labels: Any, statistic: Statistic) -> Outcome:
        """Return the outcome of checked labels."""
        if labels.ndim != 1:
            raise InputError(f"y must have one number or class per row; got shape {labels.shape}.")
        if statistic == "proportion":
            classes = np.unique(labels)
            if len(classes) > MOST_CLASSES:
                raise InputError(
                    f"y has {len(classes)} classes, more than {MOST_CLASSES}. For a number use "
                    'statistic="mean".'
                )
            return cls((labels[:, None] == classes).astype(float), classes, True, labels)
        if labels.dtype.kind not in "biuf":
            raise InputTypeError(
                f'statistic="{statistic}" needs numbers, and y holds {labels.dtype}. Use '
                'statistic="proportion" for the shares of classes.'
            )
        values = labels.astype(np.float64)
        shares = statistic == "mean" and bool(np.isin(values, (0.0, 1.0)).all())
        return cls(values[:, None], None, shares, labels)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say of labels that do not vary."""
        if len(np.unique(self.labels)) == 1:
            alike = f"y is {self.labels[0]!s} in every sample row, so that the standard error is 0"
            if self.is_share:
                return (f"{alike}; the interval is from the effective sample size.",)
            return (f"{alike} and says nothing.",)
        return ()


class Groups:
    """The groups of a column: the values that the sample has.

    Parameters
    ----------
    rows : Rows
        One column.
    """

    def __init__(self, rows: Rows) -> None:
        self.column = rows.table.column_names[0]
        self._codes = ColumnCodes()
        codes = self._codes.fit_transform(rows.batch)[:, 0]
        values, first, places = np.unique(codes, return_index=True, return_inverse=True)
        self.of_sample: IntArray = places.reshape(-1)
        self._grouping = ValueGroups(values, np.arange(len(values)), [])
        found = rows.table.column(0)
        self.labels = [found[int(row)].as_py() for row in first]
        if len(self.labels) > max(50, len(codes) // 2):
            raise InputError(
                f"by='{self.column}' has {len(self.labels)} values in {len(codes)} sample rows. "
                "Group by a column with few values, such as bands of a number."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, batch: pa.RecordBatch) -> IntArray:
        """Return the group of rows of the population; -1 for a group without sample rows."""
        rows = batch.select([self.column])
        values, unseen = self._codes.transform(rows, side="population")
        groups = self._grouping.of(values[:, 0])
        return groups if unseen is None else np.where(unseen, -1, groups)


def open_groups(by: Any, rows: Rows, in_population: Any) -> tuple[Groups | None, bool]:
    """Return the groups, and whether the population has their column.

    ``by`` is the name of a column of X, or an array with the group of each row.
    """
    if by is None:
        return None, False
    if isinstance(by, str):
        if by not in rows.table.column_names:
            raise InputError(
                f"by='{by}' is not a column of X. It has {', '.join(rows.table.column_names)}."
            )
        return Groups(Rows(rows.table.select([by]), named=True)), by in in_population
    given = np.asarray(by)
    if given.shape != (len(rows),):
        raise InputError(
            f"by must be a column of X or have one group per row; got shape {given.shape} for "
            f"{len(rows)} rows."
        )
    name = getattr(by, "name", None) or "group"
    column = as_rows(given.reshape(-1, 1), name="by").table
    return Groups(Rows(column.rename_columns([str(name)]), named=True)), False


def design_codes(given: Any, name: str, rows: Rows) -> IntArray | None:
    """Return strata or clusters, a column of X or an array, as numbers from zero."""
    if given is None:
        return None
    if isinstance(given, str):
        if given not in rows.table.column_names:
            raise InputError(f"{name}='{given}' is not a column of X.")
        given = rows.table.column(given).to_numpy()
    values = np.asarray(given)
    if values.shape != (len(rows),):
        raise InputError(
            f"{name} must have one entry for each of the {len(rows)} rows; got shape "
            f"{values.shape}."
        )
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise InputError(f"{name} is missing in {int(np.isnan(values).sum())} rows.")
    try:
        codes = np.unique(values, return_inverse=True)[1]
    except TypeError as error:
        raise InputError(f"{name} mixes values that cannot be compared ({error}).") from error
    return codes.reshape(-1)


def check_statistic(statistic: str, q: Any, outcome: Any) -> None:
    """Refuse parameters that do not fit together."""
    if statistic not in STATISTICS:
        raise ParameterError(
            f"statistic must be one of {', '.join(STATISTICS)}; got {statistic!r}."
        )
    if (statistic == "quantile") != (q is not None):
        raise ParameterError(
            'q is for statistic="quantile", and needed there: q=0.5 is the median.'
        )
    if q is not None and not 0 < float(q) < 1:
        raise ParameterError(f"q must lie between 0 and 1; got {q!r}.")
    if statistic == "quantile" and outcome is not None:
        raise ParameterError(
            "outcome models predict means; a quantile is estimated from the weights alone."
        )
