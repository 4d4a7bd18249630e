"""Whatever the caller gives as X, as a sample that matches the population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import pyarrow as pa

from unskew.errors import InputError
from unskew.population.column_names import columns_to_weigh_by, which_there_are
from unskew.population.labels import by_position
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.rows import is_spark_frame
from unskew.population.sample import Sample
from unskew.population.spark_sample import SparkRows, SparkSample, open_spark_sample

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
    return Sample.of(X, y, sample_weight)


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


def open_new_rows(X: Any) -> Sample | SparkRows:
    """Return rows to be weighed."""
    if is_distributed(X):
        return SparkRows(X.frame if isinstance(X, SparkSample) else X)
    return Sample.of(X)


def match_columns(
    given: Sample, target: Target, columns: Any, *, apart: Sequence[str] = ()
) -> tuple[Sample, Target]:
    """Return sample and population with the columns that ``columns`` chooses.

    Columns ``apart`` are not features, and the population may have or lack them.
    """
    sample = given.select(columns_to_weigh_by(columns, given.rows, target, apart=apart))
    among = None if columns is None else given.rows.table.column_names
    return sample, target.matched(sample.rows, among=among, ignored=apart)
