"""Whatever the caller gives as X, as a sample that matches the population.

A table is held in memory. Of a sample on Spark (:class:`SparkSample`) a uniform subsample is held,
from which a weighter learns, and all rows answer its questions about the sample where they are; new
rows on Spark are weighed on the executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from unskew.errors import InputError, ParameterError, which_there_are
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_weight_values, scale_to_total
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.sources.spark import with_column
from unskew.population.summaries import Summary, SummaryType
from unskew.rows.column_names import columns_to_weigh_by
from unskew.rows.labels import by_position, checked_labels
from unskew.rows.sample import Rule, Sample, no_overlap
from unskew.rows.tables import RowBlock, as_rows, is_spark_frame


@dataclass(frozen=True)
class SparkSample:
    """A sample in a Spark DataFrame, classic or Connect.

    Weighters that can weigh new rows take it in place of X; ``y`` and ``sample_weight`` are then
    names of its columns. Partitions and weight functions are learned from a uniform random
    subsample in memory; the counts of cells, and the sum to which weights are scaled, come from
    passes over all rows. The rows stay on the cluster, so there is no ``weights_``; instead,
    ``weigh(frame)`` adds a column of weights, without design weights.

    Parameters
    ----------
    frame : Spark DataFrame
    subsample : int, default=100_000
        The number of rows that are brought into memory.

    Examples
    --------
    >>> from unskew import SparkSample, TreeWeights
    >>> sample = SparkSample(spark_frame, subsample=50_000)  # doctest: +SKIP
    >>> weighter = TreeWeights().fit(sample, "cost", population=population)  # doctest: +SKIP
    """

    frame: Any
    subsample: int = 100_000

    def __post_init__(self) -> None:
        if not is_spark_frame(self.frame):
            raise ParameterError(
                f"SparkSample takes a Spark DataFrame; got a {type(self.frame).__name__}."
            )
        if not isinstance(self.subsample, Integral) or self.subsample < 1:
            raise ParameterError(
                f"subsample must be a positive whole number; got {self.subsample!r}."
            )


def open_spark_sample(sample: SparkSample, y: Any, sample_weight: Any) -> Sample:
    """Draw the subsample of a sample on Spark; the other rows stay where they are."""
    frame = sample.frame
    for parameter, column in (("y", y), ("sample_weight", sample_weight)):
        if column is not None and not (isinstance(column, str) and column in frame.columns):
            given = f"a {type(column).__name__}."
            if isinstance(column, str):
                given = f"'{column}'.{which_there_are(column, frame.columns)}"
            raise InputError(
                f"X is a Spark DataFrame, so {parameter} must be the name of one of its columns; "
                f"got {given}"
            )
    features = [column for column in frame.columns if column not in (y, sample_weight)]
    read = features if y is None else [*features, y]
    try:
        drawn = Population(frame, columns=read, weight=sample_weight).reduce(
            Reservoir(int(sample.subsample))
        )
    except InputError as error:
        raise type(error)(f"The sample could not be read. {error}") from error
    table = pa.Table.from_batches([drawn.rows])
    rows = as_rows(table.select(features), name="X")
    labels = None if y is None else checked_labels(table.column(y), len(rows))
    opened = _OpenedSample(rows, labels, drawn.weight, None)
    opened.everyone = opened.everything = Population(frame, columns=features, weight=sample_weight)
    return opened


class _OpenedSample(Sample):
    """The subsample, which answers questions from all rows."""

    in_memory = False
    everything: Population
    """All rows with all columns of X."""
    everyone: Population
    """All rows with the columns to weigh by."""

    @property
    def size(self) -> int:
        """The number of rows on Spark."""
        return self.everyone.size

    def select(self, columns: Sequence[str]) -> Self:
        """Return the sample with these of its columns to weigh by."""
        twin = super().select(columns)
        twin.everyone = self.everything.matched(twin.rows, among=self.all_rows.table.column_names)
        return twin

    def with_design(self, design: FloatArray) -> Self:  # noqa: ARG002
        """Refuse: other design weights would have to be those of all rows."""
        raise InputError("Replicates with other design weights need a sample in memory.")

    def reduce(self, summary: SummaryType) -> SummaryType:
        """Answer a question about all rows, by a pass over them."""
        return self.everyone.reduce(summary)

    def scaled(
        self,
        raw: FloatArray,  # noqa: ARG002
        rule: Callable[[], Rule],
        columns: Sequence[str],
        total: float,
    ) -> tuple[float, FloatArray | None]:
        """Return the factor that makes the weights of all rows sum to ``total``, and no weights."""
        needed = replace(self.all_rows, table=self.all_rows.table.select(list(columns)))
        everyone = self.everything.matched(needed, among=self.all_rows.table.column_names)
        weighed = everyone.reduce(RuleTotal(rule())).total
        if not weighed > 0:
            raise no_overlap()
        return scale_to_total(np.array([weighed]), total), None


def weigh_on_spark(
    frame: Any, name: str, columns: Sequence[str], names: Sequence[str], rule: Rule, scale: float
) -> Any:
    """Return a Spark DataFrame with a column of weights, to be computed on the executors.

    ``columns`` are the columns that the rule needs, ``names`` what the rule calls them.
    """
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(
            f"X lacks column '{missing[0]}', which the sample had."
            f"{which_there_are(missing[0], frame.columns)}"
        )
    return with_column(frame, name, columns, RuleOnExecutors(rule, list(names), scale), "weigh")


class RuleTotal(Summary):
    """The sum of the weights that a rule gives to rows, times their design weights."""

    shared = frozenset({"rule"})
    added = ("total",)

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.total = 0.0

    def update(self, rows: RowBlock) -> None:
        """Weigh the rows of a block."""
        self.total += float(rows.weight @ self.rule(rows.batch))


@dataclass(frozen=True)
class RuleOnExecutors:
    """A rule at work on an executor."""

    rule: Rule
    names: list[str]
    scale: float

    def weigh(self, structs: Iterator[Any]) -> Iterator[pa.Array]:
        """Yield the weights of rows that come as arrays of structs."""
        for struct in structs:
            batch = pa.RecordBatch.from_arrays(struct.flatten(), names=self.names)
            weights = self.rule(batch) * self.scale if len(struct) else np.empty(0)
            check_weight_values(weights, name="A weight in a batch of rows")
            yield pa.array(weights, pa.float64())


Target = TypeVar("Target", Population, Margins, Population | Margins)


def open_sample(X: Any, y: Any = None, sample_weight: Any = None) -> Sample:
    """Return the sample with all columns of X, checked; one that is open already, as it is.

    ``y`` and ``sample_weight`` may be names of columns of X, which are then no features.
    """
    if isinstance(X, Sample):
        return X
    X, y, sample_weight = named_columns_apart(X, y, sample_weight)
    if is_spark_frame(X):
        X = SparkSample(X)
    if isinstance(X, SparkSample):
        return open_spark_sample(X, y, sample_weight)
    return Sample.from_data(X, y, sample_weight)


def named_columns_apart(
    X: Any, y: Any, sample_weight: Any, *, refused_by: str = ""
) -> tuple[Any, Any, Any]:
    """Return X without the columns that ``y`` and ``sample_weight`` name, and these columns.

    A sample on Spark stays as it is, unless ``refused_by`` says what needs it in memory.
    """
    if refused_by and is_distributed(X):
        raise InputError(
            f"X is a distributed table; {refused_by} needs a sample in memory. Bring it, or a "
            "random part of it, there: X.toArrow()."
        )
    y, sample_weight = by_position(y, X, "y"), by_position(sample_weight, X, "sample_weight")
    given = {"y": y, "sample_weight": sample_weight}
    names = {role: one for role, one in given.items() if isinstance(one, str)}
    if not names or is_distributed(X):
        return X, y, sample_weight
    X = pa.Table.from_batches([X]) if isinstance(X, pa.RecordBatch) else X
    if not nw.dependencies.is_into_dataframe(X):
        role, name = next(iter(names.items()))
        raise InputError(
            f"{role}='{name}' names a column of X, and X has no names: it is a "
            f"{type(X).__name__}. Give one value per row."
        )
    frame = nw.from_native(X, eager_only=True)
    for role, name in names.items():
        if name not in frame.columns:
            there = which_there_are(name, frame.columns)
            raise InputError(f"{role}='{name}' is not a column of X.{there}")
        given[role] = frame[name].to_native()
    kept = [column for column in frame.columns if column not in names.values()]
    return frame.select(kept).to_native(), given["y"], given["sample_weight"]


def is_distributed(X: Any) -> bool:
    """Return whether X is a sample on Spark, of which names are columns already."""
    return is_spark_frame(X) or isinstance(X, SparkSample)


def match_columns(
    given: Sample, target: Target, columns: Any, *, apart: Sequence[str] = ()
) -> tuple[Sample, Target]:
    """Return sample and population with the columns that ``columns`` chooses.

    Columns ``apart`` are not features, and the population may have or lack them.
    """
    sample = given.select(columns_to_weigh_by(columns, given.rows, target, apart=apart))
    among = None if columns is None else given.rows.table.column_names
    return sample, target.matched(sample.rows, among=among, ignored=apart)
