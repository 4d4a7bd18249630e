"""Whatever the caller gives as X, as a sample that matches the population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from unskew.population.column_names import columns_to_weigh_by
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.rows import is_spark_frame
from unskew.population.sample import Sample
from unskew.population.spark_sample import SparkRows, SparkSample, open_spark_sample

Target = TypeVar("Target", Population, Margins, Population | Margins)


def open_sample(X: Any, y: Any = None, sample_weight: Any = None) -> Sample:
    """Return the sample with all columns of X, checked; one that is open already, as it is."""
    if isinstance(X, Sample):
        return X
    if is_spark_frame(X):
        X = SparkSample(X)
    if isinstance(X, SparkSample):
        return open_spark_sample(X, y, sample_weight)
    return Sample.of(X, y, sample_weight)


def open_new_rows(X: Any) -> Sample | SparkRows:
    """Return rows to be weighed."""
    if is_spark_frame(X) or isinstance(X, SparkSample):
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
