"""What the attributes of a loaded weighter must be: a file may have been changed since."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unskew._compat import validate_parameters
from unskew.errors import InputError, warn_caller, which_there_are
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_weight_values
from unskew.overlap.overlap import warn_of_unseen
from unskew.population.open_sample import SparkSample, is_distributed, weigh_on_spark
from unskew.population.progress import tell
from unskew.population.summaries import About
from unskew.rows.column_names import (
    fitted_columns,
    under_fitted_names,
)
from unskew.rows.encode import ColumnCodes
from unskew.rows.sample import Rule, Sample
from unskew.rows.tables import ColumnLabels, Rows
from unskew.weighters.base import Weighter


def check_fitted(weighter: Any) -> None:
    """Raise an error that names the parameter or attribute with which no fit ends."""
    validate_parameters(weighter)
    check_numbers("scale_", weighter.scale_, ())
    check_numbers("uncovered_", weighter.uncovered_, (), most=1 + 1e-9)
    check_numbers("n_features_in_", weighter.n_features_in_, (), least=1)
    if "weights_" in vars(weighter):  # a sample on Spark leaves none
        check_numbers("weights_", weighter.weights_, (None,), least=weighter._least_weight)
    if not weighter.columns_ or not all(isinstance(name, str) for name in weighter.columns_):
        raise ValueError(f"columns_ must be names of columns; it is {weighter.columns_!r}")


def check_numbers(
    name: str,
    values: Any,
    shape: tuple[int | None, ...],
    *,
    least: float = 0.0,
    most: float = np.inf,
) -> None:
    """Raise a ValueError that names an attribute unless it holds finite numbers within limits.

    ``shape`` is what it must have; None stands for any length.

    Examples
    --------
    >>> check_numbers("cell_weights_", np.array([1.0, -2.0]), (2,))
    Traceback (most recent call last):
        ...
    ValueError: cell_weights_ holds -2.0; it must lie between 0.0 and inf
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold numbers; it holds {array.dtype}")
    fits = len(shape) == array.ndim and all(
        length in (None, found) for length, found in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = tuple("any" if length is None else length for length in shape)
        raise ValueError(f"{name} has the shape {array.shape}; it must be {wanted}")
    wrong = array[~(np.isfinite(array) & (array >= least) & (array <= most))]
    if len(wrong):
        unlimited = np.isinf([least, most]).all()
        limits = "be finite" if unlimited else f"lie between {least} and {most}"
        raise ValueError(f"{name} holds {wrong[0]}; it must {limits}")


class InductiveWeighter(Weighter, ABC):
    """A weighter that can also weigh rows that it has not seen."""

    @abstractmethod
    def _weigh(self, sample: Sample) -> FloatArray:
        """Return the weights of new rows in the scale of :meth:`_solve`."""

    def _ratio_models(self, sample: Sample, about: About, rate: float) -> Any:  # noqa: ARG002
        """Return models of the density ratio, one a fold, for a pool of several weighters.

        ``rate`` is the number of sample rows over that of population rows.
        """
        from unskew.weighters.ratio_models import WeighterModels

        return WeighterModels(self, about)

    def _rule(self) -> Rule:
        """Return how the weight of a row is computed, in the scale of :meth:`_solve`.

        It travels to where the rows are. A rule that needs only NumPy and PyArrow runs anywhere;
        this one, the weighter itself, needs scikit-learn there.
        """
        return self._weigh_batch

    def _weigh_batch(self, batch: pa.RecordBatch) -> FloatArray:
        rows = Rows(pa.Table.from_batches([batch]), named=True)
        return self._weigh(Sample(rows, None, np.ones(len(rows))))

    @property
    def _can_weigh(self) -> bool:
        """Whether new rows can be weighed, with these parameters."""
        return True

    @available_if(lambda weighter: weighter._can_weigh)
    def weigh(self, X: Any, *, name: str = "weight") -> Any:
        """Return the weights of new rows, drawn as the sample was.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
            With the sample's columns; columns that have names may come in any order. A Spark
            DataFrame may have further columns.
        name : str, default="weight"
            The column that is added to a Spark DataFrame; it must not exist yet.

        Returns
        -------
        ndarray of shape (n_rows,), or Spark DataFrame
            In the scale of ``weights_``. Design weights are not included: multiply by them. A Spark
            DataFrame is returned with one more column, which Spark computes when it is needed.

        Warns
        -----
        UnseenValueWarning
            If rows in memory hold categories, or missing values, that no sample row has: it names
            them and the weights that these rows get.
        """
        check_is_fitted(self, "scale_")
        if is_distributed(X):
            frame = X.frame if isinstance(X, SparkSample) else X
            names, columns = list(self._rule_columns()), self._on_spark(frame.columns)
            return weigh_on_spark(frame, name, columns, names, self._rule(), self.scale_)
        new = Sample.from_data(X)
        if not len(new):
            return np.empty(0)
        self._match(new)
        tell(f"weighing {len(new):,} rows")
        weights = np.concatenate([self._weigh(rows) for rows in new.blocks()]) * self.scale_
        if self._least_weight == 0:
            check_weight_values(weights, name=f"The weights of {type(self).__name__}")
        codes = self._codes()
        warning = codes and warn_of_unseen(codes, new.batch, weights, self._describe_unseen())
        if warning:
            warn_caller(warning)
        return weights

    def _match(self, new: Sample) -> None:
        """Give new rows the columns of the sample, and select those that are weighed by."""
        new.all_rows = self._as_fitted(new.rows)
        new.rows = replace(new.all_rows, table=new.all_rows.table.select(self.columns_))

    def _check_state(self) -> None:
        """Refuse attributes with which no fit ends; a subclass adds its own."""
        check_fitted(self)

    def _codes(self) -> ColumnCodes | None:
        """Return the codes of the columns on which the weights depend, if they do on any."""
        space = getattr(self, "space_", None)
        return None if space is None else space.codes

    def _describe_unseen(self) -> str:
        """Return how rows with values that no sample row has are weighed."""
        return "the value is left out of account"

    def __getattr__(self, name: str) -> Any:
        if name == "weights_" and "subsample_size_" in self.__dict__:
            raise AttributeError(
                "The sample is not held in memory, and neither are its weights: weigh(X) adds them "
                "to its rows."
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _on_spark(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of a Spark DataFrame that the rule needs."""
        fitted = fitted_columns(self)
        found = fitted.columns_in(ColumnLabels(list(columns), named=True, numbered=False))
        if found is not None:
            return [found.get(name, name) for name in self._rule_columns()]
        if len(columns) != self.n_features_in_:
            raise InputError(
                f"X has {len(columns)} columns, and the sample had {self.n_features_in_} without "
                "names, which are matched by position. Select them."
            )
        return [columns[fitted.names.index(name)] for name in self._rule_columns()]

    def _as_fitted(self, rows: Rows) -> Rows:
        """Return new rows with the columns of the sample, under its names and in its order."""
        fitted = fitted_columns(self)
        chosen = self._chosen_columns(fitted.names)
        table = under_fitted_names(self, rows, exact=not chosen)
        needed = fitted.names if chosen is None else self.columns_
        if missing := [name for name in needed if name not in table.column_names]:
            raise InputError(
                f"X lacks column '{missing[0]}', which the sample had."
                f"{which_there_are(missing[0], rows.table.column_names)}"
            )
        return Rows(table, fitted.named, fitted.numbered)


def weigh_rows(weighter: InductiveWeighter, sample: Sample) -> FloatArray:
    """Return the weights of an opened sample's rows, as of new ones, in any scale."""
    return weighter._weigh(sample)
