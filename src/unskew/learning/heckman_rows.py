"""The rows of a selection model, in whichever of two ways they are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.weight_vectors import check_design
from unskew.population.labels import is_labelled
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.rows import Rows
from unskew.weighters import two_samples


@dataclass(frozen=True)
class HeckmanRows:
    """All rows: those of X, then those of a population that X has not.

    Attributes
    ----------
    first : Rows
        The rows of X.
    rest : pyarrow.RecordBatch or None
        Further rows that are not selected, with the selection's columns alone.
    selected : ndarray of bool
        Of the rows of both.
    y : ndarray of float
        Of the selected rows.
    weight : ndarray
    groups : ndarray of int or None
        The cluster of each row, numbered from 0.
    weighted : bool
        Whether there are design weights.
    """

    first: Rows
    rest: pa.RecordBatch | None
    selected: BoolArray
    y: FloatArray
    weight: FloatArray
    groups: IntArray | None
    weighted: bool

    @classmethod
    def of(
        cls,
        given: Rows,
        seen: BoolArray,
        population: Any,
        selection: list[str],
        sample_weight: ArrayLike | None,
        clusters: ArrayLike | None,
        *,
        outcomes: Callable[[BoolArray], FloatArray],
        owner: str,
    ) -> Self:
        """Check what was given, and read the rest of the population if there is one.

        ``outcomes`` returns the outcomes of the rows that have one, as numbers; ``owner`` is who
        asks, for messages.
        """
        if len(seen) != len(given):
            raise InputError(f"y has {len(seen)} labels for the {len(given)} rows of X.")
        if not seen.any():
            raise InputError("y is missing for every row of X: there is no outcome to learn from.")
        weight = check_design(sample_weight, name="sample_weight", n_rows=len(given))
        groups = None if clusters is None else _groups(clusters, len(given))
        rows = cls(given, None, seen, outcomes(seen), weight, groups, sample_weight is not None)
        if population is not None:
            rows = rows._with_rest(population, selection, owner)
        elif seen.all():
            raise InputError(
                f"y is there for every row, and {owner} needs the rows that are not "
                "selected too: give all rows, with y missing where it was not seen, or "
                "population=Population(U, selected=...)."
            )
        return rows._without_zeros()

    def _with_rest(self, population: Any, selection: list[str], owner: str) -> Self:
        if isinstance(population, Margins):
            raise InputError(f"{owner} needs the population's rows; Margins has none.")
        target = Population.of(population)
        if not target.about.selected:
            raise ParameterError(
                f"{owner} needs to know which rows of the population are in X: "
                "Population(U, selected=...)."
            )
        if not self.selected.all():
            raise InputError(
                f"y is missing for {int((~self.selected).sum())} rows of X. With population=, X "
                "has the selected rows alone, each with its outcome."
            )
        if self.groups is not None:
            raise ParameterError(
                "clusters are known of X alone. Give all rows in X, with y missing where it was "
                "not seen, instead of population=."
            )
        if target.is_weighted != self.weighted:
            lacking = "sample_weight" if target.is_weighted else "Population(U, weight=...)"
            raise ParameterError(
                "Design weights are given on one side alone, and the likelihood needs those of all "
                f"rows: give {lacking} too."
            )
        names = self.first.table.column_names
        chosen = replace(self.first, table=self.first.table.select(selection))
        matched = target.matched(chosen, among=names)
        most = two_samples.MEMORY // (two_samples.BYTES_PER_VALUE * len(selection))
        drawn = matched.reduce(Reservoir(most))
        if len(drawn.weight) == most:
            raise InputError(
                f"The likelihood needs all rows of the population at once, and {matched.size:,} of "
                f"{len(selection)} columns take more than 1 GB. Give a random part of the rows "
                "that were not selected, with the weights that make up for it."
            )
        marks = np.asarray(drawn.selected)
        if target.n_selected != len(self.first):
            raise InputError(
                f"selected marks {target.n_selected} rows of the population, and X has "
                f"{len(self.first)}: they must be the same rows."
            )
        if marks.all():
            raise InputError(
                "Every row of the population is selected: there is nothing to correct."
            )
        rest = drawn.rows.filter(pa.array(~marks))
        return replace(
            self,
            rest=rest,
            selected=np.append(self.selected, np.zeros(len(rest), dtype=bool)),
            weight=np.append(self.weight, drawn.weight[~marks]),
        )

    def _without_zeros(self) -> Self:
        """Leave out rows of X without weight, which count for nothing."""
        kept = self.weight[: len(self.first)] > 0
        if kept.all():
            return self
        further = np.ones(len(self.selected) - len(kept), dtype=bool)
        everywhere = np.append(kept, further)
        return replace(
            self,
            first=replace(self.first, table=self.first.table.filter(pa.array(kept))),
            selected=self.selected[everywhere],
            y=self.y[kept[self.selected[: len(kept)]]],
            weight=self.weight[everywhere],
            groups=None if self.groups is None else _numbered(self.groups[kept]),
        )

    def batches(self, columns: Sequence[str]) -> list[pa.RecordBatch]:
        """Return these columns of all rows, in one or two parts."""
        first = replace(self.first, table=self.first.table.select(list(columns))).batch
        return [first] if self.rest is None else [first, self.rest]

    def covariance_kind(self, asked: str) -> str:
        """Return which covariance these rows allow: the model's own holds only for equal rows."""
        if self.groups is not None:
            return f"clustered ({int(self.groups.max()) + 1:,} clusters)"
        return "robust" if self.weighted else asked


def _groups(clusters: Any, n_rows: int) -> IntArray:
    values = clusters.to_numpy() if hasattr(clusters, "to_numpy") else np.asarray(clusters)
    if values.shape != (n_rows,):
        raise InputError(
            f"clusters must have one entry for each of the {n_rows} rows; got shape {values.shape}."
        )
    if not is_labelled(clusters).all():
        raise InputError("clusters has missing values; every row needs a cluster.")
    return _numbered(values)


def _numbered(values: Any) -> IntArray:
    labels, groups = np.unique(values, return_inverse=True)
    if len(labels) < 2:
        raise InputError("clusters names a single cluster; at least two are needed.")
    return np.asarray(groups, dtype=np.int64)
