"""What the caller gives: the labelled sample, groups and strata of its rows, shared columns."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from unskew.errors import InputError, ParameterError
from unskew.numerics.design_variance import SurveyDesign
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.weight_vectors import check_design
from unskew.population.margins import Margins
from unskew.population.open_sample import named_columns_apart, open_sample
from unskew.population.population import Population
from unskew.rows.design import ValueGroups
from unskew.rows.encode import ColumnCodes
from unskew.rows.labels import by_position, checked_labels, missing_labels, row_codes
from unskew.rows.sample import Sample
from unskew.rows.tables import Rows, as_rows


@dataclass(frozen=True)
class LabelColumns:
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

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say of labels that do not vary."""
        if not np.ptp(self.values, axis=0).any():
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

    def codes(self, batch: pa.RecordBatch) -> IntArray:
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


def open_design(
    X: Any, rows: Rows, kept: BoolArray | None, strata: Any, clusters: Any
) -> SurveyDesign:
    """Return how the rows of X were drawn, of which some are ``kept``, or all."""
    codes = []
    for given, name in ((strata, "strata"), (clusters, "clusters")):
        values = by_position(given, X, name)
        codes.append(row_codes(kept_entries(values, kept), name, rows.table))
    return SurveyDesign.from_codes(len(rows), *codes)


def kept_entries(values: Any, kept: BoolArray | None) -> Any:
    """Return the entries of the rows that are used; a name stays."""
    named = values is None or isinstance(values, str) or kept is None
    return values if named else np.asarray(values)[kept]


def opened(population: Any) -> Population | Margins:
    """Return what was given as the population."""
    return population if isinstance(population, Margins) else Population.from_data(population)


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
