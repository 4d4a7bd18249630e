"""What all weighters share: the contract of ``fit``, the scale of the weights, new rows.

A weighter writes ``_fit``, which returns one number for each sample row; an inductive one also
writes ``_weigh``, which does so for new rows. Everything else is done here, once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Number, Real
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from unskew._compat import Interval, InvalidParameterError, StrOptions
from unskew.errors import (
    InputError,
    InputTypeError,
    OverlapError,
    OverlapWarning,
    ParameterError,
    warn_caller,
)
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import check_design, scale_to_total
from unskew.population.encode import ColumnCodes
from unskew.population.population import Population
from unskew.population.rows import Rows, as_rows, is_spark_frame
from unskew.population.summaries import Reservoir
from unskew.weighters.on_spark import check_marks, fit_on_spark, weigh_on_spark
from unskew.weighters.overlap import LIMIT, Overlap, measure_overlap
from unskew.weighters.rules import Rule

__all__ = ["InductiveWeighter", "Sample", "Weighter", "canonical_order"]

WARN_ABOVE = 0.01
"""The share of the population above which a method warns of what it leaves uncovered itself."""


@dataclass(frozen=True)
class Sample:
    """The sample as a weighter sees it.

    Attributes
    ----------
    rows : Rows
        The columns that the population has too.
    labels : ndarray or None
        As given.
    design : ndarray of shape (m,)
        The caller's ``sample_weight``, or ones.
    original : object
        X as the caller gave it, where it still is in the caller's order.
    everyone : Population or None
        All rows of the sample, where ``rows`` are only some of them, kept in memory.
    """

    rows: Rows
    labels: Any
    design: FloatArray
    original: Any
    everyone: Population | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, positions: IntArray) -> Sample:
        """Return some of the rows, in the order given."""
        return Sample(
            rows=replace(self.rows, table=self.rows.table.take(pa.array(positions))),
            labels=None if self.labels is None else self.labels[positions],
            design=self.design[positions],
            original=None,
        )


def canonical_order(sample: Sample) -> IntArray:
    """Return an order of the sample that does not depend on how its rows were shuffled.

    Ties in growing a tree, starting k-means or finding the nearest row then fall the same way, so
    that permuting the rows permutes the weights and changes nothing else.
    """
    codes = ColumnCodes().fit(sample.rows.batch).transform(sample.rows.batch, side="sample")
    keys = [*codes.values.T, sample.design]
    if sample.labels is not None:
        labels = sample.labels.reshape(len(sample), -1)
        keys += [np.unique(column, return_inverse=True)[1] for column in labels.T]
    return np.lexsort(keys)


class Weighter(BaseEstimator, ABC):
    """Gives every row of a biased sample a weight, so that the sample stands for the population."""

    total: Any
    overlap: Any
    overlap_: Overlap | None

    # What theory reads, so that it need not recognise a weighter by its name.
    _matches_kernel_means: ClassVar[bool] = False
    _not_certifiable: ClassVar[str] = ""  # why there is no certificate; empty where there is one

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "total": [StrOptions({"sample", "population"})],
        "overlap": [
            StrOptions({"warn", "raise", "ignore"}),
            Interval(Real, 0, 1, closed="both"),
        ],
    }

    @abstractmethod
    def _fit(self, sample: Sample, population: Population) -> FloatArray:
        """Return one non-negative number per sample row, in any scale."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        population: Any,
        sample_weight: ArrayLike | str | None = None,
        subsample: int = 100_000,
    ) -> Self:
        """Weigh the sample.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            The sample: rows that were not drawn evenly. A Spark DataFrame stays where it is, see
            the notes.
        y : array-like of shape (n_samples,), optional
            Their labels, for weighters that use them; of a Spark DataFrame, the name of the column.
        population : Population, or anything that :class:`unskew.Population` takes
            Rows drawn as the world draws them, with the same columns.
        sample_weight : array-like of shape (n_samples,), optional
            Design weights of the sample: each row counts this often. The weights contain them. Of a
            Spark DataFrame, the name of the column.
        subsample : int, default=100_000
            How many rows of a sample on Spark are brought into memory, drawn uniformly. A sample in
            memory is used whole.

        Returns
        -------
        self

        Notes
        -----
        Of a sample on Spark, only ``subsample`` rows are seen when a partition is made or a weight
        function fitted; ``subsample_size_`` tells how many there were. The counts of cells, and the
        sum to which weights are scaled, come from passes over all rows. There is then no
        ``weights_``: ``weigh(X)`` adds the weights to the rows where they are, without design
        weights. Weighters that cannot weigh new rows refuse such a sample.
        """
        self._check_parameters()
        if is_spark_frame(X):
            return fit_on_spark(self, X, y, population, sample_weight, subsample)
        sample = self._sample(X, y, sample_weight)
        matched = Population.of(population).matched(sample.rows, ignored=self._own_column_names())
        raw = self._fit_and_check_overlap(sample, matched)
        check_marks(matched, len(sample))
        target = float(len(sample)) if self.total == "sample" else matched.mass
        if not raw.any():
            raise OverlapError("Every sample row would get weight zero: no overlap is left.", 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            self.scale_ = scale_to_total(raw, target)
            self.weights_: FloatArray = raw * self.scale_
        if not np.isfinite(self.weights_).all():
            raise InputError(
                "The weights are too large for floating point: a selection probability or a design "
                "weight is too far from the others."
            )
        return self

    def _fit_and_check_overlap(self, sample: Sample, population: Population) -> FloatArray:
        self.overlap_ = None
        if self.overlap == "ignore":
            return self._fit(sample, population)
        if population.counts_in_engine:  # which shows no rows among which to search
            raw = self._fit(sample, population)
            self._tell_of_overlap()
            return raw
        rows, grow_on = (1000, 500) if self.overlap == "warn" else (20_000, 5000)
        drawn = Reservoir(rows)
        watched = population.asked_besides(drawn)
        raw = self._fit(sample, watched)
        if drawn.rows is None:  # a method that does not ask
            watched.reduce(drawn)
        whole = len(drawn.weight) == population.size
        counted = sample.rows.batch.filter(pa.array(sample.design > 0))
        self.overlap_ = measure_overlap(
            counted, drawn.rows, drawn.weight, whole=whole, grow_on=grow_on
        )
        self._tell_of_overlap()
        return raw

    def _tell_of_overlap(self) -> None:
        """Warn or raise if too much is out of reach, of the method itself or of the sample."""
        named = self.overlap in ("warn", "raise")
        own_limit, limit = (WARN_ABOVE, LIMIT) if named else (self.overlap, self.overlap)
        own: float = getattr(self, "uncovered_", 0.0)
        share, rules = (
            (0.0, ()) if self.overlap_ is None else (self.overlap_.uncovered, self.overlap_.rules)
        )
        told = [self._told_uncovered()] if own > own_limit else []
        told += [str(self.overlap_)] if share > limit else []
        if not told:
            return
        message = " ".join(told)
        if self.overlap == "warn":
            warn_caller(OverlapWarning(message, max(own, share), rules))
        else:
            raise OverlapError(f"{message} (overlap={self.overlap!r})", max(own, share), rules)

    def _told_uncovered(self) -> str:
        """Say what ``uncovered_`` means for this method, and what was done with it."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise ParameterError(str(error)) from None

    def _sample(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Sample:
        rows = as_rows(X, name="X")
        _check_rows(rows)
        self.__dict__.pop("subsample_size_", None)
        self.n_features_in_ = rows.table.num_columns
        if rows.named:
            self.feature_names_in_ = np.array(rows.table.column_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        design = check_design(sample_weight, name="sample_weight", n_rows=len(rows))
        return self._own_columns(Sample(rows, checked_labels(y, len(rows)), design, X))

    def _own_column_names(self) -> list[str]:
        """Return the sample's columns that are no features, and that the population may lack."""
        return []

    def _own_columns(self, sample: Sample) -> Sample:
        """Return the sample without the columns that are no features."""
        return sample

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class InductiveWeighter(Weighter, ABC):
    """A weighter that can also weigh rows which it has not seen."""

    @abstractmethod
    def _weigh(self, sample: Sample) -> FloatArray:
        """Return the weights of new rows in the scale of :meth:`_fit`."""

    def _rule(self) -> Rule:
        """Return how the weight of a row is made, in the scale of :meth:`_fit`.

        It travels to where rows are. One that asks for NumPy and PyArrow alone runs anywhere; this
        one, the weighter itself, needs scikit-learn there.
        """
        return _OwnRule(self)

    def weigh(self, X: Any, *, name: str = "weight") -> Any:
        """Return the weights of new rows, drawn as the sample was.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
            With the sample's columns; columns that have names may come in any order. A Spark
            DataFrame may have further columns.
        name : str, default="weight"
            The column that is added to a Spark DataFrame; it must not be there yet.

        Returns
        -------
        ndarray of shape (n_rows,), or Spark DataFrame
            In the scale of ``weights_``. Design weights are not part of it: multiply by them. A
            Spark DataFrame is returned with one more column, to be computed on the executors when
            Spark is asked for it.
        """
        check_is_fitted(self, "scale_")
        if is_spark_frame(X):
            return weigh_on_spark(self, X, name)
        rows = self._as_fitted(as_rows(X, name="X"))
        sample = self._own_columns(Sample(rows, None, np.ones(len(rows)), X))
        if not len(rows):
            return np.empty(0)
        return self._weigh(sample) * self.scale_

    def __getattr__(self, name: str) -> Any:
        if name == "weights_" and "subsample_size_" in self.__dict__:
            raise AttributeError(
                "The sample is on Spark, so its weights are not held in memory: weigh(X) adds them "
                "to its rows."
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _as_fitted(self, rows: Rows) -> Rows:
        if rows.table.num_columns != self.n_features_in_:
            raise InputError(
                f"X has {rows.table.num_columns} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        fitted = list(getattr(self, "feature_names_in_", rows.table.column_names))
        if not rows.named:
            return replace(rows, table=rows.table.rename_columns(fitted))
        missing = [name for name in fitted if name not in rows.table.column_names]
        if missing and hasattr(self, "feature_names_in_"):
            raise InputError(f"X lacks column '{missing[0]}', which the sample had.")
        if not hasattr(self, "feature_names_in_"):
            fitted = [f"x{position}" for position in range(self.n_features_in_)]
            return Rows(rows.table.rename_columns(fitted), named=False)
        return replace(rows, table=rows.table.select(fitted))


class _OwnRule:
    """The weighter itself as a rule."""

    def __init__(self, weighter: Any) -> None:
        self._weighter = weighter

    def __call__(self, batch: pa.RecordBatch) -> FloatArray:
        rows = Rows(pa.Table.from_batches([batch]), named=True)
        sample = Sample(rows, None, np.ones(len(rows)), None)
        weights: FloatArray = self._weighter._weigh(self._weighter._own_columns(sample))
        return weights


def _check_rows(rows: Rows) -> None:
    if not len(rows):
        # The wording is scikit-learn's, which its own estimator checks look for.
        raise InputError(
            f"X has no rows: found array with 0 sample(s) (shape=(0, {rows.table.num_columns})) "
            "while a minimum of 1 is required."
        )


def checked_labels(y: Any, n_rows: int) -> Any:
    if y is None:
        return None
    if hasattr(y, "to_numpy"):  # a pandas, Polars or PyArrow column
        y = y.to_numpy()
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
    if labels.ndim not in (1, 2):
        raise InputError(f"y must have one label per row; got shape {labels.shape}.")
    if len(labels) != n_rows:
        raise InputError(f"y has {len(labels)} labels for the {n_rows} rows of X.")
    if labels.dtype.kind == "c":
        raise InputError("y: Complex data not supported.")
    if labels.dtype == object:
        labels = _plain_labels(labels)
    if labels.dtype.kind in "mM":  # moments and durations are quantities; NaT is the least int64
        labels = np.where(np.isnat(labels), np.nan, labels.astype(np.int64).astype(np.float64))
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        kind = "NaN" if np.isnan(labels).any() else "infinity"
        raise InputError(f"y contains {kind}; every sample row needs a label. Drop those rows.")
    return labels


def _plain_labels(labels: Any) -> Any:
    """Return an array of Python objects as numbers or text, none of them missing."""
    if any(_is_missing(label) for label in labels.flat):
        raise InputError("y contains missing labels; every sample row needs one. Drop those rows.")
    if all(isinstance(label, Number) and not isinstance(label, bool) for label in labels.flat):
        plain = np.array(labels.tolist())
        return plain.astype(np.float64) if plain.dtype == object else plain  # decimals
    try:
        np.unique(labels)
    except TypeError as error:
        raise InputTypeError(f"y mixes labels of several types ({error}).") from error
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas' NA will not say
        return True
